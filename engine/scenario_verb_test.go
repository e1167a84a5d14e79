package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// operate carries out a verb, which must be possible.
func (n *node) operate(id string, verb engine.Verb, with ...func(*engine.Order)) engine.Operated {
	n.w.Helper()
	o := engine.Order{Verb: verb, Actor: "ann", Reason: "test"}
	for _, change := range with {
		change(&o)
	}
	done, err := n.Operate(n.w.ctx(), id, o)
	require.NoError(n.w, err)
	return done
}

// refused is an order that must not be possible.
func (n *node) refused(id string, verb engine.Verb, why string) {
	n.w.Helper()
	_, err := n.Operate(n.w.ctx(), id, engine.Order{Verb: verb, Actor: "ann"})
	require.ErrorIs(n.w, err, engine.ErrRefused)
	require.ErrorContains(n.w, err, why)
}

func dryRun(o *engine.Order) { o.DryRun = true }

// result gives a resolved step its result.
func result(text string) func(*engine.Order) {
	return func(o *engine.Order) { o.Result = []byte(text) }
}

// held waits until a workflow is HELD.
func (n *node) held(id string) engine.Snapshot[trip] {
	n.w.Helper()
	return n.becomes(id, id+" is held", func(s engine.Snapshot[trip]) bool { return s.Status == store.Held })
}

// certainlyOver waits until the last call of a HELD workflow cannot be under way any
// more, so that it may be resolved.
func (n *node) certainlyOver(id string) {
	n.w.Helper()
	n.w.eventually("the call of "+id+" is certainly over", func() bool {
		_, err := n.Operate(n.w.ctx(), id, engine.Order{Verb: engine.NotApplied, DryRun: true})
		return err == nil
	})
}

// sealed is a call that can be undone, a point of no return that fails fast, and a
// notice.
func (s *site) sealed() statemachine.Definition[trip] {
	d := s.parcel()
	d.Name = "sealed"
	send := step.Call("send", s.call).With(step.Policy{Attempts: 1, Timeout: 2 * time.Second}).Pivot()
	d.States["sending"] = statemachine.Do(send, trip.amount, (*trip).got).Then("telling")
	return d
}

// heldUndo is a saga of two calls that is held, since its second undo fails.
func heldUndo(w *world, n *node, id string) {
	w.ledger.next(id, "do-2", refused)
	w.ledger.next(id, "undo-1", failsBefore, failsBefore, failsBefore)
	n.start("saga", id, trip{Amount: 7})
	require.Contains(w, n.held(id).Reason, "undo undo-1 failed 3 times")
}

// A rollback that is held is freed in each of three ways, and each is on record.
func TestAHeldUndoIsRetriedSkippedOrForced(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		for id, c := range map[string]struct {
			verb   engine.Verb
			record string
			undone bool
		}{
			"retried": {engine.Retry, "undo-1:DONE:4", true},
			"skipped": {engine.Skip, "undo-1:FAILED:3", false},
			"forced":  {engine.Force, "undo-1:DONE:3", false},
		} {
			heldUndo(w, n, id)
			before := n.get(id)
			dry := n.operate(id, c.verb, dryRun)
			require.Equal(w, before, n.get(id), "a dry run changes nothing")
			done := n.operate(id, c.verb)
			require.Equal(w, dry, done, "a dry run says what would come of it")
			require.Equal(w, "HELD in s2", done.Before)
			final := n.ends(id, store.Compensated)
			require.Contains(w, n.recorded(id), c.record)
			require.Equal(w, statemachine.Refused, final.Cause)
			require.Contains(w, final.Reason, "do-2 was refused", "what has led to the rollback is not forgotten")
			if c.verb == engine.Force { // somebody has done it by hand
				w.ledger.byHand(id + "/undo-1/1")
			}
			audit, err := n.Audit(w.ctx(), id)
			require.NoError(w, err)
			require.Len(w, audit, 1)
			require.Equal(w, []string{string(c.verb), "ann", "test", done.Before, done.After}, []string{audit[0].What, audit[0].Actor, audit[0].Reason, audit[0].Before, audit[0].After})
			require.False(w, audit[0].TakenAt.IsZero())
		}
	})
}

// SCENARIO 13: a provider keeps its own failure for a key. Retries send the key
// again; a new intent sends another one; both are on record.
func TestANewIntentHasANewKey(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("parcel")
		w.ledger.next("w", "send", failsBefore, failsBefore, failsBefore, failsBefore, failsBefore, failsBefore)
		n := w.worker()
		n.start("parcel", "w", trip{Amount: 7})
		n.held("w")
		n.operate("w", engine.Retry)
		n.becomes("w", "it has failed again", func(s engine.Snapshot[trip]) bool { return s.Status == store.Held && s.Mark.Attempt == 6 })
		require.Equal(w, 6, w.ledger.calls("w", "send"))
		n.operate("w", engine.NewIntent)
		final := n.ends("w", store.Completed)
		require.Len(w, final.Data.Receipts, 3)
		require.Equal(w, []string{"pack:DONE:1", "send:UNKNOWN:6", "send:DONE:1", "tell:DONE:1"}, n.recorded("w"))
		keys := map[string]int{}
		for _, r := range w.ledger.of("w") {
			keys[r.key] = r.calls
		}
		require.Equal(w, map[string]int{"w/pack/1": 1, "w/send/1": 6, "w/send/2": 1, "w/tell/1": 1}, keys)
	})
}

// SCENARIO 23: behind the point of no return a cancellation is refused, and a
// failure is held and retried, never rolled back.
func TestAHeldStepBehindThePivotIsRetried(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("parcel")
		w.ledger.next("w", "tell", refused)
		n := w.worker()
		n.start("parcel", "w", trip{Amount: 7})
		n.held("w")
		require.ErrorIs(w, n.Cancel(w.ctx(), "w", "late"), engine.ErrPastPivot)
		n.refused("w", engine.Skip, "is no undo")
		n.refused("w", engine.Resume, "not paused")
		n.operate("w", engine.Retry)
		n.ends("w", store.Completed)
		require.Zero(w, w.ledger.calls("w", "unpack"))
	})
}

// An outcome that nobody knows is settled by a person, in either way, but not
// while the call may still be under way.
func TestAnUnknownOutcomeIsResolved(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("sealed")
		n := w.worker()
		w.ledger.next("applied", "send", failsAfter)
		w.ledger.next("not", "send", failsBefore)
		for _, id := range []string{"applied", "not"} {
			n.start("sealed", id, trip{Amount: 7})
			n.held(id)
		}
		n.refused("not", engine.NotApplied, "under way until")
		n.certainlyOver("applied")
		n.certainlyOver("not")
		n.refused("applied", engine.Applied, "that is no result of step send")
		n.operate("applied", engine.Applied, result(`"by hand"`))
		final := n.ends("applied", store.Completed)
		require.Equal(w, "by hand", final.Data.Receipts[1])
		require.Equal(w, 1, w.ledger.calls("applied", "send"), "it is not called again")
		n.refused("applied", engine.Applied, "it has ended")

		n.operate("not", engine.NotApplied)
		n.ends("not", store.Completed)
		require.Equal(w, 2, w.ledger.calls("not", "send"))
	})
}

// mailCounter counts how often a worker has read its mail. It asks anew only once
// it has taken note of what it was told last.
type mailCounter struct {
	store.Store
	n atomic.Int32
}

func (c *mailCounter) Mail(ctx context.Context, w store.WorkerID) ([]store.Message, error) {
	defer c.n.Add(1)
	return c.Store.Mail(ctx, w)
}

// A pause holds a workflow where it waits, or once the step under way has ended;
// timers go on.
func TestPauseAndResume(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote", "vote-brief", "nap", "saga")
		var mail *mailCounter
		n := w.worker(nodeOptions{wrap: func(st store.Store) store.Store {
			mail = &mailCounter{Store: st}
			return mail
		}})
		n.start("vote", "waits", trip{Quorum: 1})
		n.becomes("waits", "it waits", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		n.operate("waits", engine.Pause)
		require.Equal(w, "paused by ann: test", n.get("waits").Reason)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "waits", ballot, "yes"))
		n.refused("waits", engine.Pause, "held already")
		n.refused("waits", engine.Retry, "resume it")
		require.Equal(w, store.Held, n.get("waits").Status, "a signal is kept")
		n.operate("waits", engine.Resume)
		n.ends("waits", store.Completed)

		gate := w.ledger.holds("runs", "do-2")
		n.start("saga", "runs", trip{Amount: 7})
		gate.arrived(w)
		paused := make(chan error, 1)
		go func() {
			_, err := n.Operate(w.ctx(), "runs", engine.Order{Verb: engine.Pause, Actor: "ann"})
			paused <- err
		}()
		w.eventually("the worker is told", func() bool {
			audit, err := n.Audit(w.ctx(), "runs")
			require.NoError(w, err)
			return len(audit) == 1
		})
		asked := mail.n.Load()
		w.eventually("the worker has read its mail", func() bool { return mail.n.Load() >= asked+3 })
		gate.release()
		require.NoError(w, <-paused)
		require.Equal(w, store.Held, n.get("runs").Status)
		require.Contains(w, n.recorded("runs"), "do-2:DONE:1", "the step under way has ended")
		require.NotContains(w, n.recorded("runs"), "do-3:DONE:1")
		n.operate("runs", engine.Resume)
		n.ends("runs", store.Completed)
		require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:DONE:1", "do-4:DONE:1"}, n.recorded("runs"), "a pause is no attempt")

		n.start("nap", "sleeps", trip{Pause: 3 * time.Second})
		n.becomes("sleeps", "it sleeps", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		n.operate("sleeps", engine.Pause)
		n.operate("sleeps", engine.Resume)
		n.ends("sleeps", store.Completed)

		w.ledger.next("cancelled", "do-1", done)
		n.start("vote", "cancelled", trip{Quorum: 1})
		n.becomes("cancelled", "it waits", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		n.operate("cancelled", engine.Pause)
		require.NoError(w, n.Cancel(w.ctx(), "cancelled", "after all"))
		n.ends("cancelled", store.Compensated)
	})
}

// Terminate ends a workflow where it stands, says what it leaves behind, and
// reaches one that a worker is at work on.
func TestTerminate(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "top")
		n := w.worker()
		heldUndo(w, n, "held")
		done := n.operate("held", engine.Terminate)
		require.Equal(w, "left undone: do-1", done.Note)
		final := n.ends("held", store.Terminated)
		require.Equal(w, statemachine.Stopped, final.Cause)
		require.Equal(w, "terminated by ann: test", final.Reason)
		n.refused("held", engine.Terminate, "it has ended")

		gate := w.ledger.holds("runs", "do-2")
		n.start("saga", "runs", trip{Amount: 7})
		gate.arrived(w)
		n.operate("runs", engine.Terminate)
		n.ends("runs", store.Terminated)
		gate.release()
		require.Equal(w, []string{"do-1:DONE:1", "do-2:UNKNOWN:1"}, n.recorded("runs"))

		// Its parent learns of it, as of a child that has failed.
		gate = w.ledger.holds(leafOfW, "do-2")
		n.start("top", "w", trip{Amount: 7})
		gate.arrived(w)
		n.operate(leafOfW, engine.Terminate)
		gate.release()
		n.ends("w", store.Compensated)
		require.Contains(w, n.recorded(middleOfW), "undo-leaf:DONE:1", "it may have had its effect")
	})
}

// A workflow whose code is gone can be terminated, and then deleted.
func TestTerminateWithoutTheCode(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "top")
		n := w.worker()
		w.ledger.next("w", "do-2", failsBefore, failsBefore)
		n.start("saga", "w", trip{Amount: 7})
		n.becomes("w", "it has begun", func(s engine.Snapshot[trip]) bool { return s.State == "s2" })
		n.stop()
		stranger := w.client(nodeOptions{only: []string{"top"}})
		_, err := stranger.Operate(w.ctx(), "w", engine.Order{Verb: engine.Retry})
		require.ErrorIs(w, err, engine.ErrUnknownDefinition)
		_, err = stranger.Operate(w.ctx(), "w", engine.Order{Verb: engine.Delete})
		require.ErrorIs(w, err, engine.ErrRefused)
		stranger.operate("w", engine.Terminate)
		require.Equal(w, store.Terminated, stranger.get("w").Status)
		stranger.operate("w", engine.Delete)
		require.Equal(w, store.Expired, stranger.get("w").Status)
		require.True(w, stranger.operate("w", engine.Delete).Repeated)
		audit, err := stranger.Audit(w.ctx(), "w")
		require.NoError(w, err)
		require.Len(w, audit, 2, "it outlives what was deleted")
		w.forget("w")
		w.ledger.forget("w")
	})
}

// Its branches are ended with it, and on record: nobody may ever know them again.
func TestTerminateBranchesWithoutTheCode(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		w.lease = time.Second
		gate := w.ledger.holds("w", "do-1")
		starter := w.client(nodeOptions{only: []string{"fan"}})
		p := w.process(job{Only: []string{"fan"}}).joined()
		starter.start("fan", "w", trip{Amount: 7})
		gate.arrived(w)
		p.kill()
		gate.release()
		stranger := w.worker()
		open := func() (all []store.Workflow) {
			branches, err := w.st.List(w.ctx(), store.Query{BranchesOf: "w"})
			require.NoError(w, err)
			for _, b := range branches {
				if !b.Status.Ended() {
					all = append(all, b)
				}
			}
			return all
		}
		require.NotEmpty(w, open())
		w.eventually("what the dead one owned is free", func() bool {
			free := stranger.get("w").Owner.IsZero()
			for _, b := range open() {
				free = free && b.Owner.IsZero()
			}
			return free
		})
		stranger.operate("w", engine.Terminate)
		require.Equal(w, store.Terminated, stranger.get("w").Status)
		require.Empty(w, open())
		audit, err := stranger.Audit(w.ctx(), "w")
		require.NoError(w, err)
		require.Greater(w, len(audit), 1)
		w.forget("w")
	})
}

// SCENARIO 4: cancelled, then the same id again: the cancelled answer. Expired: a
// typed "expired". What is deleted by force leaves its tombstone.
func TestAnIdStaysTaken(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		n.start("vote", "w", trip{Quorum: 1})
		n.becomes("w", "it waits", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		require.NoError(w, n.Cancel(w.ctx(), "w", "not wanted"))
		first := n.ends("w", store.Compensated)
		again := n.start("vote", "w", trip{Quorum: 1})
		require.False(w, again.Created)
		require.Equal(w, store.Compensated, again.Status)
		require.Equal(w, first, n.wait("w"))

		n.operate("w", engine.Delete)
		_, err := n.flows["vote"].Start(w.ctx(), "w", trip{Quorum: 1})
		require.ErrorIs(w, err, engine.ErrExpired)
		_, err = n.flows["vote"].Start(w.ctx(), "w", trip{Quorum: 2})
		require.ErrorIs(w, err, engine.ErrExpired, "its input is forgotten")
		info, err := n.Get(w.ctx(), "w")
		require.NoError(w, err)
		require.Equal(w, store.Expired, info.Status)
		require.Empty(w, info.Raw)
		require.ErrorIs(w, engine.Signal(w.ctx(), n.Engine, "w", ballot, "yes"), engine.ErrEnded)
		w.forget("w")
		w.ledger.forget("w")
	})
}

// What has ended badly can be begun anew, each step with a new key; nothing else
// reopens an end.
func TestANewIntentReopensAnEnd(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "single", "fan")
		n := w.worker()
		w.ledger.next("compensated", "do-3", refused)
		n.start("saga", "compensated", trip{Amount: 7})
		n.ends("compensated", store.Compensated)
		n.refused("compensated", engine.Retry, "it has ended")
		w.forget("compensated") // its answer will be another
		n.operate("compensated", engine.NewIntent)
		n.ends("compensated", store.Completed)
		require.Equal(w, 2, w.ledger.calls("compensated", "do-1"))
		require.Equal(w, 1, w.ledger.calls("compensated", "undo-1"))
		n.refused("compensated", engine.NewIntent, "it has completed")

		w.ledger.next("failed", "work", refused)
		n.start("single", "failed", trip{Amount: 7})
		n.ends("failed", store.Failed)
		w.forget("failed")
		n.operate("failed", engine.NewIntent)
		n.ends("failed", store.Completed)

		gate := w.ledger.holds("terminated", "do-2")
		n.start("fan", "terminated", trip{Amount: 7})
		gate.arrived(w)
		n.operate("terminated", engine.Terminate)
		gate.release()
		w.forget("terminated")
		n.operate("terminated", engine.NewIntent)
		n.ends("terminated", store.Completed)
		require.Equal(w, 1, w.ledger.calls("terminated", "open"), "what was done before it stays done")
	})
}

// An order is carried out once, however often and by however many it is given.
func TestAnOrderIsCarriedOutOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		heldUndo(w, n, "w")
		w.ledger.next("w", "undo-1", failsBefore, failsBefore, failsBefore)
		var all sync.WaitGroup
		results := make([]engine.Operated, 8)
		errs := make([]error, 8)
		for i := range results {
			all.Go(func() {
				results[i], errs[i] = n.Operate(w.ctx(), "w", engine.Order{Verb: engine.Retry, Actor: "ann", RequestID: "r1"})
			})
		}
		all.Wait()
		first := 0
		for i, r := range results {
			require.NoError(w, errs[i])
			require.Equal(w, "HELD in s2", r.Before)
			if !r.Repeated {
				first++
			}
		}
		require.Equal(w, 1, first)
		n.becomes("w", "it was tried once more", func(s engine.Snapshot[trip]) bool { return s.Status == store.Held && s.Mark.Attempt == 6 })
		require.Equal(w, 6, w.ledger.calls("w", "undo-1"))
		_, err := n.Operate(w.ctx(), "w", engine.Order{Verb: engine.Skip, RequestID: "r1"})
		require.ErrorIs(w, err, engine.ErrRefused, "that id was another order's")
		n.operate("w", engine.Skip)
		n.ends("w", store.Compensated)
	})
}

// Orders that cannot be meant are refused, and nothing is written.
func TestBadOrders(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		n.start("vote", "w", trip{Quorum: 1})
		before := n.becomes("w", "it waits", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })
		for _, v := range []engine.Verb{engine.Retry, engine.NewIntent, engine.Skip, engine.Force, engine.Applied, engine.NotApplied, engine.Resume, engine.Delete, "dance"} {
			_, err := n.Operate(w.ctx(), "w", engine.Order{Verb: v})
			require.ErrorIs(w, err, engine.ErrRefused, string(v))
			_, err = n.Operate(w.ctx(), "nowhere", engine.Order{Verb: v})
			require.ErrorIs(w, err, engine.ErrNotFound, string(v))
		}
		_, err := n.Operate(w.ctx(), "bad\x00", engine.Order{Verb: engine.Retry})
		require.ErrorIs(w, err, engine.ErrBadID)
		_, err = n.Operate(w.ctx(), "w", engine.Order{Verb: engine.Pause, RequestID: " r"})
		require.ErrorIs(w, err, engine.ErrBadID)
		ctx, cancel := context.WithCancel(w.ctx())
		cancel()
		_, err = n.Operate(ctx, "w", engine.Order{Verb: engine.Pause})
		require.Error(w, err)
		require.Equal(w, before, n.get("w"))
		audit, err := n.Audit(w.ctx(), "w")
		require.NoError(w, err)
		require.Empty(w, audit)
		_, err = n.Audit(w.ctx(), "nowhere")
		require.ErrorIs(w, err, engine.ErrNotFound)
	})
}

// A branch that is held is meant by its workflow's id as long as it is the only
// one, and by its path.
func TestAHeldBranchIsFreed(t *testing.T) {
	eachStore(t, func(w *world) {
		w.accounts()
		w.knows("mixed")
		n := w.worker()
		w.ledger.next("w", "tell", refused)
		w.ledger.next("w", "tell-more", refused)
		n.start("mixed", "w", trip{ID: "w", Amount: 7})
		w.eventually("both are held", func() bool {
			held, err := n.List(w.ctx(), store.Query{BranchesOf: "w", Statuses: []store.Status{store.Held}})
			require.NoError(w, err)
			return len(held) == 2
		})
		n.refused("w", engine.Retry, "name one")
		n.operate("w", engine.Retry, func(o *engine.Order) { o.Branch = "telling/1/tell" })
		w.eventually("one is held", func() bool {
			held, err := n.List(w.ctx(), store.Query{BranchesOf: "w", Statuses: []store.Status{store.Held}})
			require.NoError(w, err)
			return len(held) == 1
		})
		n.operate("w", engine.Retry)
		n.ends("w", store.Completed)
		audit, err := n.Audit(w.ctx(), "w")
		require.NoError(w, err)
		require.Len(w, audit, 2)
		require.Equal(w, "telling/1/tell", audit[0].Branch)
	})
}
