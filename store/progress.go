package store

import "context"

// Progress keeps how far the long body of a workflow's step has come.
type Progress interface {
	// Beat keeps progress under the key of the attempt that makes it, in the place of
	// what was kept for the workflow before. It writes nothing and returns Lost if w
	// does not own the workflow at that revision. The row itself, and so every guard,
	// stays as it is.
	Beat(ctx context.Context, w WorkerID, g Guard, key string, progress []byte) (Verdict, error)

	// LastBeat returns the progress that is kept for a workflow under a key, or nil.
	LastBeat(ctx context.Context, id, key string) ([]byte, error)
}
