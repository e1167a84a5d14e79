package statemachine

import "fmt"

// cancelAsked answers a request to cancel. Before the point of no return it is
// the same rollback as after a failure, and a step that may have begun is
// undone with the others; behind it the answer is no.
func (t *turn) cancelAsked(e CancelAsked) error {
	verdict := t.cancelVerdict(e.Begun)
	t.do(Answer{verdict})
	if verdict != CancelAccepted {
		return nil
	}
	return t.giveIn(Cancelled, e.Reason, e.Begun)
}

// giveIn begins the rollback from outside.
func (t *turn) giveIn(cause Cause, reason string, begun bool) error {
	switch {
	case t.fanned():
		t.c.Won = ""
		if err := t.stopBranches(cause, reason); err != nil {
			return err
		}
		return t.whenClosed(t.node())
	case t.marksStep() && t.mayHaveRun(begun):
		if err := t.giveUp(t.node(), false, reason); err != nil {
			return err
		}
	case !t.marksStep() && t.c.Mark != Mark{}:
		return fmt.Errorf("%w: %s in state %q, %v, step %q", ErrUnexpected, cause, t.c.State, t.c.Phase, t.c.Mark.Step)
	}
	return t.leave(cause, reason)
}

// deadlinePassed is a cancellation by the clock. Behind the point of no return a
// person must look, unless branches are under way: those are waited for. While the
// pivot is under way nothing is decided; the event comes again.
func (t *turn) deadlinePassed(e DeadlinePassed) error {
	reason := "not done within " + brief(t.m.deadline)
	switch t.cancelVerdict(e.Begun) {
	case CancelDeferred:
		return nil
	case CancelAccepted:
		t.c.Late = true
		return t.giveIn(Overdue, reason, e.Begun)
	case CancelPastPivot:
		if t.c.Phase != Held && !t.fanned() {
			if t.c.Mark != (Mark{}) && !e.Begun && t.c.Mark.Attempt > 0 {
				t.c.Mark.Attempt-- // counted, and not begun
			}
			t.hold(reason + ", and behind the point of no return")
		}
	}
	t.c.Late = true
	return nil
}

func (t *turn) cancelVerdict(begun bool) CancelVerdict {
	switch {
	case t.undoesLosers():
		return CancelDeferred
	case t.c.Phase == Ended, t.c.Phase == RollingBack, t.c.Phase == Held && t.c.From == RollingBack:
		return CancelTooLate
	case t.fanned() && t.c.Cause != "": // its branches are being stopped
		return CancelTooLate
	case t.c.Pivoted:
		return CancelPastPivot
	case t.marksStep() && t.node().step.Pivot && t.mayHaveRun(begun):
		return CancelDeferred
	default:
		return CancelAccepted
	}
}

// mayHaveRun reports whether an attempt of the marked step has begun: this one
// or, as the mark tells, one before it.
func (t *turn) mayHaveRun(begun bool) bool {
	m := t.c.Mark
	if t.c.Phase == Held && t.c.Paused {
		return m.Attempt > 0
	}
	return begun || m.Attempt > 1 || m.Failures > 0 || m.Crashes > 0
}
