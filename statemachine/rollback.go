package statemachine

import (
	"fmt"
	"iter"

	"github.com/pawlhq/pawl/step"
)

// The rollback undoes, newest first, each recorded step that has an undo and is
// done or may be. What is left to undo is not kept anywhere: it follows from
// the records, so the two cannot disagree.

// rollBack leaves the graph for good: from here on there are only undos, and
// then end. If end is a Failed one nothing is undone.
func (t *turn) rollBack(end State, cause Cause, reason string) error {
	t.c.Mark, t.c.Awaits, t.c.From = Mark{}, "", 0
	t.c.Lanes, t.c.Failures, t.c.Asked = 0, 0, 0
	t.c.Page, t.c.PageItems, t.c.Base = "", 0, 0
	t.c.Paused, t.c.Alarm, t.c.Won = false, 0, ""
	t.c.End, t.c.Cause, t.c.Reason = end, cause, reason
	if t.m.ends[end] == Failed {
		t.end(end)
		return nil
	}
	t.c.Phase = RollingBack
	return t.undoNext()
}

// undoNext begins the next undo, or ends the workflow if none is left.
func (t *turn) undoNext() error {
	if len(t.m.undone) > 0 && !t.c.PastKnown {
		return ErrNeedsPast
	}
	p, ok := t.newestToUndo()
	if !ok && t.undoesLosers() {
		t.c.Mark, t.c.Item = Mark{}, 0
		return t.joinWinner()
	}
	if !ok {
		t.c.Mark, t.c.Item = Mark{}, 0
		t.end(t.c.End)
		return nil
	}
	t.c.Item = p.Item
	t.c.Mark = Mark{Step: t.m.named[p.Step].Undo.Name, Group: p.Group, Attempt: 1}
	return t.run()
}

// newestToUndo returns the youngest record that still has to be undone.
func (t *turn) newestToUndo() (Past, bool) {
	for p := range t.m.LeftToUndo(t.c.Past) {
		if !t.undoesLosers() || t.lost(p) {
			return p, true
		}
	}
	return Past{}, false
}

// LeftToUndo goes, newest first, over the records of past that have or may have
// had an effect, have an undo, and were not undone. An undo that somebody has
// skipped counts as done with.
func (m *Machine) LeftToUndo(past []Past) iter.Seq[Past] {
	type undo struct {
		name        string
		group, item int
	}
	return func(yield func(Past) bool) {
		undone := map[undo]bool{}
		for i := len(past) - 1; i >= 0; i-- {
			p := past[i]
			switch sp := m.named[p.Step]; {
			case sp.IsUndo && p.Outcome != Unknown:
				undone[undo{sp.Name, p.Group, p.Item}] = true
			case sp.Undo != nil && p.Outcome != NoEffect && !undone[undo{sp.Undo.Name, p.Group, p.Item}]:
				if !yield(p) {
					return
				}
			}
		}
	}
}

// runUndo runs the marked undo.
func (t *turn) runUndo() error {
	if !t.c.PastKnown {
		return ErrNeedsPast
	}
	undo := t.c.Mark.Step
	action := t.m.undone[undo]
	for i := len(t.c.Past) - 1; i >= 0; i-- {
		if p := t.c.Past[i]; p.Step == action && p.Group == t.c.Mark.Group && p.Item == t.c.Item {
			undoes := step.Undoes{Key: t.key(action), In: p.In, Out: p.Out, Known: p.Outcome == Done}
			t.do(RunStep{Spec: t.m.named[undo], Key: t.key(undo), Undoes: undoes})
			return nil
		}
	}
	return fmt.Errorf("%w: %s, but no step %s is recorded", ErrUnexpected, t.marked(), action)
}

// undoDone records the undo and goes on to the next.
func (t *turn) undoDone() error {
	t.record(t.m.named[t.c.Mark.Step], Record{Outcome: Done})
	if t.c.Why != "" {
		t.c.Reason, t.c.Why = t.c.Why, ""
	}
	return t.undoNext()
}

// undoFailed tries again, or leaves it to a person: an undo is never dropped.
func (t *turn) undoFailed(e StepFailed) error {
	sp := t.m.named[t.c.Mark.Step]
	t.c.Mark.Failures++
	t.c.Mark.Crashes = 0
	if t.c.Why == "" {
		t.c.Why = t.c.Reason
	}
	if e.Rejected || e.Final || sp.Policy.Exhausted(t.c.Mark.Failures) {
		t.hold(t.failure(e))
		return nil
	}
	t.retry(sp, e)
	return nil
}
