package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// Tasks of All run at the same time, each with a key of the workflow's own, and
// are merged in the order in which they stand.
func TestTasksRunAtTheSameTime(t *testing.T) {
	eachStore(t, func(w *world) {
		gates := []*gate{w.ledger.holds("w", "do-1"), w.ledger.holds("w", "do-2"), w.ledger.holds("w", "do-3")}
		n := w.worker()
		n.start("fan", "w", trip{Amount: 7})
		for _, g := range gates {
			g.arrived(w) // all of them are under way at once
		}
		why, err := n.Why(w.ctx(), "w")
		require.NoError(w, err)
		require.Equal(w, "waiting for 3 branches", why)
		for i := range gates {
			gates[len(gates)-1-i].release()
		}
		final := n.ends("w", store.Completed)
		var steps []string
		for _, r := range final.Data.Receipts {
			name, _, _ := strings.Cut(r, "#")
			steps = append(steps, name)
		}
		require.Equal(w, []string{"w/open/1", "w/do-1/1", "w/do-2/1", "w/do-3/1", "w/count/1"}, steps)

		recorded, err := n.Steps(w.ctx(), "w")
		require.NoError(w, err)
		require.Len(w, recorded, 5)
		for _, s := range recorded[1:4] {
			require.Equal(w, "fanning/1/"+s.Step, s.Branch)
			require.Equal(w, "w/"+s.Step+"/1", s.Key.String())
		}
		listed, err := n.List(w.ctx(), store.Query{})
		require.NoError(w, err)
		require.Len(w, listed, 1, "a branch is no workflow of its own")
	})
}

// undoneInReverse shows that whatever was done has been undone, newest first,
// whichever row recorded it.
func (n *node) undoneInReverse(id string) {
	n.w.Helper()
	steps, err := n.Steps(n.w.ctx(), id)
	require.NoError(n.w, err)
	undo := func(name string) string {
		if name == "open" {
			return "close"
		}
		return strings.Replace(name, "do-", "undo-", 1)
	}
	var want, got []string
	for _, s := range steps {
		switch is := strings.HasPrefix(s.Step, "undo-") || s.Step == "close"; {
		case is:
			got = append(got, s.Step)
		case s.Status != store.StepFailed:
			want = append(want, undo(s.Step))
		}
	}
	slices.Reverse(want)
	require.Equal(n.w, want, got)
}

// One task that is refused stops the others, those under way included, and all
// is undone in the reverse order of its completion, over all branches.
func TestATaskThatIsRefusedUndoesTheOthers(t *testing.T) {
	eachStore(t, func(w *world) {
		held, no := w.ledger.holds("w", "do-3"), newGate()
		w.ledger.next("w", "do-2", act{status: refused.status, gate: no})
		n := w.worker()
		n.start("fan", "w", trip{Amount: 7})
		held.arrived(w)
		no.arrived(w)
		w.eventually("the first task is recorded", func() bool { return slices.Contains(n.recorded("w"), "do-1:DONE:1") })
		no.release()
		final := n.ends("w", store.Compensated)
		held.release()
		require.Equal(w, "step do-2 was refused: the ledger refuses", final.Reason)
		require.Equal(w, "refused", string(final.Cause))
		require.Equal(w, []string{"undo-3", "undo-1", "close"}, n.recordedSteps("w")[4:])
		require.False(w, w.ledger.known("w", "undo-3"), "it was cut off, so its outcome was not learnt")
		require.True(w, w.ledger.known("w", "undo-1"))
		n.undoneInReverse("w")
	})
}

// recordedSteps returns the names of the recorded steps.
func (n *node) recordedSteps(id string) (names []string) {
	n.w.Helper()
	for _, r := range n.recorded(id) {
		name, _, _ := strings.Cut(r, ":")
		names = append(names, name)
	}
	return names
}

// A cancellation reaches every branch; the rollback begins once all have ended.
func TestCancelReachesTheBranches(t *testing.T) {
	eachStore(t, func(w *world) {
		w.ledger.next("w", "do-2", failsBefore) // pauses between two attempts
		held := w.ledger.holds("w", "do-3")
		n, c := w.worker(), w.client()
		n.start("fan", "w", trip{Amount: 7})
		held.arrived(w)
		require.NoError(w, c.Cancel(w.ctx(), "w", "changed my mind"))
		final := c.ends("w", store.Compensated)
		held.release()
		require.Equal(w, "changed my mind", final.Reason)
		n.undoneInReverse("w")
		require.Equal(w, 0, w.ledger.calls("w", "count"))
		require.ErrorIs(w, c.Cancel(w.ctx(), "w", "again"), engine.ErrEnded)
		branches, err := w.st.List(w.ctx(), store.Query{BranchesOf: "w"})
		require.NoError(w, err)
		require.Len(w, branches, 3)
		for _, b := range branches {
			require.True(w, b.Status.Ended(), "%s is %s", b.ID, b.Status)
		}
	})
}

// SCENARIO 29: a hundred tasks, and the worker is killed among them: what was recorded as
// done is not called again, what was under way is called once more with its
// key, and nothing is lost.
func TestAHundredTasksAndAKill(t *testing.T) {
	eachStore(t, func(w *world) {
		var gates []*gate
		for i := 51; i <= 100; i++ { // the process comes to hang in these, sooner or later
			gates = append(gates, w.ledger.holds("w", fmt.Sprintf("do-%d", i)))
		}
		c := w.client()
		p := w.process(job{Concurrency: 24}).joined()
		c.start("wide", "w", trip{Amount: 7})
		w.eventually("some tasks are recorded", func() bool { return len(c.recorded("w")) >= 10 })
		gates[0].arrivedAny(w, gates)
		p.dies()
		before := c.recordedSteps("w")
		require.Less(w, len(before), 100)
		for _, g := range gates {
			g.release()
		}
		w.worker()
		final := c.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, 100)
		for i, r := range final.Data.Receipts {
			require.True(w, strings.HasPrefix(r, fmt.Sprintf("w/do-%d/1#", i+1)), "%d: %s", i, r)
		}
		for _, name := range before {
			require.Equal(w, 1, w.ledger.calls("w", name), "%s was recorded before the kill", name)
		}
		require.Len(w, w.ledger.effects("w"), 100)
	})
}

// arrivedAny waits until a call has come to one of the gates.
func (*gate) arrivedAny(t testing.TB, gates []*gate) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(gates, func(g *gate) bool { return len(g.came) > 0 })
	}, patience, patience/10000)
}

// Branches recover on their own: the one whose worker is frozen is taken over,
// the others go on where they are, and the late answer changes nothing.
func TestEachBranchIsTakenOverByItself(t *testing.T) {
	eachStore(t, func(w *world) {
		first, second := w.ledger.holds("w", "do-1"), w.ledger.holds("w", "do-2")
		c := w.client()
		p := w.process(job{Concurrency: 2}).joined() // room for two of the three
		c.start("fan", "w", trip{Amount: 7})
		first.arrived(w)
		second.arrived(w)
		p.dies()
		n := w.worker()
		first.release()
		second.release()
		c.ends("w", store.Completed)
		require.Equal(w, 2, w.ledger.calls("w", "do-1"), "the killed one and the one after it")
		require.Equal(w, 2, w.ledger.calls("w", "do-2"))
		require.Equal(w, 1, w.ledger.calls("w", "do-3"))
		w.eventually("OnStep is told of the branch", func() bool {
			told := n.steps.of("w", "do-1")
			return len(told) == 1 && told[0].Branch == "fanning/1/do-1" && told[0].Key == "w/do-1/1"
		})
	})
}

// An InTx task is recorded in its own transaction, and told of in the same one.
func TestTransactionsInBranches(t *testing.T) {
	eachStore(t, func(w *world) {
		w.accounts()
		n := w.worker()
		n.start("mixed", "w", trip{ID: "w", Amount: 70})
		final := n.ends("w", store.Completed)
		require.Equal(w, "moved", final.Data.Receipts[0])
		a, b := w.balances()
		require.Equal(w, [2]int{930, 1070}, [2]int{a, b})

		w.ledger.next("undone", "notify", refused)
		n.start("mixed", "undone", trip{ID: "undone", Amount: 70})
		n.ends("undone", store.Compensated)
		a, b = w.balances()
		require.Equal(w, [2]int{930, 1070}, [2]int{a, b}, "nothing of it, or moved and moved back")
	})
}

// A branch that fails for good behind the point of no return is held; the
// workflow waits for it and says so.
func TestAHeldBranchIsNamed(t *testing.T) {
	eachStore(t, func(w *world) {
		w.accounts()
		w.ledger.next("w", "tell", refused)
		n := w.worker()
		n.start("mixed", "w", trip{ID: "w", Amount: 70})
		w.eventually("it is told which branch is held", func() bool {
			why, err := n.Why(w.ctx(), "w")
			require.NoError(w, err)
			return why == "waiting for 1 branch; branch telling/1/tell is held: step tell was refused: the ledger refuses"
		})
		require.ErrorIs(w, n.Cancel(w.ctx(), "w", ""), engine.ErrPastPivot)
		require.Equal(w, 1, n.get("w").Open)
	})
}

// The id of a branch is no id that a caller could use.
func TestBranchesCannotBeNamed(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.client()
		id := store.BranchID("w", "fanning/1/do-1")
		_, err := n.flows["fan"].Start(w.ctx(), id, trip{})
		require.ErrorIs(w, err, engine.ErrBadID)
		_, err = n.Get(w.ctx(), id)
		require.ErrorIs(w, err, engine.ErrBadID)
		require.ErrorIs(w, n.Cancel(w.ctx(), id, ""), engine.ErrBadID)
	})
}
