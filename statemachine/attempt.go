package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawlhq/pawl/step"
)

// run runs the marked step or undo, as the mark stands.
func (t *turn) run() error {
	if t.c.Phase == RollingBack {
		return t.runUndo()
	}
	n := t.node()
	in, err := t.input(n)
	if err != nil {
		return err
	}
	if t.inDoubt(n.step) {
		return t.settleDoubt(n.step, in)
	}
	t.do(RunStep{Spec: n.step, Key: t.key(t.c.Mark.Step), In: in})
	return nil
}

// resumed runs what is marked, unless it keeps killing its worker.
func (t *turn) resumed() error {
	switch {
	case t.c.Phase == Held, t.c.Phase == Ended, t.waitingIn(sleep), t.waitingIn(await), t.fanned():
		return nil
	case t.aboutToFan():
		return t.fanOut(t.node())
	case t.c.Phase == RollingBack && t.c.Mark == Mark{}:
		return t.undoNext()
	case t.c.Phase == Running && t.c.Mark == Mark{} && t.c.Branch == "":
		return t.enter(t.c.State, Chosen, "") // what could not be computed before
	case !t.stepping() && !t.pausing() && !t.undoing():
		return t.unexpected(Resumed{})
	case t.c.Mark.Crashes >= MaxCrashes:
		t.hold(fmt.Sprintf("%s crashed its worker %s", t.marked(), times(t.c.Mark.Crashes)))
		return nil
	case t.pausing():
		t.c.Phase = Running
	}
	return t.run()
}

// stepDone merges the result and follows the node's edge. In a branch the result
// is only recorded: the root merges it.
func (t *turn) stepDone(out []byte) error {
	n := t.node()
	if t.paging() {
		return t.paged(out)
	}
	if n.poll != nil {
		return t.polled(n, out)
	}
	return t.merged(n, out)
}

// merged takes up the result of the state's step, and follows the node's edge.
func (t *turn) merged(n node, out []byte) error {
	r := Record{Outcome: Done, Out: out}
	if n.step.Undo != nil || n.mergeAll != nil {
		in, err := t.input(n) // before the result changes the data
		if err != nil {
			return err
		}
		r.In = in
	}
	if n.merge != nil && t.c.Branch == "" {
		data, err := n.merge(t.c.Data, out)
		if err != nil {
			return t.codeError("out", err)
		}
		t.c.Data = data
	}
	t.record(n.step, r)
	switch {
	case t.c.Lanes > 0:
		return t.nextItem()
	case t.c.Branch != "":
		return t.endBranch("", "")
	}
	t.c.Pivoted = t.c.Pivoted || n.step.Pivot
	return t.enterOrHold(n.next())
}

// enterOrHold goes on after something that must be recorded whatever follows: if
// what follows cannot be computed, a person must look.
func (t *turn) enterOrHold(s State) error {
	before := *t
	err := t.enter(s, Chosen, "")
	ce, broken := errors.AsType[*CodeError](err)
	if !broken {
		return err
	}
	at, mark, groups := t.c.State, t.c.Mark, t.c.Groups
	*t = before // and with it what was about to be started
	t.c.State, t.c.Phase, t.c.Mark, t.c.Reason = at, Running, Mark{}, ""
	if mark != (Mark{}) { // its attempt has not begun
		mark.Attempt = 0
		t.c.Mark, t.c.Groups = mark, groups
	}
	t.hold(ce.Error())
	return nil
}

// stepFailed decides between another attempt, the rollback and a person.
func (t *turn) stepFailed(e StepFailed) error {
	n := t.node()
	t.c.Mark.Failures++
	t.c.Mark.Crashes = 0
	switch final := e.Final || n.step.Policy.Exhausted(t.c.Mark.Failures); {
	case !e.Rejected && !e.Final && !e.NoEffect && n.step.Unknown != step.Resend:
		t.doubt(n.step, e)
		return nil
	case !e.Rejected && !final:
		t.c.Phase = Waiting
		t.retry(n.step, e)
		return nil
	}
	return t.exhausted(n, e)
}

// exhausted goes on after a step that has failed for good.
func (t *turn) exhausted(n node, e StepFailed) error {
	goesOn := n.otherwise != "" && t.c.Branch == ""
	if t.c.Pivoted && !goesOn || n.step.Pivot && !e.Rejected && !e.NoEffect {
		t.hold(t.failure(e))
		return nil
	}
	cause, reason := Exhausted, t.failure(e)
	if e.Rejected {
		cause = Refused
	}
	if err := t.giveUp(n, e.Rejected || e.NoEffect, e.Error); err != nil {
		return err
	}
	switch {
	case t.c.Lanes > 0:
		return t.loses(cause, reason)
	case goesOn:
		return t.enterOrHold(n.otherwise)
	}
	return t.leave(cause, reason)
}

// leave gives the graph up, where it stands before the point of no return: a
// branch ends, and leaves the rollback to its root.
func (t *turn) leave(cause Cause, reason string) error {
	if t.c.Branch != "" {
		return t.endBranch(cause, reason)
	}
	return t.rollBack(t.m.onFailure, cause, reason)
}

// retry pauses before another attempt, as the other side asked or else as the
// policy says.
func (t *turn) retry(sp step.Spec, e StepFailed) {
	t.c.Reason = e.Error
	pause := sp.Policy.Pause(t.c.Mark.Failures, e.Chance)
	if e.Pause != nil {
		pause = *e.Pause
	}
	t.do(Wake{After: max(pause, 0)})
}

// giveUp records the marked step as one whose outcome will not be learnt, or
// as one without effect where that much is certain.
func (t *turn) giveUp(n node, noEffect bool, reason string) error {
	r := Record{Outcome: NoEffect, Error: reason}
	if n.step.Kind == step.KindCall && !noEffect {
		in, err := t.input(n)
		if err != nil {
			return err
		}
		r.Outcome, r.In = Unknown, in
	}
	t.record(n.step, r)
	return nil
}

// record keeps how the marked step or undo ended.
func (t *turn) record(sp step.Spec, r Record) {
	r.Step, r.Group, r.Attempt, r.Item = t.c.Mark.Step, t.c.Mark.Group, t.c.Mark.Attempt, t.c.Item
	t.do(r)
	t.c.Sure, t.c.Clear, t.c.Asks = 0, 0, 0
	if t.c.PastKnown && (sp.Undo != nil || sp.IsUndo) {
		t.c.Past = append(slices.Clip(t.c.Past), Past{Step: r.Step, Group: r.Group, Item: r.Item, Outcome: r.Outcome, In: r.In, Out: r.Out})
	}
}

// key is the key of a step in the marked attempt group, for the item at hand.
func (t *turn) key(name string) step.Key { return t.c.Key(name, t.c.Item, t.c.Mark.Group) }

// input is what the step of n is asked. It follows from the data alone, so it
// can be had again for as long as the step is under way. A branch has nothing
// else for its data.
func (t *turn) input(n node) ([]byte, error) {
	switch {
	case t.paging():
		return t.pageInput()
	case t.c.Lanes > 0:
		return t.laneInput()
	case t.c.Branch != "":
		return t.c.Data, nil
	}
	in, err := n.input(t.c.Data)
	if err != nil {
		return nil, t.codeError("in", err)
	}
	return in, nil
}

// failure says for people how what is marked failed for good.
func (t *turn) failure(e StepFailed) string {
	if e.Rejected {
		return fmt.Sprintf("%s was refused: %s", t.marked(), e.Error)
	}
	return fmt.Sprintf("%s failed %s: %s", t.marked(), times(t.c.Mark.Failures), e.Error)
}

// marked names the marked step or undo for people.
func (t *turn) marked() string {
	if t.m.named[t.c.Mark.Step].IsUndo {
		return "undo " + t.c.Mark.Step
	}
	return "step " + t.c.Mark.Step
}

// times says n for people.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
