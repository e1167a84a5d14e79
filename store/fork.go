package store

import "context"

// Fork is a workflow made of another one's beginning.
type Fork struct {
	New                // it is owned by nobody
	Steps []StepRecord // copies of the steps that it begins behind, in the order of their completion
	Asked []Request    // what is kept of who wanted it, of both workflows
}

// Forks makes forks.
type Forks interface {
	// Fork inserts a workflow with records of steps that it never ran, and what is on
	// record of who wanted it, all or nothing. If the id is taken nothing is written,
	// and the answer is Start's.
	Fork(ctx context.Context, f Fork) (StartResult, error)
}
