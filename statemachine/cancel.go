package statemachine

// cancelAsked answers a request to cancel. Before the point of no return it is
// the same rollback as after a failure, and a step that may have begun is
// undone with the others; behind it the answer is no.
func (t *turn) cancelAsked(e CancelAsked) error {
	verdict := t.cancelVerdict(e.Begun)
	t.do(Answer{verdict})
	if verdict != CancelAccepted {
		return nil
	}
	switch {
	case t.fanned():
		t.stopBranches(Cancelled, e.Reason)
		return nil
	case t.marksStep() && t.mayHaveRun(e.Begun):
		if err := t.giveUp(t.node(), false, e.Reason); err != nil {
			return err
		}
	case !t.marksStep() && t.c.Mark != Mark{}:
		return t.unexpected(e)
	}
	return t.leave(Cancelled, e.Reason)
}

func (t *turn) cancelVerdict(begun bool) CancelVerdict {
	switch {
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
