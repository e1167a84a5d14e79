package statemachine

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/step"
)

// Verb is what a person may want of a workflow. It is stored as its text.
type Verb string

const (
	// Retry tries once more what a Held workflow was held for, in the same attempt
	// group: the other side sees the same key.
	Retry Verb = "retry"

	// NewIntent does a step once more in a new attempt group, with a key that the
	// other side has not seen: if the attempts before did have their effect, it is
	// there twice. It reopens a workflow that has ended badly, too.
	NewIntent Verb = "retry-new-intent"

	// Pause holds a workflow where it stands, once the step under way has ended.
	Pause Verb = "pause"

	// Resume ends a Pause. Timers have gone on: one that has passed fires at once.
	Resume Verb = "resume"

	// Skip leaves out the undo that a rollback is held for: its action stays as it
	// is.
	Skip Verb = "skip"

	// Force takes the undo that a rollback is held for as done, since somebody has
	// done it by hand.
	Force Verb = "force"

	// Applied says that the step which is held has had its effect, and gives its
	// result.
	Applied Verb = "resolve-applied"

	// NotApplied says that the step which is held has had no effect: it is tried
	// once more.
	NotApplied Verb = "resolve-not-applied"

	// Terminate ends a workflow at once. Nothing is undone.
	Terminate Verb = "terminate"
)

// asked does what a person wants, or says why not: then nothing has changed.
func (t *turn) asked(e Asked) error {
	before := *t
	refused, err := t.obey(e)
	switch {
	case err != nil:
		return err
	case refused != "":
		*t = before
		t.do(Answered{refused})
	default:
		// Before whatever RunStep or Wake came out, which are last.
		t.cmds = append([]Command{Answered{}}, t.cmds...)
	}
	return nil
}

func (t *turn) obey(e Asked) (refused string, err error) {
	switch e.Verb {
	case Terminate:
		return t.terminate(e)
	case Pause:
		return t.pause(e)
	case Resume:
		return t.resumePaused(e)
	case NewIntent:
		return t.newIntent(e)
	case Retry, NotApplied, Applied, Skip, Force:
		return t.release(e)
	}
	return fmt.Sprintf("there is no verb %q", e.Verb), nil
}

// release frees a Held workflow.
func (t *turn) release(e Asked) (refused string, err error) {
	undo := t.c.From == RollingBack && t.m.undone[t.c.Mark.Step] != ""
	switch {
	case t.c.Phase != Held:
		return t.notHeld(), nil
	case t.c.Paused:
		return "it is paused: resume it", nil
	case e.Verb == Skip, e.Verb == Force:
		if !undo {
			return "what it is held for is no undo", nil
		}
		return "", t.dismissUndo(e)
	case e.Verb == Retry:
		if !undo && t.marksStep() && t.node().step.Unknown == step.Hold {
			return "its outcome is unknown: resolve it", nil
		}
		t.c.Asks = 0
		return "", t.again(e.At)
	case undo:
		return fmt.Sprintf("undo %s is held, not a step: force it if it has been done, or retry it", t.c.Mark.Step), nil
	case !t.marksStep() || t.node().step.Kind != step.KindCall:
		return "it is not held for a call whose outcome is unknown", nil
	case e.Verb == NotApplied:
		t.c.Clear, t.c.Asks = t.c.Mark.Attempt+1, 0 // the attempt that follows
		return "", t.again(e.At)
	}
	out, err := t.node().step.Accepts(e.Out)
	if err != nil {
		return fmt.Sprintf("that is no result of step %s: %v", t.c.Mark.Step, err), nil
	}
	t.c.Phase, t.c.From = Running, 0
	return "", t.stepDone(out)
}

func (t *turn) notHeld() string {
	if t.c.Phase == Ended {
		return "it has ended"
	}
	return fmt.Sprintf("it is not held, but %v", t.c.Phase)
}

// again goes on where the workflow was held, with a clean slate.
func (t *turn) again(now time.Time) error {
	t.c.Phase, t.c.From = t.c.From, 0
	t.c.Mark.Failures, t.c.Mark.Crashes = 0, 0
	t.c.Reason, t.c.Why = t.c.Why, ""
	switch {
	case t.c.Phase == RollingBack && t.c.Mark == Mark{}:
		return t.undoNext()
	case t.marksStep():
		t.c.Phase = Running
		fallthrough
	case t.undoing():
		t.c.Mark.Attempt++
		return t.run()
	case t.c.Phase == Running: // what follows could not be computed, and may be now
		t.do(Wake{})
	case t.c.Phase == Waiting:
		t.setAlarm(now)
	}
	return nil
}

// setAlarm wakes the workflow when it would have woken had it not been held.
func (t *turn) setAlarm(now time.Time) {
	if t.c.Alarm > 0 {
		t.do(Wake{After: max(time.UnixMicro(t.c.Alarm).Sub(now), 0)})
	}
	t.c.Alarm = 0
}

// dismissUndo records the undo that is held as settled by a person.
func (t *turn) dismissUndo(e Asked) error {
	r := Record{Outcome: NoEffect, Error: "skipped by " + e.By}
	if e.Verb == Force {
		r = Record{Outcome: Done, Error: "forced by " + e.By}
	}
	t.c.Phase, t.c.From = RollingBack, 0
	t.record(t.m.named[t.c.Mark.Step], r)
	if t.c.Why != "" {
		t.c.Reason, t.c.Why = t.c.Why, ""
	}
	return t.undoNext()
}

// pause holds the workflow. The marked attempt has not begun: what was counted
// for it is taken back.
func (t *turn) pause(e Asked) (refused string, err error) {
	switch t.c.Phase {
	case Ended:
		return "it has ended", nil
	case Held:
		return "it is held already: " + t.c.Reason, nil
	}
	if e.Counted && t.c.Mark != (Mark{}) && t.c.Mark.Attempt > 0 {
		t.c.Mark.Attempt--
	}
	why := t.c.Reason
	t.hold("paused by " + e.By)
	t.c.Paused = true
	if t.c.Why == "" {
		t.c.Why = why
	}
	return "", nil
}

// resumePaused goes on where a pause began.
func (t *turn) resumePaused(e Asked) (refused string, err error) {
	switch {
	case t.c.Phase != Held:
		return t.notHeld(), nil
	case !t.c.Paused:
		return "it is not paused, but held: retry it", nil
	}
	t.c.Phase, t.c.From, t.c.Paused = t.c.From, 0, false
	t.c.Reason, t.c.Why = t.c.Why, ""
	switch {
	case t.c.Phase == Waiting:
		t.setAlarm(e.At)
	case t.c.Mark != Mark{}:
		t.c.Mark.Attempt++
		return "", t.run()
	case t.c.Phase == RollingBack:
		return "", t.undoNext()
	default:
		t.do(Wake{})
	}
	return "", nil
}

// newIntent begins a new attempt group of the step that is held, or reopens what
// has ended badly.
func (t *turn) newIntent(e Asked) (refused string, err error) {
	switch {
	case t.c.Branch != "":
		return "a branch's step cannot begin a new intent: retry it, or resolve it", nil
	case t.c.Phase == Ended:
		return t.reopen()
	case t.c.Phase != Held:
		return t.notHeld(), nil
	case t.c.Paused:
		return "it is paused: resume it", nil
	case !t.marksStep():
		return "it is not held for a step", nil
	}
	t.c.Phase, t.c.From, t.c.Why = Running, 0, ""
	if err := t.giveUp(t.node(), false, "given up for a new intent by "+e.By); err != nil {
		return "", err
	}
	t.c.Reason = ""
	// A pivot counts as passed unless it was refused: the attempts that are given up
	// may have passed it, so there is no way back any more.
	t.c.Pivoted = t.c.Pivoted || t.node().step.Pivot
	t.c.Mark = Mark{Step: t.c.Mark.Step, Group: t.setGroup(t.c.Mark.Group + 1), Attempt: 1}
	return "", t.run()
}

// reopen begins anew what has ended badly, each step with a group of its own: at
// the start if all was undone, else in the state whose step has failed or was
// under way.
func (t *turn) reopen() (refused string, err error) {
	end := t.m.ends[t.c.End]
	terminated := t.c.Cause == Stopped
	if !terminated && end == Completed {
		return "it has completed", nil
	}
	if !t.c.PastKnown {
		return "", ErrNeedsPast
	}
	at := t.m.start
	groups := map[State]int{}
	for s, n := range t.m.states {
		for _, task := range n.tasks() {
			for _, p := range t.c.Past {
				if p.Step != task.step.Name {
					continue
				}
				groups[s] = max(groups[s], p.Group)
				if end == Failed && p.Outcome != Done {
					at = s
				}
			}
		}
	}
	if terminated {
		at = t.c.State
		groups[at] = max(groups[at], 1)
	}
	for s, n := range t.c.Groups {
		groups[s] = max(groups[s], n)
	}
	t.c.Groups = groups
	t.c.End, t.c.Cause, t.c.Reason, t.c.Why, t.c.From = "", "", "", "", 0
	t.c.Mark, t.c.Item, t.c.Open, t.c.Lanes, t.c.Failures = Mark{}, 0, 0, 0, 0
	return "", t.enter(at, Chosen, "")
}

// terminate ends the workflow where it stands.
func (t *turn) terminate(e Asked) (refused string, err error) {
	if t.c.Phase == Ended {
		return "it has ended", nil
	}
	reason := "terminated by " + e.By
	if t.marksStep() && t.mayHaveRun(e.Begun) {
		if err := t.giveUp(t.node(), false, reason); err != nil {
			return "", err
		}
	}
	if err := t.askToEnd(reason); err != nil {
		return "", err
	}
	if t.c.Branch != "" {
		return "", t.endBranch(Stopped, reason)
	}
	t.c = t.c.Terminated(reason)
	return "", nil
}

// Terminated is the cursor of a workflow that was stopped where it stood. It is
// what the verb Terminate comes to, and needs no machine: the code of the
// definition may be gone.
func (c Cursor) Terminated(reason string) Cursor {
	c.Phase, c.From, c.Paused = Ended, 0, false
	c.End, c.Cause, c.Reason, c.Why = "", Stopped, reason, ""
	c.Mark, c.Item, c.Awaits, c.Open, c.Alarm = Mark{}, 0, "", 0, 0
	return c
}
