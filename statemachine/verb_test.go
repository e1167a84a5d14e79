package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// asks gives the workflow an order that must be possible, and returns the
// commands that follow the answer.
func (p *play) asks(v Verb, with ...func(*Asked)) []Command {
	p.Helper()
	e := Asked{Verb: v, By: "ann: test", At: time.UnixMicro(5_000_000)}
	for _, change := range with {
		change(&e)
	}
	cmds := p.take(e)
	require.NotEmpty(p, cmds)
	require.Equal(p, Answered{}, cmds[0], "the answer comes first")
	return cmds[1:]
}

// declines gives the workflow an order that makes no sense where it stands.
func (p *play) declines(v Verb, why string) {
	p.Helper()
	before := p.c
	cmds := p.take(Asked{Verb: v, By: "ann", Out: []byte(`17`)})
	require.Len(p, cmds, 1)
	require.Contains(p, cmds[0].(Answered).Refused, why)
	require.Equal(p, before, p.c)
}

// failsFor makes the marked step fail for good.
func (p *play) failsFor(reason string) []Command {
	p.Helper()
	return p.take(StepFailed{Error: reason, Final: true})
}

// heldPivot is an order whose label has an unknown outcome.
func heldPivot(t testing.TB) *play {
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`, `"p"`)
	p.failsFor("no answer")
	p.at(Held, shipping, Mark{Step: "print-label", Group: 1, Attempt: 1, Failures: 1})
	return p
}

// heldRefund is an order whose refund has failed for good.
func heldRefund(t testing.TB) *play {
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	p.failsFor("no answer")
	p.failsFor("bank closed")
	p.at(Held, charging, Mark{Step: "refund-card", Group: 1, Attempt: 1, Failures: 1})
	return p
}

func TestRetryKeepsTheKey(t *testing.T) {
	t.Parallel()
	p := heldPivot(t)
	cmds := p.asks(Retry)
	require.Len(t, cmds, 1)
	require.Equal(t, step.NewKey("w", "print-label", 1), cmds[0].(RunStep).Key)
	p.at(Running, shipping, Mark{Step: "print-label", Group: 1, Attempt: 2})
	require.Empty(t, p.c.Reason)

	p = heldRefund(t)
	cmds = p.asks(Retry)
	require.Equal(t, step.NewKey("w", "refund-card", 1), cmds[0].(RunStep).Key)
	p.at(RollingBack, charging, Mark{Step: "refund-card", Group: 1, Attempt: 2})
	require.Equal(t, "step charge-card failed once: no answer", p.c.Reason, "why it is rolled back")
}

func TestANewIntentTakesANewGroup(t *testing.T) {
	t.Parallel()
	p := heldPivot(t)
	cmds := p.asks(NewIntent)
	require.Equal(t, Unknown, cmds[0].(Record).Outcome)
	require.Equal(t, step.NewKey("w", "print-label", 2), cmds[1].(RunStep).Key)
	p.at(Running, shipping, Mark{Step: "print-label", Group: 2, Attempt: 1})
	wants(t, p.take(CancelAsked{}), Answer{CancelPastPivot}) // the first attempt may have passed it
	p.take(StepFailed{Error: "no", Rejected: true})
	require.Equal(t, Held, p.c.Phase)
	heldRefund(t).declines(NewIntent, "not held for a step")
}

func TestSkipAndForceEndAnUndo(t *testing.T) {
	t.Parallel()
	for verb, want := range map[Verb]Record{
		Skip:  {Step: "refund-card", Group: 1, Attempt: 1, Outcome: NoEffect, Error: "skipped by ann: test"},
		Force: {Step: "refund-card", Group: 1, Attempt: 1, Outcome: Done, Error: "forced by ann: test"},
	} {
		p := heldRefund(t)
		cmds := p.asks(verb)
		require.Equal(t, want, cmds[0])
		require.Equal(t, "release-stock", cmds[1].(RunStep).Spec.Name, "it goes on to the next undo")
		require.Equal(t, "step charge-card failed once: no answer", p.c.Reason)
		p.done("null")
		p.at(Ended, cancelled, Mark{})
	}
	heldPivot(t).declines(Skip, "is no undo")
	heldPivot(t).declines(Force, "is no undo")
}

func TestResolve(t *testing.T) {
	t.Parallel()
	p := heldPivot(t)
	p.declines(Applied, "that is no result of step print-label")
	cmds := p.asks(Applied, func(e *Asked) { e.Out = []byte(` "L" `) })
	require.Equal(t, Record{Step: "print-label", Group: 1, Attempt: 1, Outcome: Done, Out: []byte(`"L"`)}, cmds[0])
	require.True(t, p.c.Pivoted)
	p.at(Running, mailing, first("mail-receipt"))

	p = heldPivot(t)
	p.asks(NotApplied)
	p.at(Running, shipping, Mark{Step: "print-label", Group: 1, Attempt: 2})

	p = heldRefund(t)
	p.declines(Applied, "undo refund-card is held")
	p.declines(NotApplied, "undo refund-card is held")
}

func TestPauseAndResumeLeaveNoTrace(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	running := begin(t, compile(t, d), small)
	before := running.c
	require.Empty(t, running.asks(Pause, func(e *Asked) { e.Counted = true }))
	running.at(Held, reserving, Mark{Step: "reserve-stock", Group: 1})
	require.Equal(t, "paused by ann: test", running.c.Reason)
	require.True(t, running.c.Paused)
	running.declines(Pause, "held already")
	running.declines(Retry, "resume it")
	running.declines(Skip, "resume it")
	running.declines(NewIntent, "resume it")
	cmds := running.asks(Resume)
	require.Equal(t, "reserve-stock", cmds[0].(RunStep).Spec.Name)
	require.Equal(t, before, running.c)
	heldPivot(t).declines(Resume, "it is not paused")
	running.declines(Resume, "it is not held")
}

// TestAPauseDoesNotStopTheClock: a wait ends when it would have ended.
func TestAPauseDoesNotStopTheClock(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	p.done(`"s"`, `"p"`)
	p.at(Waiting, approving, Mark{})
	p.asks(Pause)
	p.c.Alarm = 7_000_000 // what the engine keeps of the row's wake time
	require.ErrorIs(t, p.refuses(Signalled{Name: "approval", Payload: []byte("true")}), ErrUnexpected)
	wants(t, p.asks(Resume), Wake{After: 2 * time.Second})
	p.at(Waiting, approving, Mark{})
	require.Zero(t, p.c.Alarm)
	p.asks(Pause)
	p.c.Alarm = 1_000_000
	wants(t, p.asks(Resume), Wake{After: 0})
}

// TestAPausedWorkflowIsCancelledLikeAnother: what has not begun is not undone.
func TestAPausedWorkflowIsCancelledLikeAnother(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.asks(Pause, func(e *Asked) { e.Counted = true })
	wants(t, p.take(CancelAsked{Begun: true}), Answer{CancelAccepted})
	p.at(Ended, cancelled, Mark{})
	require.False(t, p.c.Paused, "an end is not paused")
}

func TestTerminateEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	cmds := p.asks(Terminate, func(e *Asked) { e.Begun = true })
	require.Equal(t, Unknown, cmds[0].(Record).Outcome, "it may have been charged")
	p.at(Ended, charging, Mark{})
	require.Equal(t, Stopped, p.c.Cause)
	require.Empty(t, p.c.End)
	p.declines(Terminate, "it has ended")
	p.declines(Pause, "it has ended")
	p.declines(Retry, "it has ended")

	p = begin(t, compile(t, orderSaga()), small)
	require.Empty(t, p.asks(Terminate), "what has not begun has no outcome")

	root, _, _ := fanned(t)
	cmds = root.asks(Terminate)
	require.Len(t, cmds, 2)
	require.Equal(t, "terminated by ann: test", cmds[0].(StopBranch).Reason)
}

func TestReopen(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	p.take(StepFailed{Error: "no", Rejected: true})
	p.done("null")
	p.at(Ended, cancelled, Mark{})
	cmds := p.asks(NewIntent)
	require.Equal(t, step.NewKey("w", "reserve-stock", 2), cmds[0].(RunStep).Key)
	p.at(Running, reserving, Mark{Step: "reserve-stock", Group: 2, Attempt: 1})
	require.Empty(t, p.c.Cause)
	p.done(`"s"`)
	p.at(Running, charging, Mark{Step: "charge-card", Group: 2, Attempt: 1})
	p.take(StepFailed{Error: "no", Rejected: true})
	p.at(RollingBack, charging, Mark{Step: "release-stock", Group: 2, Attempt: 1})

	ended := begin(t, compile(t, orderSaga()), small)
	ended.done(`"s"`, `"p"`, `"l"`, "null")
	ended.declines(NewIntent, "it has completed")
	ended.c.Cause = Stopped // whatever it had come to
	ended.c.PastKnown = false
	require.ErrorIs(t, ended.refuses(Asked{Verb: NewIntent}), ErrNeedsPast)

	p = begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	p.asks(Terminate, func(e *Asked) { e.Begun = true })
	cmds = p.asks(NewIntent)
	require.Equal(t, step.NewKey("w", "charge-card", 2), cmds[0].(RunStep).Key, "where it was stopped")
}

func TestAnOrderNobodyKnows(t *testing.T) {
	t.Parallel()
	heldPivot(t).declines("dance", `there is no verb "dance"`)
	require.ErrorIs(t, (&play{TB: t, m: compile(t, orderSaga()), c: Cursor{ID: "w"}}).refuses(Asked{Verb: Retry}), ErrUnexpected)
}
