package statemachine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// doubtful is an order whose charge must not simply be sent again.
func doubtful(t testing.TB, change func(step.Step[int, string]) step.Step[int, string]) *play {
	charge := step.Call("charge-card", call[int, string]).
		With(step.Policy{Attempts: 2, Backoff: step.Constant(time.Second), Timeout: 10 * time.Second}).
		Undo(step.UndoCall("refund-card", undoCall[int, string]))
	d := orderSaga()
	d.States[charging] = Do(change(charge), order.cents, (*order).charged).Then(reviewing)
	p := begin(t, compile(t, d), small)
	p.done(`"s"`)
	return p
}

func probing(s step.Step[int, string]) step.Step[int, string] {
	return s.Probe(func(context.Context, step.Key, int) (string, step.Applied, error) { return "", step.StillUnknown, nil })
}

// fails lets an attempt of the marked step fail.
func (p *play) fails(took time.Duration) []Command {
	p.Helper()
	return p.take(StepFailed{Error: "no answer", Took: took})
}

// again is what a claim after a pause does: it begins the next attempt.
func (p *play) again() []Command {
	p.Helper()
	p.c.Mark.Attempt++
	p.c.Phase = Running
	return p.take(Resumed{})
}

// asked is the only command: to ask about the attempts before.
func asked(t testing.TB, cmds []Command) {
	t.Helper()
	require.Len(t, cmds, 1)
	run := cmds[0].(RunStep)
	require.True(t, run.Ask)
	require.Equal(t, step.NewKey("w", "charge-card", 1), run.Key)
	require.Equal(t, "4990", string(run.In))
}

func TestAProbeAsksOnceTheCallHasEnded(t *testing.T) {
	t.Parallel()
	p := doubtful(t, probing)
	wants(t, p.fails(3*time.Second), Wake{After: 8 * time.Second}) // 10 s, and a tenth of it, less what it took
	p.at(Waiting, charging, Mark{Step: "charge-card", Group: 1, Attempt: 1, Failures: 1})
	asked(t, p.again())
	cmds := p.take(Probed{Applied: step.NotApplied})
	require.Len(t, cmds, 1)
	require.False(t, cmds[0].(RunStep).Ask, "now it is safe to call")

	wants(t, p.fails(time.Minute), Wake{After: time.Second}) // long over: the policy's pause
	asked(t, p.again())
	p.take(Probed{Applied: step.Happened, Out: []byte(`"p"`)})
	p.at(Running, shipping, first("print-label"))
	require.Zero(t, p.c.Sure+p.c.Clear+p.c.Asks, "the next step begins without a doubt")
}

func TestAProbeIsAskedAfterACrash(t *testing.T) {
	t.Parallel()
	p := doubtful(t, probing)
	p.c.Mark.Crashes++
	wants(t, p.again(), Wake{After: 11 * time.Second}) // nobody knows when it began
	p.at(Waiting, charging, Mark{Step: "charge-card", Group: 1, Attempt: 2, Crashes: 1})
	asked(t, p.again())
	p.c.Mark.Crashes++ // while asking
	wants(t, p.again(), Wake{After: 11 * time.Second})
}

// TestWhatHasHadNoEffectIsNotUndone: a probe is asked before the step is given up.
func TestWhatHasHadNoEffectIsNotUndone(t *testing.T) {
	t.Parallel()
	p := doubtful(t, probing)
	p.fails(0)
	p.again()
	p.take(Probed{Applied: step.NotApplied})
	p.fails(0)
	asked(t, p.again())
	cmds := p.take(Probed{Applied: step.NotApplied})
	require.Equal(t, NoEffect, cmds[0].(Record).Outcome)
	require.Equal(t, "release-stock", cmds[1].(RunStep).Spec.Name)
	require.Equal(t, Exhausted, p.c.Cause)
}

func TestAProbeThatCannotTellNeedsAPerson(t *testing.T) {
	t.Parallel()
	p := doubtful(t, probing)
	p.fails(0)
	asked(t, p.again())
	wants(t, p.take(Probed{Error: "timeout"}), Wake{After: time.Second})
	asked(t, p.again())
	require.Empty(t, p.take(Probed{}))
	p.at(Held, charging, Mark{Step: "charge-card", Group: 1, Attempt: 3, Failures: 1})
	require.Equal(t, "outcome of charge-card unknown, needs a person: asked 2 times, the probe cannot tell", p.c.Reason)
	asked(t, retried(p))
}

// retried is a Retry whose pause is over: it asks, and does not call.
func retried(p *play) []Command {
	p.asks(Retry)
	p.at(Waiting, charging, Mark{Step: "charge-card", Group: 1, Attempt: 4})
	return p.again()
}

func TestHoldNeverCallsAgain(t *testing.T) {
	t.Parallel()
	hold := step.Step[int, string].Hold
	for name, doubt := range map[string]func(p *play){
		"it failed":  func(p *play) { p.fails(0) },
		"it crashed": func(p *play) { p.c.Mark.Crashes++; p.again() },
		"it was cut": func(p *play) { p.take(Interrupted{}) },
	} {
		p := doubtful(t, hold)
		doubt(p)
		require.Equal(t, Held, p.c.Phase, name)
		require.Contains(t, p.c.Reason, "outcome of charge-card unknown, needs a person", name)
		p.declines(Retry, "resolve it")
		cmds := p.asks(NotApplied)
		require.Equal(t, "charge-card", cmds[0].(RunStep).Spec.Name, name)
		p.c.Mark.Crashes++
		p.again()
		require.Equal(t, Held, p.c.Phase, "another attempt, another doubt")
		p.asks(Applied, func(e *Asked) { e.Out = []byte(`"p"`) })
		p.at(Running, shipping, first("print-label"))
	}
	p := doubtful(t, hold)
	p.take(StepFailed{Error: "no", Rejected: true})
	p.at(RollingBack, charging, first("release-stock"))
}

// TestWhatHasEndedIsRecordedWhateverFollows: the next state's function panics, and
// the step before it is not done again.
func TestWhatHasEndedIsRecordedWhateverFollows(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	broken := true
	d.States[charging] = Do(step.Call("charge-card", call[int, string]).NoUndo("free"), func(o order) int {
		if broken {
			panic("boom")
		}
		return o.Cents
	}, nil).Then(reviewing)
	p := begin(t, compile(t, d), small)
	cmds := p.done(`"s"`)
	require.Len(t, cmds, 1)
	require.Equal(t, "reserve-stock", cmds[0].(Record).Step)
	p.at(Held, charging, Mark{Step: "charge-card", Group: 1})
	require.Contains(t, p.c.Reason, "boom")
	require.Error(t, p.refuses(Asked{Verb: Retry}))
	broken = false
	p.asks(Retry)
	p.at(Running, charging, first("charge-card"))

	d = orderSaga()
	broken = true
	d.States[reviewing] = If(func(order) bool {
		if broken {
			panic("boom")
		}
		return false
	}, approving, shipping)
	p = begin(t, compile(t, d), small)
	p.done(`"s"`, `"p"`)
	p.at(Held, reviewing, Mark{})
	broken = false
	wants(t, p.asks(Retry), Wake{})
	p.take(Resumed{})
	p.at(Running, shipping, first("print-label"))
}
