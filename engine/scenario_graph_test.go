package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// SCENARIO 21, its deadline: it passes during step 3, which is cut off. The undo runs
// under a context of its own, and undoes that step too, since it may have had its
// effect.
func TestDeadlineDuringAStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("hasty")
		n := w.worker()
		gate := w.ledger.holds("w", "do-3")
		began := time.Now()
		n.start("hasty", "w", trip{Amount: 7})
		gate.arrived(w)
		final := n.ends("w", store.Compensated)
		require.GreaterOrEqual(w, time.Since(began), hastyDeadline-100*time.Millisecond)
		gate.release()
		require.Equal(w, statemachine.Overdue, final.Cause)
		require.Equal(w, "not done within 5s", final.Reason)
		require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:UNKNOWN:1", "undo-3:DONE:1", "undo-2:DONE:1", "undo-1:DONE:1"}, n.recorded("w"))
		require.Equal(w, []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"}, w.ledger.effects("w"))
		require.False(w, w.ledger.known("w", "undo-3"))

		n.start("hasty", "quick", trip{Amount: 7})
		n.ends("quick", store.Completed)
	})
}

// A deadline wakes a workflow that waits for nothing but a signal, and one whose
// worker is gone.
func TestDeadlineWhileWaiting(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("hasty-vote", "hasty")
		n := w.worker()
		n.start("hasty-vote", "w", trip{Amount: 7})
		final := n.ends("w", store.Compensated)
		require.Equal(w, statemachine.Overdue, final.Cause)
		require.GreaterOrEqual(w, final.EndedAt.Sub(final.CreatedAt), hastyDeadline, "not too early")

		w.ledger.next("dead", "do-2", tells("exit"))
		n.stop()
		n.start("hasty", "dead", trip{Amount: 7})
		p := w.process(job{})
		p.code()
		w.leaseOver(p.log.worker(w))
		w.eventually("the deadline passes", func() bool {
			now, err := w.st.Now(w.ctx())
			require.NoError(w, err)
			return now.Sub(n.get("dead").CreatedAt) > hastyDeadline
		})
		n.run()
		final = n.ends("dead", store.Compensated)
		require.Equal(w, statemachine.Overdue, final.Cause)
		require.Equal(w, 1, w.ledger.calls("dead", "do-2"), "it is not called again, but undone")
		require.Equal(w, 1, w.ledger.calls("dead", "undo-2"))
	})
}

// Behind the point of no return a deadline needs a person.
func TestDeadlineBehindThePivot(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("hasty-vote")
		n := w.worker()
		n.start("hasty-vote", "w", trip{Amount: 7})
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "w", ballot, "yes"))
		require.Equal(w, "not done within 5s, and behind the point of no return", n.held("w").Reason)
		n.operate("w", engine.Retry)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "w", closing, 1))
		n.ends("w", store.Completed)
	})
}

// The first of several is taken; what the others have done is undone, and the
// workflow goes on.
func TestTheFirstIsTaken(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("race")
		n := w.worker()
		slow := w.ledger.holds("w", "do-1") // has its effect, and no answer
		w.ledger.next("w", "do-3", refused)
		won := w.ledger.holds("w", "do-2")
		n.start("race", "w", trip{Amount: 7})
		slow.arrived(w)
		won.arrived(w)
		won.release()
		final := n.ends("w", store.Completed)
		slow.release()
		require.Len(w, final.Data.Receipts, 3, "of what came before, the winner, and what came behind")
		require.Contains(w, final.Data.Receipts[1], "w/do-2/1#")
		require.Contains(w, n.recorded("w"), "do-1:UNKNOWN:1")
		require.Equal(w, 1, w.ledger.calls("w", "undo-1"))
		require.Zero(w, w.ledger.calls("w", "undo-2")+w.ledger.calls("w", "undo-3")+w.ledger.calls("w", "close"))

		for _, name := range []string{"do-1", "do-2", "do-3"} {
			w.ledger.next("none", name, refused)
		}
		n.start("race", "none", trip{Amount: 7})
		final = n.ends("none", store.Compensated)
		require.Equal(w, statemachine.Refused, final.Cause)
	})
}

// A state whose step fails may go on by another way, and a wait take the first of
// several signals, or the time that the data says.
func TestElseAndAwaitAny(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("detour")
		n := w.worker()
		for _, id := range []string{"voted", "closed", "late"} {
			w.ledger.next(id, "do-2", failsBefore, failsAfter)
			pause := time.Hour
			if id == "late" {
				pause = 100 * time.Millisecond
			}
			n.start("detour", id, trip{Amount: 7, Pause: pause})
		}
		for _, id := range []string{"voted", "closed"} {
			n.becomes(id, "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits == "ballot|closing" })
		}
		why, err := n.Why(w.ctx(), "voted")
		require.NoError(w, err)
		require.Contains(w, why, "waiting for signal ballot or closing since")
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "voted", ballot, "yes"))
		final := n.ends("voted", store.Completed)
		require.Equal(w, []string{"yes"}, final.Data.Votes)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "closed", closing, 1))
		n.ends("closed", store.Compensated)
		require.Equal(w, []string{"do-1:DONE:1", "do-2:UNKNOWN:2", "other:DONE:1", "unother:DONE:1", "undo-2:DONE:1", "undo-1:DONE:1"}, n.recorded("closed"))
		final = n.ends("late", store.Compensated)
		require.Equal(w, statemachine.TimedOut, final.Cause)
		require.Equal(w, `no signal "ballot" or "closing" in time`, final.Reason)
	})
}
