package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// fork makes a fork that must succeed.
func (n *node) fork(o engine.ForkOrder) engine.Forked {
	n.w.Helper()
	f, err := n.Fork(n.w.ctx(), o)
	require.NoError(n.w, err)
	return f
}

// refusesFork makes a fork that must be refused for that reason.
func (n *node) refusesFork(o engine.ForkOrder, why string) {
	n.w.Helper()
	_, err := n.Fork(n.w.ctx(), o)
	require.ErrorIs(n.w, err, engine.ErrRefused)
	require.ErrorContains(n.w, err, why)
}

// TestAForkAsksWithTheSameKeys: a fork of a completed workflow asks again what that
// has asked, and nothing happens twice; its data comes out the same.
func TestAForkAsksWithTheSameKeys(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		n.start("saga", "w", trip{Amount: 7})
		original := n.ends("w", store.Completed)
		order := engine.ForkOrder{From: "w", To: "f", Step: "do-3", Input: []byte(`{"Amount":7}`), Actor: "ann", Reason: "a lost parcel", RequestID: "r", DryRun: true}
		want := engine.Forked{State: "s3", Keeps: []step.Key{step.NewKey("w", "do-3", 1), step.NewKey("w", "do-4", 1)}}
		require.Equal(w, want, n.fork(order))
		require.Equal(w, "begins in s3; asks again with the keys w/do-3/1, w/do-4/1", n.fork(order).String())
		_, err := n.Get(w.ctx(), "f")
		require.ErrorIs(w, err, engine.ErrNotFound, "a dry run writes nothing")
		entries, err := n.Audit(w.ctx(), "w")
		require.NoError(w, err)
		require.Empty(w, entries)

		order.DryRun = false
		require.Equal(w, want, n.fork(order))
		copied := n.ends("f", store.Completed)
		require.Equal(w, original.Data, copied.Data)
		require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:DONE:1", "do-4:DONE:1"}, n.recorded("f"))
		steps, err := n.Steps(w.ctx(), "f")
		require.NoError(w, err)
		require.Equal(w, "w/do-2/1", steps[1].Key.String(), "as it was asked")
		require.Equal(w, []int{1, 1, 2, 2}, []int{w.ledger.calls("w", "do-1"), w.ledger.calls("w", "do-2"), w.ledger.calls("w", "do-3"), w.ledger.calls("w", "do-4")})
		require.Equal(w, []string{"do-1", "do-2", "do-3", "do-4"}, w.ledger.effects("w"))
		require.Empty(w, w.ledger.effects("f"))

		want.Repeated = true
		require.Equal(w, want, n.fork(order), "an order is carried out once")
		order.RequestID = "another"
		n.refusesFork(order, `the id "f" is taken`)
		for _, id := range []string{"w", "f"} {
			entries, err := n.Audit(w.ctx(), id)
			require.NoError(w, err)
			require.Len(w, entries, 1, id)
			require.Equal(w, []string{"fork", "ann", "a lost parcel"}, []string{entries[0].What, entries[0].Actor, entries[0].Reason})
		}
		n.refusesFork(engine.ForkOrder{From: "f", To: "g", Step: "do-3", Input: []byte(`{"Amount":7}`)}, "it is a fork of")
	})
}

// TestAForkIsRolledBack: what it begins behind is undone with the keys that its origin
// would use; a step that the origin never came to has the fork's own key.
func TestAForkIsRolledBack(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		gate := w.ledger.holds("w", "do-3")
		n.start("saga", "w", trip{Amount: 7})
		gate.arrived(w)
		n.refusesFork(engine.ForkOrder{From: "w", To: "f", Step: "do-1"}, "it goes on")
		_, err := n.Operate(w.ctx(), "w", engine.Order{Verb: engine.Terminate})
		require.NoError(w, err)
		gate.release()
		n.ends("w", store.Terminated)
		w.ledger.next("f", "do-4", refused)
		f := n.fork(engine.ForkOrder{From: "w", To: "f", Step: "do-3"})
		require.Equal(w, []step.Key{step.NewKey("w", "do-3", 1)}, f.Keeps, "no input is needed: its data has not changed since")
		n.ends("f", store.Compensated)
		require.Equal(w, []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"}, w.ledger.effects("w"))
		require.Equal(w, 1, w.ledger.calls("f", "do-4"))
		require.Empty(w, w.ledger.effects("f"))
	})
}

// TestAForkOfAWait: signals that were taken up are part of what is computed.
func TestAForkOfAWait(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		n.start("vote", "v", trip{Quorum: 2})
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "v", ballot, "yes"))
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "v", ballot, "no"))
		original := n.ends("v", store.Completed)
		n.fork(engine.ForkOrder{From: "v", To: "f", Step: "count", Input: []byte(`{"Quorum":2}`)})
		require.Equal(w, original.Data, n.ends("f", store.Completed).Data)
		require.Equal(w, 2, w.ledger.calls("v", "count"))
	})
}

// TestForksThatWouldBeWrong are refused, with the reason, and write nothing.
func TestForksThatWouldBeWrong(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "moving", "fan")
		w.accounts()
		n := w.worker()
		n.start("saga", "w", trip{Amount: 7})
		n.ends("w", store.Completed)
		w.ledger.next("undone", "do-3", refused)
		n.start("saga", "undone", trip{Amount: 7})
		n.ends("undone", store.Compensated)
		input := []byte(`{"Amount":7}`)
		n.refusesFork(engine.ForkOrder{From: "w", To: "f", Step: "do-2"}, "its input is needed")
		n.refusesFork(engine.ForkOrder{From: "w", To: "f", Step: "do-2", Input: []byte(`{"Amount":8}`)}, "not the input that it was started with")
		n.refusesFork(engine.ForkOrder{From: "w", To: "f", Step: "do-9", Input: input}, `no step "do-9"`)
		n.refusesFork(engine.ForkOrder{From: "w", To: "f", Step: "undo-1", Input: input}, "is a child or an undo")
		n.refusesFork(engine.ForkOrder{From: "undone", To: "f", Step: "do-3"}, "do-2 was undone by undo-2")
		n.refusesFork(engine.ForkOrder{From: "undone", To: "f", Step: "do-1", Input: input}, "was undone by undo-")
		n.refusesFork(engine.ForkOrder{From: "undone", To: "f", Step: "do-4", Input: input}, `it never came to step "do-4"`)
		_, err := n.Fork(w.ctx(), engine.ForkOrder{From: "w", To: "f", Step: "do-2", Input: []byte(`{`)})
		require.ErrorIs(w, err, engine.ErrBadInput)
		_, err = n.Fork(w.ctx(), engine.ForkOrder{From: "none", To: "f", Step: "do-2"})
		require.ErrorIs(w, err, engine.ErrNotFound)
		_, err = n.Fork(w.ctx(), engine.ForkOrder{From: "w", To: "", Step: "do-2"})
		require.ErrorIs(w, err, engine.ErrBadID)
		_, err = n.Get(w.ctx(), "f")
		require.ErrorIs(w, err, engine.ErrNotFound)

		n.start("moving", "m", trip{Amount: 10})
		n.ends("m", store.Completed)
		f := n.fork(engine.ForkOrder{From: "m", To: "m2", Step: "move", Input: []byte(`{"Amount":10}`), DryRun: true})
		require.Equal(w, []string{"move (in-tx)"}, f.Repeats, "no key protects what a transaction does")
		n.start("fan", "b", trip{Amount: 1})
		n.ends("b", store.Completed)
		n.refusesFork(engine.ForkOrder{From: "b", To: "f", Step: "count", Input: []byte(`{"Amount":1}`)}, "have run in branches")
	})
}
