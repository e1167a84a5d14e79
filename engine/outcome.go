package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// finish takes up what else has arrived and turns the advance into what is to
// be written.
func (a *advance) finish(ctx context.Context) worked {
	if a.moved {
		if err := a.settle(ctx); err != nil {
			return a.fail(err)
		}
	}
	a.cursor = keepAlarm(a.cursor, a.job)
	a.capWake()
	if size := len(a.cursor.Data); size > a.shell.eng.cfg.MaxPayload {
		return held(a.m, a.job, fmt.Sprintf("data of %d bytes, at most %d", size, a.shell.eng.cfg.MaxPayload))
	}
	if a.cursor.Phase == statemachine.Ended && a.job.parent != "" && a.cursor.Branch == "" {
		a.sends = append(a.sends, childMessage(a.m, a.job.parent, a.cursor))
	}
	for _, n := range a.starts {
		if size := len(n.Data); size > a.shell.eng.cfg.MaxPayload {
			return held(a.m, a.job, fmt.Sprintf("input of %s of %d bytes, at most %d", nameOfPart(n.ID), size, a.shell.eng.cfg.MaxPayload))
		}
	}
	return worked{cursor: a.cursor, transition: a.transition(), follow: a.follow, events: a.events}
}

// capWake has a workflow that waits wake by itself at its deadline at the latest, and
// notes whether that is why: then it is not its timer that has come.
func (a *advance) capWake() {
	if !a.moved || a.job.left == noDeadline || a.cursor.Late || a.cursor.Branch != "" {
		return
	}
	a.cursor.Capped = false
	pauses := a.cursor.Phase == statemachine.Waiting && a.follow.run == nil
	left := max(a.job.left-time.Since(a.began), 0) + wakeSlack
	if pauses && (a.follow.wake == nil || *a.follow.wake > left) {
		a.follow.wake, a.follow.at, a.cursor.Capped = &left, time.Time{}, true
	}
}

// nameOfPart names a branch or a child for people.
func nameOfPart(id string) string {
	if path := store.BranchOf(id); path != "" {
		return "branch " + path
	}
	return "child " + id
}

func (a *advance) transition() store.Transition {
	t := store.Transition{
		Guard:    store.Guard{ID: a.job.id, Revision: a.job.rev},
		Place:    placeOf(a.m, a.cursor, a.follow),
		Release:  a.follow.run == nil,
		Consumed: a.consumed,
		Seen:     a.seen(),
		Starts:   a.starts,
		Sends:    a.sends,
	}
	if !a.moved {
		t.Wake.Kind = store.WakeKeep
	}
	if sameBytes(t.Data, a.job.cursor.Data) {
		t.Data = nil
	}
	for _, rec := range a.records {
		t.Steps = append(t.Steps, a.record(rec))
	}
	return t
}

func (a *advance) record(rec statemachine.Record) store.StepRecord {
	r := store.StepRecord{
		Step: rec.Step, Group: rec.Group, Item: rec.Item, Status: statusOfOutcome(rec.Outcome), Attempt: rec.Attempt,
		Input: rec.In, Output: rec.Out, Error: storable(rec.Error),
	}
	if rec.Step == a.job.cursor.Mark.Step {
		r.Took = a.took
	}
	return r
}

// seen returns the messages that this advance knew of and left. Beside branches
// that have just been started it has considered none: they stay fresh, so that
// the workflow is claimed for them.
func (a *advance) seen() []string {
	if len(a.starts) > 0 {
		return nil
	}
	left := a.leftUnread()
	if len(a.consumed) == 0 && len(left) == 0 {
		return a.job.unseen
	}
	var ids []string
	for _, id := range a.job.unseen {
		if !consumedBy(a.consumed, id) && !slices.Contains(left, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// fail decides what an advance comes to that could not be computed: the
// database could not be read, so it is done again; or the user's own code is
// at fault, so a person must look.
func (a *advance) fail(err error) worked {
	if errors.Is(err, statemachine.ErrNeedsPast) { // see rolledBack
		return worked{err: err}
	}
	if errors.Is(err, store.ErrRetry) || errors.Is(err, store.ErrUnsure) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return worked{inTx: true, err: fmt.Errorf("%w: %w", store.ErrRetry, err)}
	}
	return held(a.m, a.job, err.Error())
}

// held makes a workflow HELD where it stands.
func held(m *statemachine.Machine, j job, reason string) worked {
	cur := j.cursor
	if m != nil {
		if next, _, err := m.Next(cur, statemachine.Unstorable{Error: storable(reason)}); err == nil {
			cur = next
		}
	}
	if cur.Phase != statemachine.Held {
		cur.From, cur.Phase, cur.Reason = cur.Phase, statemachine.Held, storable(reason)
	}
	cur = keepAlarm(cur, j)
	t := store.Transition{Guard: store.Guard{ID: j.id, Revision: j.rev}, Place: placeOf(m, cur, follow{}), Release: true, Seen: j.unseen}
	t.Data = nil
	return worked{cursor: cur, transition: t, stuck: true}
}

// keepAlarm remembers in a workflow that is HELD while it waited until when that
// was: its row does not wake by itself any more.
func keepAlarm(c statemachine.Cursor, j job) statemachine.Cursor {
	if c.Phase == statemachine.Held && j.cursor.Phase == statemachine.Waiting && !j.wakeAt.IsZero() {
		c.Alarm = j.wakeAt.UnixMicro()
	}
	return c
}

// errStuck rolls a transaction back whose workflow is to be HELD instead.
var errStuck = errors.New("a person must look")

// runInTx runs the body in the transaction that records its result.
func (a *advance) runInTx(ctx context.Context, run *statemachine.RunStep) worked {
	limit := a.txLimit(run)
	cut, cancel := context.WithTimeout(a.cut, limit+2*a.shell.callTimeout())
	defer cancel()

	before := *a
	var done worked
	var own error // of the body, or of what follows it in the transaction
	guard := store.Guard{ID: a.job.id, Revision: a.job.rev}
	verdict, err := a.shell.store.CommitTx(cut, a.me, guard, limit, func(txCtx context.Context, tx store.Tx) (store.Transition, error) {
		done, own = a.inTx(txCtx, run, tx)
		return done.transition, own
	})
	before.took = a.took
	switch certain := !errors.Is(err, store.ErrRetry) && !errors.Is(err, store.ErrUnsure); {
	case certain && own != nil:
		return before.rolledBack(ctx, run, done, own)
	case certain && errors.Is(err, context.DeadlineExceeded):
		return before.rolledBack(ctx, run, done, fmt.Errorf("%w: its transaction took longer than %v: %w", ErrTimeout, limit, err))
	}
	done.inTx, done.verdict, done.err = true, verdict, err
	return done
}

// inTx is the part inside the transaction.
func (a *advance) inTx(ctx context.Context, run *statemachine.RunStep, tx store.Tx) (worked, error) {
	a.tx = true
	gtx := &guardTx{tx: tx}
	defer gtx.close()
	out, err := a.body(ctx, run, gtx)
	switch {
	case err != nil && ctx.Err() != nil && a.cut.Err() == nil && !errors.Is(err, ErrTimeout):
		return worked{}, fmt.Errorf("%w: %w", ErrTimeout, err)
	case err != nil:
		return worked{}, err
	}
	if err := a.after(ctx, run, out, nil); err != nil {
		return worked{}, err
	}
	done := a.finish(ctx)
	if done.stuck {
		return done, errStuck
	}
	return done, done.err
}

// rolledBack goes on once the transaction is gone, and with it whatever the body
// has written. The receiver stands where it stood before.
func (a *advance) rolledBack(ctx context.Context, run *statemachine.RunStep, done worked, err error) worked {
	_, broken := errors.AsType[*statemachine.CodeError](err)
	switch {
	case errors.Is(err, errStuck):
		return done
	case broken:
		return a.fail(err)
	case errors.Is(err, statemachine.ErrNeedsPast):
		// They are read before the transaction, not inside it, where that would
		// take a second connection.
		if err := a.loadPast(ctx); err != nil {
			return a.fail(err)
		}
		return a.runInTx(ctx, run)
	}
	if err := a.after(ctx, run, nil, err); err != nil {
		return a.fail(err)
	}
	return a.finish(ctx)
}

// txLimit keeps a transaction shorter than the lease, so that a paused process
// cannot keep its row from whoever takes over; and so much shorter that the
// renewal still comes in time that falls into it, since in SQLite it has to wait
// for the transaction to end.
func (a *advance) txLimit(run *statemachine.RunStep) time.Duration {
	limit := a.shell.eng.cfg.Lease * 2 / 5
	if d := run.Spec.Policy.AttemptTimeout(); d > 0 {
		limit = min(limit, d)
	}
	return limit
}

func statusOfOutcome(o statemachine.Outcome) store.StepStatus {
	switch o {
	case statemachine.Done:
		return store.StepDone
	case statemachine.NoEffect:
		return store.StepFailed
	default:
		return store.StepUnknown
	}
}

func outcomeOf(s store.StepStatus) statemachine.Outcome {
	switch s {
	case store.StepDone:
		return statemachine.Done
	case store.StepFailed:
		return statemachine.NoEffect
	default:
		return statemachine.Unknown
	}
}

// sameBytes reports whether a and b are the very same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
