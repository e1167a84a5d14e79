package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Work advances one workflow by one transition: it runs the body, asks the
// state machine what follows, and encodes it. It runs outside the reactor,
// since all of that is user code or takes time.

// begin works on a job in a goroutine of its own.
func (s *shell) begin(j job) {
	me := s.self()
	cut, end := s.bodies.begin(s.work, j.id)
	go func() {
		defer end()
		s.send(evWorked{me, j, s.advance(s.work, cut, me, j)})
	}()
}

// advance advances one workflow. The body of its step sees cut, which ends when
// it is to be cut off. What goes on around it uses ctx, which lives as long as
// the worker: what a body has done must not be forgotten because it was cut off.
func (s *shell) advance(ctx, cut context.Context, me store.WorkerID, j job) worked {
	reg, err := s.eng.lookup(j.def)
	if err != nil {
		return held(nil, j, err.Error())
	}
	a := &advance{shell: s, cut: cut, me: me, m: reg.machine, job: j, cursor: j.cursor, inbox: j.inbox, began: time.Now()}
	return a.run(ctx)
}

// advance is one advance of one workflow under way.
type advance struct {
	shell *shell
	cut   context.Context //nolint:containedctx // of this one body
	me    store.WorkerID
	m     *statemachine.Machine
	job   job

	cursor   statemachine.Cursor
	inbox    []store.Message // not consumed so far
	consumed []store.Consumed
	records  []statemachine.Record
	starts   []store.New     // branches
	sends    []store.Message // to branches, or from one to its root
	events   []StepEvent
	follow   follow
	took     time.Duration // of the body
	began    time.Time     // when the job was
	moved    bool          // the machine has answered something
	tx       bool          // a transaction is open, and keeps a connection
	deferred bool          // a cancellation waits for the pivot's outcome
}

func (a *advance) run(ctx context.Context) worked {
	if a.job.unread != nil {
		return a.heldUnread()
	}
	if a.job.refused != "" {
		return held(a.m, a.job, a.job.refused)
	}
	if done, took := a.takeIllegible(ctx); took {
		return done
	}
	run, err := a.begin(ctx)
	if err != nil {
		return a.fail(err)
	}
	if run == nil {
		return a.finish(ctx)
	}
	if run.Spec.Kind == step.KindInTx {
		return a.runInTx(ctx, run)
	}
	if run.Ask {
		if err := a.probe(ctx, run); err != nil {
			return a.fail(err)
		}
		return a.finish(ctx)
	}
	out, err := a.body(a.cut, run, nil)
	if err := a.after(ctx, run, out, err); err != nil {
		return a.fail(err)
	}
	return a.finish(ctx)
}

// begin takes up what has happened before any body runs, and returns the body
// to run now, if there is one.
func (a *advance) begin(ctx context.Context) (*statemachine.RunStep, error) {
	if a.job.run != nil { // durable a moment ago, not begun
		if cancelled, err := a.takeCancel(ctx, false); err != nil || cancelled {
			return nil, err
		}
		if took, err := a.takeVerbs(ctx, true); err != nil || took {
			return nil, err
		}
		if overdue, err := a.takeDeadline(ctx, false); err != nil || overdue {
			return nil, err
		}
		return a.job.run, nil
	}
	// A HELD workflow does not say whether its step's body has run: it may have.
	begun := a.cursor.Mark.Attempt > 1 || a.cursor.Phase == statemachine.Held
	if cancelled, err := a.takeCancel(ctx, begun); err != nil || cancelled {
		return nil, err
	}
	if took, err := a.takeVerbs(ctx, a.job.due); err != nil || took {
		return nil, err
	}
	if overdue, err := a.takeDeadline(ctx, begun); err != nil || overdue {
		return nil, err
	}
	if err := a.takeTimeOrSignal(ctx); err != nil {
		return nil, err
	}
	if _, err := a.takeBranchEnds(ctx); err != nil {
		return nil, err
	}
	run := a.follow.run
	if run == nil || len(a.records) > 0 || len(a.consumed) > 0 || a.cursor.Mark != a.job.cursor.Mark {
		return nil, nil // the new mark must be durable first
	}
	return run, nil
}

// takeTimeOrSignal takes up the signal that is waited for if it was sent in
// time, else the time that has come. A step that is marked is resumed.
func (a *advance) takeTimeOrSignal(ctx context.Context) error {
	pauses := !a.job.due && !a.job.wakeAt.IsZero() // it was claimed for a message only
	switch c := a.cursor; {
	case c.Phase == statemachine.Running, c.Phase == statemachine.RollingBack, c.Mark.Step != "":
		if pauses {
			return nil
		}
		return a.next(ctx, statemachine.Resumed{})
	case c.Phase != statemachine.Waiting:
		return nil
	}
	if took, err := a.takeSignal(ctx, a.job.due); err != nil || took {
		return err
	}
	if a.job.due {
		return a.next(ctx, statemachine.TimerFired{})
	}
	return nil
}

// next asks the machine, loading the recorded steps when it comes to a rollback.
func (a *advance) next(ctx context.Context, ev statemachine.Event) error {
	cur, cmds, err := a.ask(ctx, ev)
	if err != nil {
		return err
	}
	return a.take(cur, cmds)
}

func (a *advance) ask(ctx context.Context, ev statemachine.Event) (statemachine.Cursor, []statemachine.Command, error) {
	cur, cmds, err := a.m.Next(a.cursor, ev)
	if errors.Is(err, statemachine.ErrNeedsResults) {
		if err := a.loadResults(ctx); err != nil {
			return a.cursor, nil, err
		}
		cur, cmds, err = a.m.Next(a.cursor, ev)
	}
	if !errors.Is(err, statemachine.ErrNeedsPast) || a.tx {
		return cur, cmds, err
	}
	if err := a.loadPast(ctx); err != nil {
		return a.cursor, nil, err
	}
	return a.m.Next(a.cursor, ev)
}

// take makes the machine's answer the state of the advance.
func (a *advance) take(cur statemachine.Cursor, cmds []statemachine.Command) error {
	a.cursor, a.follow, a.moved = cur, followOf(cmds), true
	for _, cmd := range cmds {
		switch cmd := cmd.(type) {
		case statemachine.Record:
			a.records = append(a.records, cmd)
		case statemachine.StartBranch:
			a.starts = append(a.starts, newBranch(a.m, a.job.def, cmd.Cursor))
		case statemachine.StartChild:
			if err := a.startChild(cmd); err != nil {
				return err
			}
		case statemachine.StopBranch:
			a.sends = append(a.sends, stopMessage(store.BranchID(a.job.id, cmd.Path), cmd.Reason))
		case statemachine.StopChild:
			a.sends = append(a.sends, stopMessage(cmd.ID, cmd.Reason))
		case statemachine.EndBranch:
			a.sends = append(a.sends, endMessage(a.job.id, cmd.Event))
		}
	}
	return nil
}

// body runs one attempt.
func (a *advance) body(ctx context.Context, run *statemachine.RunStep, tx store.Tx) ([]byte, error) {
	if d := run.Spec.Policy.AttemptTimeout(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, fmt.Errorf("%w after %v", ErrTimeout, d))
		defer cancel()
	}
	ctx = step.WithInfo(ctx, a.info(run))
	if tx == nil {
		ctx = step.WithBeater(ctx, &beater{a, run.Key.String()})
	}
	began := time.Now()
	out, err := guarded(ctx, func(ctx context.Context) ([]byte, error) {
		env := step.Env{Key: run.Key, Undoes: run.Undoes}
		if tx != nil {
			env.Tx = txFor(run.Spec, tx)
		}
		return a.around(ctx, run, func(ctx context.Context) ([]byte, error) { return run.Spec.Run(ctx, env, run.In) })
	})
	a.took = time.Since(began)
	if err != nil && ctx.Err() != nil && !step.IsRejected(err) {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	if err == nil {
		err = a.fits(out)
	}
	return out, err
}

// fits refuses a result that is too large to be recorded, whoever it is from.
// Another attempt would end the same way.
func (a *advance) fits(out []byte) error {
	if most := a.shell.eng.cfg.MaxPayload; len(out) > most {
		return fmt.Errorf("%w: result of %d bytes, at most %d: %w", ErrTooLarge, len(out), most, step.ErrEncode)
	}
	return nil
}

// info is what a body can learn of its attempt.
func (a *advance) info(run *statemachine.RunStep) step.Info {
	return step.Info{
		WorkflowID: store.RootOf(a.job.id), Step: run.Spec.Name, Group: run.Key.Group(),
		Attempt: a.cursor.Mark.Attempt, Item: run.Key.Item(), Key: run.Key,
	}
}

// around calls a body as the configuration wants it.
func (a *advance) around(ctx context.Context, run *statemachine.RunStep, body func(context.Context) ([]byte, error)) ([]byte, error) {
	wrap := a.shell.eng.cfg.Around
	if wrap == nil {
		return body(ctx)
	}
	return wrap(ctx, Body{Step: run.Spec.Name, Key: run.Key, Attempt: a.cursor.Mark.Attempt, In: run.In}, body)
}

// probe asks the other system what became of the attempts before.
func (a *advance) probe(ctx context.Context, run *statemachine.RunStep) error {
	cut, cancel := context.WithTimeoutCause(a.cut, run.Spec.Policy.AttemptTimeout(), ErrTimeout)
	defer cancel()
	began := time.Now()
	var applied atomic.Uint32 // a probe that is late may still write it
	out, err := guarded(step.WithInfo(cut, a.info(run)), func(ctx context.Context) ([]byte, error) {
		out, answer, err := run.Spec.Ask(ctx, run.Key, run.In)
		applied.Store(uint32(answer))
		return out, err
	})
	a.took = time.Since(began)
	if err != nil && a.cut.Err() != nil {
		return a.interrupted(ctx, run, err)
	}
	if err == nil {
		err = a.fits(out) // it may have happened, but cannot be recorded
	}
	ev := statemachine.Probed{Applied: step.StillUnknown, Chance: rand.Float64()}
	if err != nil {
		ev.Error = storable(err.Error())
	} else {
		ev.Applied, ev.Out = step.Applied(applied.Load()), out
	}
	a.tell(run, OutcomeAsked, err)
	return a.next(ctx, ev)
}

// txFor is the transaction in the type that the step asks for.
func txFor(spec step.Spec, tx store.Tx) any {
	if spec.TxType == portableTx {
		return tx
	}
	return tx.Unwrap()
}

// after tells the machine how an attempt ended. One that the engine itself has
// cut off is no failure of the step's: it is begun once more, here or wherever
// the workflow goes, unless a cancellation is taken up before; that one then
// finds an attempt that may have had its effect.
func (a *advance) after(ctx context.Context, run *statemachine.RunStep, out []byte, err error) error {
	a.deferred = false
	switch {
	case err == nil:
		a.tell(run, OutcomeDone, nil)
		return a.next(ctx, statemachine.StepDone{Out: out})
	case !step.IsRejected(err) && a.cut.Err() != nil:
		return a.interrupted(ctx, run, err)
	}
	failed := statemachine.StepFailed{
		Error:    storable(err.Error()),
		Rejected: step.IsRejected(err),
		NoEffect: run.Spec.Kind != step.KindCall,
		Final:    errors.Is(err, step.ErrEncode) || errors.Is(err, step.ErrDecode),
		Chance:   rand.Float64(),
		Took:     a.took,
	}
	if m := a.cursor.Mark; errors.Is(err, step.ErrDecode) && m.Attempt <= 1 && m.Failures == 0 && m.Crashes == 0 {
		failed.NoEffect = true // no body has ever seen it
	}
	if d, ok := step.AskedPause(err); ok {
		failed.Pause = &d
	}
	if err := a.next(ctx, failed); err != nil {
		return err
	}
	a.tell(run, a.outcome(failed), err)
	return nil
}

// interrupted goes on after a body that its own engine has cut off: at once with
// what it was cut off for, if that was a message.
func (a *advance) interrupted(ctx context.Context, run *statemachine.RunStep, err error) error {
	if errors.Is(context.Cause(a.cut), ErrOverdue) {
		a.tell(run, OutcomeCut, err)
		return a.next(ctx, statemachine.DeadlinePassed{Begun: true})
	}
	cut, ok := errors.AsType[*interruption](context.Cause(a.cut))
	if !ok {
		return a.next(ctx, statemachine.Interrupted{})
	}
	a.tell(run, OutcomeCut, err)
	known := func(m store.Message) bool { return m.ID == cut.msg.ID }
	if !slices.ContainsFunc(a.inbox, known) {
		a.inbox = append(slices.Clip(a.inbox), cut.msg)
	}
	took, err := a.takeCancel(ctx, true)
	if err == nil && !took {
		took, err = a.takeVerbs(ctx, false)
	}
	if err != nil || took {
		return err
	}
	return a.next(ctx, statemachine.Interrupted{})
}

// outcome names how a failed attempt is seen from outside.
func (a *advance) outcome(f statemachine.StepFailed) StepOutcome {
	switch {
	case a.cursor.Mark.Step != "" && a.follow.wake != nil:
		return OutcomeRetry
	case f.Rejected || f.NoEffect:
		return OutcomeRefused
	default:
		return OutcomeFailed
	}
}

func (a *advance) tell(run *statemachine.RunStep, how StepOutcome, err error) {
	if a.shell.eng.cfg.OnStep == nil {
		return
	}
	ev := StepEvent{
		WorkflowID: store.RootOf(a.job.id), Branch: store.BranchOf(a.job.id), Definition: a.job.def.Name, Step: run.Spec.Name, Key: run.Key.String(),
		Attempt: a.job.cursor.Mark.Attempt, Outcome: how, Took: a.took, Worker: a.me.String(),
	}
	if err != nil {
		ev.Error = err.Error()
	}
	a.events = append(a.events, ev)
}
