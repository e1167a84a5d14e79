package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// oneStep is a definition of one step.
func oneStep(name string, s step.Step[trip, string]) statemachine.Definition[trip] {
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "working", OnFailure: "bad",
		States: statemachine.States[trip]{"working": statemachine.Do(s, trip.self, (*trip).got).Then("good")},
		Ends:   statemachine.Ends{"good": statemachine.Completed, "bad": statemachine.Failed},
	}
}

// TestProgressOutlivesItsWorker: the attempt after a lost lease goes on where the one
// before it has come to. The late worker writes nothing over that, although its body
// no longer listens.
func TestProgressOutlivesItsWorker(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		came, late, told := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		body := func(ctx context.Context, _ step.Key, _ trip) (string, error) {
			var n int
			found, err := step.Progress(ctx, &n)
			if err != nil || found {
				return fmt.Sprint("went on from ", n), err
			}
			for _, n := range []int{1, 2, 3} {
				if err := step.Heartbeat(ctx, n); err != nil {
					return "", err
				}
			}
			close(came)
			<-late
			err = step.Heartbeat(context.WithoutCancel(ctx), 99)
			told <- err
			return "", err
		}
		worker := func() *node {
			n := w.client()
			flow, err := engine.Register(n.Engine, oneStep("long", step.Call("own-copy", body).NoUndo("a copy harms nobody")))
			require.NoError(w, err)
			n.flows["long"] = flow
			n.run()
			return n
		}
		first := worker()
		_, err := first.flows["long"].Start(w.ctx(), "l", trip{})
		require.NoError(w, err)
		<-came
		second := worker()
		w.leaseOver(first.log.worker(w))
		require.Equal(w, []string{"went on from 3"}, second.ends("l", store.Completed).Data.Receipts)
		close(late)
		require.ErrorIs(w, <-told, engine.ErrLeaseLost)
		p, err := w.st.LastBeat(w.ctx(), "l", "l/own-copy/1")
		require.NoError(w, err)
		require.Equal(w, "3", string(p))
	})
}

// TestNoHeartbeatInATransaction: what it does is all or nothing.
func TestNoHeartbeatInATransaction(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(w *world) {
		w.knows("nap")
		n := w.client()
		told := make(chan error, 1)
		flow, err := engine.Register(n.Engine, oneStep("short", step.InTx("own-write", func(ctx context.Context, _ store.Tx, _ trip) (string, error) {
			told <- step.Heartbeat(ctx, 1)
			return "", nil
		}).NoUndo("it is a test")))
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "s", trip{})
		require.NoError(w, err)
		n.ends("s", store.Completed)
		require.ErrorIs(w, <-told, step.ErrNoHeartbeat)
	})
}
