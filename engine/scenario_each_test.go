package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Hundreds of items, no more of them at once than was said, and merged in their
// order.
func TestEachOverManyItems(t *testing.T) {
	eachStore(t, func(w *world) {
		many := 1000
		if raced {
			many = 100
		}
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.Concurrency = 64 }})
		n.start("each", "w", trip{Amount: many})
		final := n.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, many+2)
		for i, r := range final.Data.Receipts[1 : many+1] {
			require.True(w, strings.HasPrefix(r, fmt.Sprintf("%d:%d:w/item/%d.1#", i, i+1, i+1)), r)
		}
		branches, err := w.st.List(w.ctx(), store.Query{BranchesOf: "w"})
		require.NoError(w, err)
		require.Len(w, branches, 8)
		require.Equal(w, many, w.ledger.calls("w", "item"))
		root, err := w.st.Get(w.ctx(), "w")
		require.NoError(w, err)
		require.Less(w, root.Revision, int64(50), "the root moves when a lane ends, not with each item")
	})
}

// A worker is killed among its items: what was recorded is not done again.
func TestItemsAndAKill(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.client()
		p := w.process(job{Concurrency: 16}).joined()
		c.start("each", "w", trip{Amount: 200})
		w.eventually("some items are recorded", func() bool { return len(c.recorded("w")) >= 40 })
		p.dies()
		before, err := w.st.History(w.ctx(), "w")
		require.NoError(w, err)
		w.worker()
		final := c.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, 202)
		after, err := w.st.History(w.ctx(), "w")
		require.NoError(w, err)
		require.Equal(w, before, after[:len(before)], "the records stay")
		require.LessOrEqual(w, w.ledger.calls("w", "item"), 208, "one of each lane may have been called twice")
	})
}

// A cancellation undoes the items that were done or begun, newest first.
func TestItemsAreUndone(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		n.start("each", "w", trip{Amount: 60})
		w.eventually("some items are recorded", func() bool { return len(n.recorded("w")) >= 12 })
		require.NoError(w, n.Cancel(w.ctx(), "w", "changed my mind"))
		n.ends("w", store.Compensated)
		steps, err := n.Steps(w.ctx(), "w")
		require.NoError(w, err)
		var done, undone []int
		for _, s := range steps {
			switch {
			case s.Step == "item" && s.Status != store.StepFailed:
				done = append([]int{s.Item}, done...)
			case s.Step == "unitem":
				undone = append(undone, s.Item)
				require.Equal(w, fmt.Sprintf("w/unitem/%d.1", s.Item), s.Key.String())
			}
		}
		require.NotEmpty(w, done)
		require.Equal(w, done, undone)
	})
}

// As many items may fail as was said; with one more the workflow is rolled back.
func TestItemsThatMayFail(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		for id, failing := range map[string]int{"two": 2, "three": 3} {
			acts := make([]act, failing)
			for i := range acts {
				acts[i] = refused
			}
			w.ledger.next(id, "item", acts...)
			n.start("tolerant", id, trip{Amount: 12})
		}
		final := n.ends("two", store.Completed)
		require.Len(w, final.Data.Receipts, 12)
		final = n.ends("three", store.Compensated)
		require.Contains(w, []statemachine.Cause{statemachine.Exhausted, statemachine.Refused}, final.Cause)
	})
}

// Nothing to do is done at once.
func TestEachWithoutItems(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		n.start("each", "w", trip{})
		final := n.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, 2)
	})
}
