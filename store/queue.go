package store

import (
	"context"
	"time"
)

// Line is where a workflow stands in line for a worker. The zero value is in no
// queue.
type Line struct {
	Queue    string // the queue's name; "" for none
	Key      string // what is limited by key; "" for nothing
	Priority int    // 0 to MaxPriority: higher goes first
}

// MaxPriority is the highest priority.
const MaxPriority = 100

// PriorityWorth is what one level of priority is worth: whoever stands in line for
// that much longer than another goes before one of the next level. So nobody
// starves behind those of a higher one.
const PriorityWorth = time.Minute

// Queue is a line in which workflows wait for a worker, and its limits. A zero
// limit limits nothing. A workflow takes up a slot while a worker owns its row: it
// gives the slot back when it waits for something, when it ends, and when a dead
// worker's work is taken over.
type Queue struct {
	Name        string
	Concurrency int // slots of all workers together
	PerWorker   int // slots of one worker
	PerKey      int // slots of one Line.Key

	// Rate is how many workflows may begin within Period, evenly; Burst is how many
	// may do so at once after a time of rest.
	Rate   int
	Period time.Duration
	Burst  int

	PausedAt time.Time // zero while it is not paused: nothing of a paused queue is claimed
	Note     string    // who has paused it, and why
}

// QueueState is how a queue stands.
type QueueState struct {
	Queue
	Running int       // workflows that have a slot
	Waiting int       // workflows that are due and have none
	Later   int       // workflows that will be due: delayed, or between two attempts
	Oldest  time.Time // since when the longest waiting is due; zero if none is
}

// QueueClaim is the answer to ClaimQueued.
type QueueClaim struct {
	Rows []Claimed
	Any  bool          // there are queues
	Next time.Duration // after which a rate lets the next one begin; 0 if none holds one back
}

// Queues keeps queues. Who goes next, and whether there is a slot, is counted from
// the rows of the workflows themselves, so there is no count that could be wrong
// after a crash.
type Queues interface {
	// ClaimQueued is Claim for the workflows that are in queues, under the limits of
	// these: those first that have begun before, then by priority and age. One in a
	// queue is claimed by Claim only if it is to be cancelled before it has begun.
	ClaimQueued(ctx context.Context, w WorkerID, defs []Def, limit int) (QueueClaim, error)

	// SetQueue creates a queue or changes the limits of one. Whether it is paused
	// stays as it is. A start creates its queue without limits, if there is none.
	SetQueue(ctx context.Context, q Queue) error

	// PauseQueue stops claims of a queue, or changes the note of one that is
	// paused. ErrQueueNotFound if there is no such queue.
	PauseQueue(ctx context.Context, name, note string) error

	// ResumeQueue ends a pause. ErrQueueNotFound if there is no such queue.
	ResumeQueue(ctx context.Context, name string) error

	// Queues returns how all queues stand, by name.
	Queues(ctx context.Context) ([]QueueState, error)
}
