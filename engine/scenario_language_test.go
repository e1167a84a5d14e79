package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// learns registers a definition that only this test knows.
func (n *node) learns(d statemachine.Definition[trip]) {
	n.w.Helper()
	flow, err := engine.Register(n.Engine, d)
	require.NoError(n.w, err)
	n.flows[d.Name] = flow
}

// begins starts a workflow that no other engine will be asked about.
func (n *node) begins(flow, id string, data trip) {
	n.w.Helper()
	_, err := n.flows[flow].Start(n.w.ctx(), id, data)
	require.NoError(n.w, err)
}

// TestPollOutlivesItsWorker: each asking has a key and a record of its own; between
// two askings nobody owns the workflow, so another worker asks on.
func TestPollOutlivesItsWorker(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		var asked atomic.Int32
		keys := make(chan string, 10)
		ask := step.Call("own-ask", func(_ context.Context, key step.Key, _ trip) (int, error) {
			keys <- key.String()
			return int(asked.Add(1)), nil
		}).NoUndo("asking changes nothing")
		d := oneStep("polls", step.Call("own-x", func(context.Context, step.Key, trip) (string, error) { return "", nil }).NoUndo("x"))
		d.States = statemachine.States[trip]{
			"working": statemachine.Poll(ask, trip.self, (*trip).votes, func(n int) bool { return n == 4 }).Every(30*time.Millisecond).AtMost(10, "bad").Then("good"),
		}
		first := w.client()
		first.learns(d)
		first.run()
		first.begins("polls", "p", trip{})
		require.Equal(w, "p/own-ask/1", <-keys)
		require.Equal(w, "p/own-ask/2", <-keys)
		first.stop()
		second := w.client()
		second.learns(d)
		second.run()
		require.Equal(w, 4, second.ends("p", store.Completed).Data.Amount)
		require.Equal(w, []string{"own-ask:DONE:1", "own-ask:DONE:1", "own-ask:DONE:1", "own-ask:DONE:1"}, second.recorded("p"))
		require.EqualValues(w, 4, asked.Load())

		asked.Store(100)
		slow := d
		slow.Name = "polls-slowly"
		slow.States = statemachine.States[trip]{
			"working": statemachine.Poll(ask, trip.self, (*trip).votes, func(n int) bool { return n == 4 }).Every(time.Hour).Then("good"),
		}
		second.stop()
		third := w.client()
		third.learns(slow)
		third.run()
		third.begins("polls-slowly", "q", trip{})
		third.becomes("q", "it pauses", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		require.Equal(w, "waiting to ask step own-ask again (in 60 min)", third.why("q"))
		require.NoError(w, third.Cancel(w.ctx(), "q", "enough"))
		third.ends("q", store.Failed)
	})
}

func (t *trip) votes(n int) { t.Amount = n }

// TestUntilATime: a wait and a sleep end at the time that the data names, also if it
// has passed; and stand there while it has not.
func TestUntilATime(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		n := w.client()
		at := func(d time.Duration) func(trip) time.Time {
			when := time.Now().Add(d)
			return func(trip) time.Time { return when }
		}
		late := at(300 * time.Millisecond)
		d := oneStep("until", step.Call("own-x", func(context.Context, step.Key, trip) (string, error) { return "", nil }).NoUndo("x"))
		d.States = statemachine.States[trip]{
			"working": statemachine.SleepUntil(at(-time.Hour)).Then("dozing"),
			"dozing":  statemachine.SleepUntil(late).Then("waiting"),
			"waiting": statemachine.Await(ballot, (*trip).voted).Until(at(time.Hour), "bad").Then("good"),
		}
		n.learns(d)
		n.run()
		n.begins("until", "u", trip{})
		s := n.becomes("u", "it waits", func(s engine.Snapshot[trip]) bool { return s.State == "waiting" })
		now, err := w.st.Now(w.ctx())
		require.NoError(w, err)
		require.False(w, now.Before(late(trip{})), "not before its time")
		require.WithinDuration(w, time.Now().Add(time.Hour), s.WakeAt, slack)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "u", ballot, "yes"))
		n.ends("u", store.Completed)
		n.begins("until", "late", trip{})
		n.becomes("late", "it waits", func(s engine.Snapshot[trip]) bool { return s.State == "waiting" && s.Owner.IsZero() })
		w.due("late")
		n.ends("late", store.Failed)
	})
}

// TestAnAbandonedChild: its parent is cancelled and over at once; the child goes on,
// and nobody minds that it tells a parent who no longer waits.
func TestAnAbandonedChild(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("leaf")
		n := w.client()
		d := statemachine.Definition[trip]{
			Name: "leaves", Version: 1, Start: "first", OnFailure: "undone", Ends: ends,
			States: statemachine.States[trip]{
				"first": statemachine.Do(w.site.first(), trip.amount, (*trip).got).Then("second"),
				"second": statemachine.Do(statemachine.Child(w.site.leaf()).As("child-leaf").NoUndo("it stays").Abandon(), trip.bare, (*trip).returned).
					Then("good"),
			},
		}
		n.learns(d)
		n.run()
		child := "p/child-leaf/1"
		g := w.ledger.holds(child, "do-1")
		n.begins("leaves", "p", trip{Amount: 3})
		g.arrived(w)
		require.NoError(w, n.Cancel(w.ctx(), "p", "enough"))
		n.ends("p", store.Compensated)
		require.Contains(w, n.recorded("p"), "child-leaf:FAILED:1")
		require.Equal(w, store.Pending, n.get(child).Status)
		g.release()
		n.ends(child, store.Completed)
		require.Equal(w, store.Compensated, n.get("p").Status)

		n.begins("leaves", "q", trip{Amount: 3})
		require.Len(w, n.ends("q", store.Completed).Data.Receipts, 3, "one that is waited for gives its data")
	})
}

// TestASignalInATransaction: it comes with the commit of what it tells of, and not
// without it; also for a workflow of the same transaction.
func TestASignalInATransaction(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		for _, commit := range []bool{false, true} {
			w.inTx(func(ctx context.Context, tx store.Tx) bool {
				_, err := n.flows["vote"].StartTx(ctx, tx, "v", trip{Quorum: 2})
				require.NoError(w, err)
				require.NoError(w, engine.SignalTx(ctx, tx, n.Engine, "v", ballot, "yes", engine.MessageID("m")))
				require.NoError(w, engine.SignalTx(ctx, tx, n.Engine, "v", ballot, "yes", engine.MessageID("m")), "a duplicate")
				require.ErrorIs(w, engine.SignalTx(ctx, tx, n.Engine, "none", ballot, "yes"), engine.ErrNotFound)
				require.ErrorIs(w, engine.SignalTx(ctx, tx, n.Engine, "", ballot, "yes"), engine.ErrBadID)
				require.ErrorIs(w, engine.SignalTx(ctx, tx, n.Engine, "v", ballot, strings.Repeat("x", 2<<20)), engine.ErrTooLarge)
				return commit
			})
			_, err := n.Get(w.ctx(), "v")
			require.Equal(w, commit, err == nil, "%v", err)
		}
		n.becomes("v", "it has the first vote", func(s engine.Snapshot[trip]) bool { return len(s.Data.Votes) == 1 })
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "v", ballot, "no"))
		require.Equal(w, []string{"yes", "no"}, n.ends("v", store.Completed).Data.Votes)
	})
}
