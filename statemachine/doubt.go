package statemachine

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/step"
)

// Doubt: a call whose outcome is unknown and that must not simply be sent again.
// With a Probe the other system is asked first, by key, once the last attempt has
// certainly ended; with Hold a person is. The number of the attempt says what is
// known: Sure and Clear name the attempt that may be asked about, or run, and no
// later one, so whatever begins another attempt brings the doubt back.

// doubtMargin is how much longer than its timeout an attempt is waited for: a
// tenth of it, from 100 ms to 5 s.
func doubtMargin(timeout time.Duration) time.Duration {
	return min(max(timeout/10, 100*time.Millisecond), 5*time.Second)
}

// inDoubt reports whether attempts of the marked step may have had their effect,
// and it must be learnt before another one.
func (t *turn) inDoubt(sp step.Spec) bool {
	return sp.Unknown != step.Resend && t.mayHaveRun(false) && t.c.Clear != t.c.Mark.Attempt
}

// settleDoubt asks, or leaves it to a person. After a crash nobody knows when the
// last attempt began: it is waited for from now on.
func (t *turn) settleDoubt(sp step.Spec, in []byte) error {
	switch {
	case sp.Unknown == step.Hold:
		t.hold(fmt.Sprintf("outcome of %s unknown, needs a person", sp.Name))
	case t.c.Sure != t.c.Mark.Attempt:
		timeout := sp.Policy.AttemptTimeout()
		t.c.Phase = Waiting
		t.waitToAsk(timeout + doubtMargin(timeout))
	default:
		t.do(RunStep{Spec: sp, Key: t.key(sp.Name), In: in, Ask: true})
	}
	return nil
}

// waitToAsk pauses; the attempt that begins then may be spent on asking.
func (t *turn) waitToAsk(pause time.Duration) {
	t.c.Sure = t.c.Mark.Attempt + 1
	t.do(Wake{After: pause})
}

// doubt goes on after an attempt that has failed, and may have had its effect.
func (t *turn) doubt(sp step.Spec, e StepFailed) {
	if sp.Unknown == step.Hold {
		t.hold(fmt.Sprintf("outcome of %s unknown, needs a person: %s", sp.Name, e.Error))
		return
	}
	t.c.Phase, t.c.Reason = Waiting, e.Error
	pause := sp.Policy.Pause(t.c.Mark.Failures, e.Chance)
	if e.Pause != nil {
		pause = *e.Pause
	}
	timeout := sp.Policy.AttemptTimeout()
	t.waitToAsk(max(pause, timeout-e.Took+doubtMargin(timeout)))
}

// probed goes on with what a probe has learnt.
func (t *turn) probed(e Probed) error {
	n := t.node()
	failures := t.c.Mark.Failures
	switch {
	case e.Applied == step.Happened:
		return t.stepDone(e.Out)
	case e.Applied == step.NotApplied && !n.step.Policy.Exhausted(failures):
		t.c.Clear, t.c.Asks = t.c.Mark.Attempt, 0
		return t.run()
	case e.Applied == step.NotApplied:
		return t.exhausted(n, StepFailed{NoEffect: true, Error: t.c.Reason})
	}
	t.c.Asks++
	t.c.Mark.Crashes = 0
	why := "the probe cannot tell"
	if e.Error != "" {
		why += ": " + e.Error
	}
	if n.step.Policy.Exhausted(t.c.Asks) {
		t.hold(fmt.Sprintf("outcome of %s unknown, needs a person: asked %s, %s", n.step.Name, times(t.c.Asks), why))
		return nil
	}
	t.c.Phase, t.c.Reason = Waiting, why
	t.waitToAsk(n.step.Policy.Pause(t.c.Asks, e.Chance))
	return nil
}
