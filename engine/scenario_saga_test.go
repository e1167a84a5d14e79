package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Four steps succeed: each once, and nothing is undone. The last is refused: the
// three before it are undone, once each, newest first. The first is refused:
// there is nothing to undo.
func TestSaga(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		w.ledger.next("fourth", "do-4", refused)
		w.ledger.next("first", "do-1", refused)
		for _, tt := range []struct {
			id      string
			status  store.Status
			effects []string
			steps   []string
		}{
			{"good", store.Completed, []string{"do-1", "do-2", "do-3", "do-4"}, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:DONE:1", "do-4:DONE:1"}},
			{
				"fourth", store.Compensated, []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"},
				[]string{"do-1:DONE:1", "do-2:DONE:1", "do-3:DONE:1", "do-4:FAILED:1", "undo-3:DONE:1", "undo-2:DONE:1", "undo-1:DONE:1"},
			},
			{"first", store.Compensated, []string{}, []string{"do-1:FAILED:1"}},
		} {
			n.start("saga", tt.id, trip{Amount: 1})
			n.ends(tt.id, tt.status)
			require.Equal(w, tt.effects, w.ledger.effects(tt.id))
			require.Equal(w, tt.steps, n.recorded(tt.id))
		}
		for _, r := range w.ledger.all() {
			require.Equal(w, 1, r.calls, r.key)
		}
		require.Equal(w, []string{"do-1:done", "do-2:done", "do-3:done", "do-4:refused", "undo-3:done", "undo-2:done", "undo-1:done"}, n.steps.outcomes("fourth"))
	})
}

// An undo fails once after its effect: it is tried again with its own key, and
// its effect is there once. The reason of the rollback is still told.
func TestUndoFailsOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		w.ledger.next("w", "do-3", refused)
		w.ledger.next("w", "undo-2", failsAfter)
		n := w.worker()
		n.start("saga", "w", trip{Amount: 1})
		final := n.ends("w", store.Compensated)
		require.Equal(w, "step do-3 was refused: the ledger refuses", final.Reason)
		require.Equal(w, 2, w.ledger.calls("w", "undo-2"))
		require.Equal(w, []string{"do-1", "do-2", "undo-2", "undo-1"}, w.ledger.effects("w"))
	})
}

// An undo that fails for good needs a person: it is never dropped.
func TestUndoFailsForGood(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		w.ledger.next("w", "do-3", refused)
		w.ledger.next("w", "undo-2", failsBefore, failsBefore, failsBefore)
		n := w.worker()
		n.start("saga", "w", trip{Amount: 1})
		held := n.becomes("w", "it is held", func(s engine.Snapshot[trip]) bool { return s.Status == store.Held })
		require.Equal(w, "undo undo-2 failed 3 times: the ledger says 500: scripted", held.Reason)
		require.Equal(w, []string{"do-1", "do-2"}, w.ledger.effects("w"), "undo-1 waits for undo-2")
	})
}

// kill -9 during an undo: the next worker goes on at that undo, none is skipped
// and none doubled; and what is seen meanwhile tells done, running and pending.
func TestKilledDuringAnUndo(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		w.ledger.next("w", "do-4", refused)
		gate := w.ledger.holds("w", "undo-2")
		c := w.client()
		c.start("saga", "w", trip{Amount: 1})
		p := w.process(job{})
		gate.arrived(w)
		meanwhile := func() {
			s := c.get("w")
			require.Equal(w, store.Compensating, s.Status)
			require.Equal(w, statemachine.Refused, s.Cause)
			require.Equal(w, "undo-2", s.Mark.Step, "running")
			require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:DONE:1", "do-4:FAILED:1", "undo-3:DONE:1"}, c.recorded("w"),
				"undo-3 is done, undo-1 still to come")
		}
		meanwhile()
		p.dies()
		meanwhile()
		w.process(job{})
		c.ends("w", store.Compensated)
		require.Equal(w, []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"}, w.ledger.effects("w"))
		require.Equal(w, []int{1, 2, 1}, []int{w.ledger.calls("w", "undo-3"), w.ledger.calls("w", "undo-2"), w.ledger.calls("w", "undo-1")})
		require.Equal(w, "undo-2:DONE:2", c.recorded("w")[5])
	})
}

// A cancellation before anything has begun: nothing is called at all.
func TestCancelBeforeTheStart(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		c := w.client()
		c.start("saga", "w", trip{Amount: 1})
		require.NoError(w, c.Cancel(w.ctx(), "w", "changed my mind"))
		w.worker()
		final := c.ends("w", store.Compensated)
		require.Equal(w, statemachine.Cancelled, final.Cause)
		require.Equal(w, "changed my mind", final.Reason)
		require.Empty(w, w.ledger.all())
		require.Empty(w, c.recorded("w"))
		require.ErrorIs(w, c.Cancel(w.ctx(), "w", "again"), engine.ErrEnded)
		require.ErrorIs(w, c.Cancel(w.ctx(), "no-such", ""), engine.ErrNotFound)
	})
}

// A cancellation during a step cuts its body off. It may have had its effect, so
// the rollback begins with it. The same where the worker had claimed the
// workflow and where it had started it itself, and for a first step and a later
// one; and one of a step that pauses between two attempts.
func TestCancelDuringAStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("rare", "saga")
		c, n := w.client(), w.worker()
		n.log.await(w, 1, "worker joined")
		for _, tt := range []struct {
			id      string
			starter *node
			step    string
			effects []string
		}{
			{"claimed-1", c, "do-1", []string{"do-1", "undo-1"}},
			{"claimed-3", c, "do-3", []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"}},
			{"owned-1", n, "do-1", []string{"do-1", "undo-1"}},
			{"owned-3", n, "do-3", []string{"do-1", "do-2", "do-3", "undo-3", "undo-2", "undo-1"}},
		} {
			gate := w.ledger.holds(tt.id, tt.step)
			tt.starter.start("saga", tt.id, trip{Amount: 1})
			gate.arrived(w)
			require.NoError(w, c.Cancel(w.ctx(), tt.id, "changed my mind", engine.MessageID("m")))
			require.NoError(w, c.Cancel(w.ctx(), tt.id, "changed my mind", engine.MessageID("m")), "a duplicate changes nothing")
			final := c.ends(tt.id, store.Compensated) // the gate is still closed
			require.Equal(w, statemachine.Cancelled, final.Cause, tt.id)
			require.Equal(w, tt.effects, w.ledger.effects(tt.id), tt.id)
			require.False(w, w.ledger.known(tt.id, "un"+tt.step), tt.id)
			require.Equal(w, 1, w.ledger.calls(tt.id, tt.step), tt.id)
			require.Contains(w, n.steps.outcomes(tt.id), tt.step+":cut")
		}

		w.ledger.next("paused", "do-1", failsAfter)
		c.start("rare", "paused", trip{Amount: 1})
		c.becomes("paused", "it pauses for an hour", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		require.NoError(w, c.Cancel(w.ctx(), "paused", "changed my mind"))
		c.ends("paused", store.Compensated)
		require.Equal(w, []string{"do-1", "undo-1"}, w.ledger.effects("paused"))
	})
}

// A body that is cut off, and is refused all the same, has said what there is to
// know: that it had no effect. It is not called again to say so.
func TestRefusedWhileCutOff(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		begun := make(chan struct{}, 9)
		refuses := step.Call("refuses", func(ctx context.Context, _ step.Key, _ int) (string, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return "", step.Reject(errors.New("no"))
		}).NoUndo("it is a test")
		def := statemachine.Definition[trip]{
			Name: "refusal", Version: 1, Start: "s1", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{
				"s1": statemachine.Do(step.Call("do-1", w.site.call).Undo(step.UndoCall("undo-1", w.site.undo)), trip.amount, nil).Then("s2"),
				"s2": statemachine.Do(refuses, trip.amount, nil).Then("good"),
			},
		}
		c, n := w.client(), w.client()
		flow, err := engine.Register(c.Engine, def)
		require.NoError(w, err)
		_, err = engine.Register(n.Engine, def)
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{Amount: 1})
		require.NoError(w, err)
		<-begun
		require.NoError(w, c.Cancel(w.ctx(), "w", "changed my mind"))
		final := c.ends("w", store.Compensated)
		require.Equal(w, statemachine.Refused, final.Cause)
		require.Equal(w, []string{"do-1:DONE:1", "refuses:FAILED:1", "undo-1:DONE:1"}, c.recorded("w"))
		require.Empty(w, begun, "called once")
	})
}

// A cancellation in a wait undoes what was done before it; one during the
// rollback changes nothing of it.
func TestCancelWhileWaitingAndDuringTheRollback(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		n.start("vote", "waits", trip{Amount: 1, Quorum: 1})
		n.becomes("waits", "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits == "ballot" })
		gate := w.ledger.holds("waits", "close")
		require.NoError(w, n.Cancel(w.ctx(), "waits", "no more votes"))
		gate.arrived(w)
		require.NoError(w, n.Cancel(w.ctx(), "waits", "really"), "it is taken up, and comes too late")
		gate.release()
		final := n.ends("waits", store.Compensated)
		require.Equal(w, "no more votes", final.Reason)
		require.Equal(w, []string{"open", "close"}, w.ledger.effects("waits"))
		require.Equal(w, 1, w.ledger.calls("waits", "close"), "it was not cut off")
	})
}

// A cancellation that comes while the pivot is under way waits for its outcome:
// the body is not cut off, and then there is only forward.
func TestCancelAroundThePivot(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("parcel")
		c, n := w.client(), w.worker()
		n.log.await(w, 1, "worker joined")
		for id, starter := range map[string]*node{"claimed": c, "owned": n} {
			send, tell := w.ledger.holds(id, "send"), w.ledger.holds(id, "tell")
			starter.start("parcel", id, trip{Amount: 1})
			send.arrived(w)
			require.NoError(w, c.Cancel(w.ctx(), id, "too late?"))
			send.release()
			tell.arrived(w)
			require.ErrorIs(w, c.Cancel(w.ctx(), id, "and now?"), engine.ErrPastPivot)
			tell.release()
			c.ends(id, store.Completed)
			require.Equal(w, []string{"pack", "send", "tell"}, w.ledger.effects(id))
			require.Equal(w, 1, w.ledger.calls(id, "send"))
		}

		gate := newGate()
		w.ledger.next("again", "send", act{status: 500, gate: gate})
		c.start("parcel", "again", trip{Amount: 1})
		gate.arrived(w)
		require.NoError(w, c.Cancel(w.ctx(), "again", "between two attempts"))
		gate.release()
		c.ends("again", store.Completed)
		require.Equal(w, 2, w.ledger.calls("again", "send"))
		inbox, err := w.st.Inbox(w.ctx(), "again")
		require.NoError(w, err)
		require.Empty(w, inbox, "the request was parked, and then answered")

		w.ledger.next("refused", "send", refused)
		n.start("parcel", "refused", trip{Amount: 1})
		n.ends("refused", store.Compensated)
		require.Equal(w, []string{"pack", "unpack"}, w.ledger.effects("refused"), "a pivot that is refused is no pivot")
	})
}

// A pivot whose outcome is unknown is never rolled back, and neither is anything
// behind it: what fails for good needs a person.
func TestBehindThePivotThereIsOnlyForward(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("parcel")
		n := w.worker()
		for id, step := range map[string]string{"pivot": "send", "later": "tell"} {
			w.ledger.next(id, step, failsBefore, failsBefore, failsBefore)
			n.start("parcel", id, trip{Amount: 1})
			held := n.becomes(id, "it is held", func(s engine.Snapshot[trip]) bool { return s.Status == store.Held })
			require.Equal(w, "step "+step+" failed 3 times: the ledger says 500: scripted", held.Reason)
		}
		require.ErrorIs(w, n.Cancel(w.ctx(), "later", ""), engine.ErrPastPivot)
		require.NoError(w, n.Cancel(w.ctx(), "pivot", ""))
		n.becomes("pivot", "the request is looked at, and parked", func(s engine.Snapshot[trip]) bool {
			msgs, err := n.st.Inbox(w.ctx(), "pivot")
			return err == nil && len(msgs) == 1 && s.Owner.IsZero() && s.Revision > 5
		})
		require.Equal(w, store.Held, n.get("pivot").Status)
		require.Equal(w, []string{"pack"}, w.ledger.effects("pivot"))
		require.Equal(w, []string{"pack", "send"}, w.ledger.effects("later"))
	})
}
