package statemachine

// A race is a state of Any: the first task to be done wins. The others are stopped,
// and what they have done is undone before the workflow goes on. While that happens
// the workflow is rolling back, but to no end: Cursor.Won names the winner.

// race takes note of a task that has ended, well or not.
func (t *turn) race(task string, cause Cause, reason string) error {
	switch {
	case cause != "" && t.c.Open > 0:
		if t.c.Won == "" && t.c.Why == "" {
			t.c.Why = reason // of the first that has failed, should none be done
		}
	case cause != "" && t.c.Won == "":
		if t.c.Why == "" {
			t.c.Why = reason
		}
		t.c.Cause, t.c.Reason, t.c.Why = cause, t.c.Why, ""
	case cause == "" && t.c.Won == "":
		t.c.Won, t.c.Why = task, ""
		return t.askToEnd(task + " was first")
	}
	return nil
}

// undoesLosers reports whether the losers of a race are being undone, be it that
// one of their undos is Held.
func (t *turn) undoesLosers() bool {
	undoing := t.c.Phase == RollingBack || t.c.Phase == Held && t.c.From == RollingBack
	return undoing && t.c.Won != "" && t.c.End == ""
}

// undoLosers begins with the newest of what the losers have done.
func (t *turn) undoLosers() error {
	if !t.c.PastKnown {
		return ErrNeedsPast
	}
	t.c.Phase, t.c.Awaits = RollingBack, ""
	return t.undoNext()
}

// lost reports whether a record is a loser's.
func (t *turn) lost(p Past) bool {
	if p.Step == t.c.Won || p.Group != t.group() {
		return false
	}
	for _, task := range t.m.states[t.c.State].tasks() {
		if task.step.Name == p.Step {
			return true
		}
	}
	return false
}

// joinWinner merges the winner's result and goes on.
func (t *turn) joinWinner() error {
	n, won := t.node(), t.c.Won
	t.c.Won, t.c.Phase = "", Waiting
	for _, p := range n.tasks() {
		if p.step.Name != won || p.merge == nil {
			continue
		}
		out, _ := t.result(won)
		data, err := p.merge(t.c.Data, out)
		if err != nil {
			return t.codeErrorIn(p, "out", err)
		}
		t.c.Data = data
	}
	return t.enter(n.next(), Chosen, "")
}
