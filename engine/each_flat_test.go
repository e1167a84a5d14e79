package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// scale measures what an Each writes: how many bytes each transition of its lanes
// holds, and the largest of the root.
type scale struct {
	store.Store
	mu    sync.Mutex
	lanes []int
	root  int
}

func (s *scale) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	s.mu.Lock()
	for _, t := range ts {
		n := len(t.Data) + len(t.Cursor)
		for _, r := range t.Steps {
			n += len(r.Input) + len(r.Output)
		}
		if store.BranchOf(t.ID) != "" {
			s.lanes = append(s.lanes, n)
		} else {
			for _, b := range t.Starts {
				n += len(b.Data)
			}
			s.root = max(s.root, n)
		}
	}
	s.mu.Unlock()
	return s.Store.Commit(ctx, w, ts)
}

// TestEachIsFlat: what the commit of an item writes does not grow with the number of
// items. It prints what it has measured: bytes of an item's commit (median), the
// largest of the root (which deals out the items, and merges the results), and the
// live heap once all is done. Items that are in the data are in the commits that
// carry the data; no item's is.
func TestEachIsFlat(t *testing.T) {
	sizes := []int{10, 1_000, 10_000}
	if raced || testing.Short() {
		sizes = []int{10, 100, 1_000}
	}
	t.Parallel()
	onSQLite(t, func(w *world) {
		w.knows("each")
		var median []int
		for _, many := range sizes {
			s := &scale{}
			n := w.worker(nodeOptions{
				wrap: func(st store.Store) store.Store { s.Store = st; return s },
				tune: func(c *engine.Config) { c.MaxPayload = engine.HardMaxPayload },
			})
			id := fmt.Sprintf("w%d", many)
			n.start("each", id, trip{Amount: many})
			n.ends(id, store.Completed)
			n.stop()
			slices.Sort(s.lanes)
			require.GreaterOrEqual(w, len(s.lanes), many)
			median = append(median, s.lanes[len(s.lanes)/2])
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			w.Logf("items %6d   an item's commit %5d B   the root's largest %8d B   live heap %6d KiB", many, s.lanes[len(s.lanes)/2], s.root, m.HeapAlloc>>10)
		}
		require.Less(w, float64(median[2]), 1.5*float64(median[0])+32, "a few digits more, and no more than that")
	})
}
