package store

import (
	"context"
	"time"
)

// Retention is what makes a database forget.
type Retention interface {
	// Lead makes w the holder of a named lease for that long, or lengthens it, and
	// reports whether w holds it. A lease that has run out is anybody's. It is a
	// matter of economy, not of safety: whoever believes to hold one that it has
	// lost does what another does as well.
	Lead(ctx context.Context, name string, w WorkerID, lease time.Duration) (bool, error)

	// Expirable returns the ids of up to limit workflows of a definition that have
	// ended at least that long ago, the longest ago first, and are no tombstones.
	Expirable(ctx context.Context, definition string, after time.Duration, limit int) ([]string, error)

	// Forget removes up to limit tombstones of a definition whose workflows have
	// ended at least that long ago, with all that is left of them, and returns how
	// many. Their ids are free then.
	Forget(ctx context.Context, definition string, after time.Duration, limit int) (int, error)
}
