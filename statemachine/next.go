package statemachine

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// MaxCrashes is how many attempts in a row may end without a word, because
// their process died, before the workflow is Held: it may be what kills it.
const MaxCrashes = 5

// Next says what follows from e for a workflow that stands at c: where it
// stands then, and what is to be done about it. The same arguments always give
// the same answer, and what c refers to is never changed: the answer shares
// what stayed the same and copies what did not.
//
// With an error the cursor comes back as it was and nothing is to be done:
// [ErrNeedsPast] asks for Cursor.Past, [ErrUnexpected] refuses an event that
// does not fit, a [*CodeError] blames the definition's own functions, and a
// [*PayloadError] a signal's sender.
func (m *Machine) Next(c Cursor, e Event) (Cursor, []Command, error) {
	t := turn{m: m, c: c}
	if err := t.take(e); err != nil {
		return c, nil, err
	}
	return t.c, t.cmds, nil
}

// turn is one call of Next under way.
type turn struct {
	m    *Machine
	c    Cursor    // as it will be
	cmds []Command // so far

	begins bool // the event is Started
}

// take is the table of what may happen when.
func (t *turn) take(e Event) error {
	switch e := e.(type) {
	case Started:
		if t.c.Phase == 0 {
			t.begins = true
			return t.enter(t.m.start, Chosen, "")
		}
	case Resumed:
		return t.resumed()
	case StepDone:
		switch {
		case t.stepping():
			return t.stepDone(e.Out)
		case t.undoing():
			return t.undoDone()
		}
	case StepFailed:
		switch {
		case t.stepping():
			return t.stepFailed(e)
		case t.undoing():
			return t.undoFailed(e)
		}
	case Probed:
		if t.stepping() && t.node().step.Unknown == step.Probe {
			return t.probed(e)
		}
	case Interrupted:
		if t.stepping() || t.undoing() {
			t.c.Mark.Attempt++
			return t.run()
		}
	case TimerFired:
		return t.timerFired()
	case Signalled:
		if t.waitingIn(await) && t.c.Awaits == t.node().awaited() {
			if _, ok := t.node().armOf(e.Name); ok {
				return t.signalled(e.Name, e.Payload)
			}
		}
	case BranchEnded:
		return t.branchEnded(e)
	case ChildEnded:
		return t.childEnded(e)
	case CancelAsked:
		if t.c.Phase != 0 {
			return t.cancelAsked(e)
		}
	case DeadlinePassed:
		if t.c.Phase != 0 {
			return t.deadlinePassed(e)
		}
	case Asked:
		if t.c.Phase != 0 {
			return t.asked(e)
		}
	case Unstorable:
		if t.c.Phase != 0 && t.c.Phase != Ended {
			t.hold(e.Error)
			return nil
		}
	}
	return t.unexpected(e)
}

func (t *turn) unexpected(e Event) error {
	return fmt.Errorf("%w: %T in state %q, %v, step %q", ErrUnexpected, e, t.c.State, t.c.Phase, t.c.Mark.Step)
}

// node is what happens where the workflow stands: in its state or, if it is a
// branch, in its task of that state.
func (t *turn) node() node {
	n := t.m.states[t.c.State]
	switch {
	case t.c.Branch != "":
		return n.part(t.c.Branch)
	case t.paging():
		return n.asker()
	}
	return n
}

// marksStep reports whether the mark names the step of the state.
func (t *turn) marksStep() bool {
	n := t.node()
	return n.kind == doStep && n.step.Name == t.c.Mark.Step
}

// stepping reports whether a step is under way.
func (t *turn) stepping() bool { return t.c.Phase == Running && t.marksStep() }

// pausing reports whether a step waits for its next attempt.
func (t *turn) pausing() bool { return t.c.Phase == Waiting && t.marksStep() }

// undoing reports whether an undo is under way, or waits for its next attempt.
func (t *turn) undoing() bool { return t.c.Phase == RollingBack && t.m.undone[t.c.Mark.Step] != "" }

// waitingIn reports whether the workflow waits in a node of that kind.
func (t *turn) waitingIn(k kind) bool {
	return t.c.Phase == Waiting && t.c.Mark == Mark{} && t.node().kind == k
}

// do adds a command.
func (t *turn) do(cmd Command) { t.cmds = append(t.cmds, cmd) }

// hold leaves the workflow to a person, who finds it as it was.
func (t *turn) hold(reason string) {
	if t.c.Phase != Held {
		t.c.From, t.c.Phase = t.c.Phase, Held
	}
	t.c.Reason = reason
}

// codeError blames a function of the state where the workflow stands.
func (t *turn) codeError(function string, err error) error {
	return t.codeErrorIn(t.node(), function, err)
}

// codeErrorIn blames a function of one task of that state.
func (t *turn) codeErrorIn(n node, function string, err error) error {
	ce := &CodeError{State: t.c.State, Step: n.step.Name, What: function, Err: err}
	if p, ok := errors.AsType[*panicError](err); ok {
		ce.Stack = p.stack
	}
	return ce
}
