package statemachine

import (
	"errors"
	"fmt"
	"maps"
	"strings"
)

// enter goes to s, and on through the choices behind it, to where there is
// something to do, to wait for or to end. Cause and reason say why, should it
// end badly; once a choice has been made the cause is the graph's own.
func (t *turn) enter(s State, cause Cause, reason string) error {
	t.c.Mark, t.c.Awaits, t.c.Reason = Mark{}, "", ""
	t.c.Lanes, t.c.Failures, t.c.Asked = 0, 0, 0
	t.c.Page, t.c.PageItems, t.c.Base = "", 0, 0
	for {
		if end, ok := t.m.ends[s]; ok {
			return t.finish(s, end, cause, reason)
		}
		t.c.State = s
		n := t.node()
		if n.kind != choice {
			return t.arrive(n)
		}
		to, err := n.pick(t.c.Data)
		if err == nil && !n.leadsTo(to) {
			err = fmt.Errorf("leads to %q, which is none of its targets", to)
		}
		if err != nil {
			return t.codeError(n.function, err)
		}
		s, cause = to, Chosen
	}
}

// arrive begins what happens in the state that was entered.
func (t *turn) arrive(n node) error {
	if n.fans() {
		return t.arriveInFan(n)
	}
	switch n.kind {
	case doStep:
		t.c.Phase, t.c.Mark = Running, Mark{Step: n.step.Name, Group: t.newGroup(), Attempt: 1}
		return t.run()
	case sleep:
		if n.untilOf != nil {
			t.c.Phase = Waiting
			return t.wakeUntil(n)
		}
		d, err := n.pause(t.c.Data)
		if err != nil {
			return t.codeError("duration", err)
		}
		t.c.Phase = Waiting
		t.do(Wake{After: max(d, 0)})
	case await:
		t.c.Phase, t.c.Awaits = Waiting, n.awaited()
		if !n.bounded {
			return nil
		}
		if n.untilOf != nil {
			return t.wakeUntil(n)
		}
		within := n.within
		if n.withinOf != nil {
			d, err := n.withinOf(t.c.Data)
			if err != nil {
				return t.codeError("within", err)
			}
			within = max(d, 0)
		}
		t.do(Wake{After: within})
	}
	return nil
}

// wakeUntil waits for the time that the data names. The zero time, which a
// forgotten field gives, is refused like any other mistake in the definition's code.
func (t *turn) wakeUntil(n node) error {
	at, err := n.untilOf(t.c.Data)
	if err == nil && at.IsZero() {
		err = errors.New("it is the zero time")
	}
	if err != nil {
		return t.codeError("at", err)
	}
	t.do(Wake{At: at})
	return nil
}

// arriveInFan begins what happens in other rows. A start inserts one row only:
// there they come with the first transition after it. A state without items is
// left in a transition of its own too, so that a loop of such states is one that
// others can see and stop.
func (t *turn) arriveInFan(n node) error {
	later := t.begins
	if n.kind == each {
		some, err := t.hasItems(n)
		if err != nil {
			return err
		}
		later = later || !some
	}
	if later {
		t.c.Phase = Running
		t.do(Wake{})
		return nil
	}
	return t.fanOut(n)
}

// newGroup returns the attempt group for the state that was entered: the
// first, unless the state can be entered again, or was because somebody wanted it
// as a new intent.
func (t *turn) newGroup() int {
	if !t.m.loops[t.c.State] && t.c.Groups[t.c.State] == 0 {
		return 1
	}
	return t.setGroup(t.c.Groups[t.c.State] + 1)
}

// setGroup makes a number the attempt group of the state.
func (t *turn) setGroup(n int) int {
	groups := maps.Clone(t.c.Groups)
	if groups == nil {
		groups = map[State]int{}
	}
	groups[t.c.State] = n
	t.c.Groups = groups
	return n
}

// finish reaches an end.
func (t *turn) finish(s State, end End, cause Cause, reason string) error {
	if end == Completed {
		t.end(s)
		return nil
	}
	return t.rollBack(s, cause, reason)
}

func (t *turn) end(s State) { t.c.State, t.c.End, t.c.Phase = s, s, Ended }

// timerFired ends a sleep, a wait or a pause. A wake-up that fits none of them
// is late and means nothing.
func (t *turn) timerFired() error {
	n := t.node()
	switch {
	case t.waitingIn(sleep):
		return t.enter(n.next(), Chosen, "")
	case t.waitingIn(await) && n.bounded:
		return t.enter(n.late(), TimedOut, n.lateText())
	case t.stepping(), t.pausing(), t.undoing():
		return t.resumed()
	}
	return nil
}

// signalled takes up the signal that the workflow waits for.
func (t *turn) signalled(signal string, payload []byte) error {
	a, _ := t.node().armOf(signal)
	data, err := a.merge(t.c.Data, payload)
	if bad, ok := errors.AsType[*valueError](err); ok {
		return &PayloadError{signal, bad}
	}
	if err != nil {
		return t.codeError("merge", err)
	}
	t.c.Data = data
	return t.enter(a.to, Chosen, "")
}

// lateText says that no signal has come in time.
func (n node) lateText() string {
	signal := fmt.Sprintf("%q", strings.ReplaceAll(n.awaited(), AwaitsSeparator, `" or "`))
	signal = strings.ReplaceAll(signal, `\"`, `"`)
	if n.withinOf != nil || n.untilOf != nil {
		return fmt.Sprintf("no signal %s in time", signal)
	}
	return fmt.Sprintf("no signal %s within %s", signal, brief(n.within))
}
