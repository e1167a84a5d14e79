package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

const (
	middleOfW = "w/child-middle/1"
	leafOfW   = middleOfW + "/child-leaf/1"
)

// SCENARIO 28: a child is a workflow of its own, with an id that follows from its parent's,
// and gives its parent its data. Its parent's worker may die meanwhile.
func TestChildrenAndAParentThatDies(t *testing.T) {
	eachStore(t, func(w *world) {
		gate := w.ledger.holds(leafOfW, "do-2")
		c := w.client()
		p := w.process(job{}).joined()
		c.start("top", "w", trip{Amount: 7})
		gate.arrived(w)
		p.dies()
		listed, err := c.List(w.ctx(), store.Query{})
		require.NoError(w, err)
		require.Len(w, listed, 3)
		w.worker()
		gate.release()
		final := c.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, 6, "top, side, middle, two of leaf, count")
		require.Equal(w, 2, w.ledger.calls(leafOfW, "do-2"), "the killed one and the one after it")
		for _, id := range []string{middleOfW, leafOfW} {
			require.Equal(w, 1, w.ledger.calls(id, "do-1"), "no second child: %s", id)
			c.ends(id, store.Completed)
		}
		listed, err = c.List(w.ctx(), store.Query{})
		require.NoError(w, err)
		require.Len(w, listed, 3)
		require.Contains(w, c.recorded("w"), "child-middle:DONE:1")
	})
}

// A cancellation goes down three levels, and each level is rolled back before
// the one above it goes on.
func TestCancelThreeLevelsDeep(t *testing.T) {
	eachStore(t, func(w *world) {
		gate := w.ledger.holds(leafOfW, "do-2")
		n, c := w.worker(), w.client()
		n.start("top", "w", trip{Amount: 7})
		gate.arrived(w)
		w.eventually("the side task is done", func() bool { return len(n.recorded("w")) == 2 })
		require.NoError(w, c.Cancel(w.ctx(), "w", "changed my mind"))
		c.ends("w", store.Compensated)
		gate.release()
		for _, id := range []string{middleOfW, leafOfW} {
			s := c.ends(id, store.Compensated)
			require.Equal(w, "changed my mind", s.Reason)
			require.Equal(w, statemachine.Cancelled, s.Cause)
		}
		require.Equal(w, []string{"do-1", "do-2", "undo-2", "undo-1"}, w.ledger.effects(leafOfW))
		require.Equal(w, []string{"do-1", "undo-1"}, w.ledger.effects(middleOfW))
		require.Equal(w, []string{"do-1", "side", "undo-side", "undo-1"}, w.ledger.effects("w"))
		require.Equal(w, []string{"do-1:DONE:1", "side:DONE:1", "child-middle:FAILED:1", "undo-side:DONE:1", "undo-1:DONE:1"}, n.recorded("w"))
	})
}

// A child that fails is seen once, and its parent is rolled back.
func TestAChildThatFails(t *testing.T) {
	eachStore(t, func(w *world) {
		w.ledger.next(leafOfW, "do-2", refused)
		n := w.worker()
		n.start("top", "w", trip{Amount: 7})
		final := n.ends("w", store.Compensated)
		require.Equal(w, "child "+middleOfW+" has ended rolled back: child "+leafOfW+
			" has ended rolled back: step do-2 was refused: the ledger refuses", final.Reason)
		require.Equal(w, 1, w.ledger.calls(leafOfW, "do-1"), "no second child")
		require.Equal(w, []string{"do-1", "undo-1"}, w.ledger.effects(middleOfW))
	})
}

// A child that has completed is undone by the undo that its parent names.
func TestACompletedChildIsUndone(t *testing.T) {
	eachStore(t, func(w *world) {
		w.ledger.next("w", "count", refused)
		n := w.worker()
		n.start("top", "w", trip{Amount: 7})
		n.ends("w", store.Compensated)
		n.ends(middleOfW, store.Completed)
		require.Equal(w, 1, w.ledger.calls("w", "undo-middle"))
		require.True(w, w.ledger.known("w", "undo-middle"))
	})
}

// A child may be cancelled by itself; its parent takes that for a failure. A
// start of its id finds it.
func TestAChildIsAWorkflow(t *testing.T) {
	eachStore(t, func(w *world) {
		gate := w.ledger.holds(leafOfW, "do-2")
		n := w.worker()
		handle, err := engine.Register(w.client().Engine, w.site.leaf())
		require.NoError(w, err, "it was registered along with its parent, and may be by itself")
		n.start("top", "w", trip{Amount: 7})
		gate.arrived(w)
		started, err := handle.Start(w.ctx(), leafOfW, trip{Amount: 7})
		require.NoError(w, err)
		require.False(w, started.Created)
		_, err = handle.Start(w.ctx(), leafOfW, trip{Amount: 8})
		require.ErrorIs(w, err, engine.ErrConflict)
		require.NoError(w, n.Cancel(w.ctx(), leafOfW, "by itself"))
		n.ends("w", store.Compensated)
		gate.release()
	})
}

// The same version of a child with another graph is refused, and nothing is
// registered.
func TestChildrenAreRegisteredOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		e, err := engine.New(w.st, engine.Config{})
		require.NoError(w, err)
		_, err = engine.Register(e, w.site.middle())
		require.NoError(w, err)
		require.Equal(w, []store.Def{{Name: "leaf", Version: 1}, {Name: "middle", Version: 1}}, e.Definitions())
		_, err = engine.Register(e, w.site.top())
		require.NoError(w, err, "its child is there already, and is the same")

		other := w.site.leaf()
		delete(other.States, "s2")
		other.States["s1"] = statemachine.Do(w.site.first(), trip.amount, nil).Then("good")
		d := w.site.middle()
		d.Name = "other"
		d.States["s2"] = statemachine.Do(statemachine.Child(other).NoUndo("it stays"), trip.bare, nil).Then("good")
		_, err = engine.Register(e, d)
		require.ErrorIs(w, err, engine.ErrGraphChanged)
		require.Len(w, e.Definitions(), 3)
		_, err = engine.Register(e, w.site.leaf())
		require.NoError(w, err)
		_, err = engine.Register(e, w.site.leaf())
		require.ErrorIs(w, err, engine.ErrDuplicateDefinition)
	})
}
