package statemachine

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// A fork is a workflow that goes on from where another one has been. What that one
// has asked of other systems is asked again with its keys, so that it happens once.

// Key is the key of a step or undo of the workflow. A fork keeps those of the calls
// that its origin has begun.
func (c Cursor) Key(name string, item, group int) step.Key {
	id := c.ID
	if group <= c.Kept[name] {
		id = c.Origin
	}
	return step.NewItemKey(id, name, item, group)
}

// Played is something that has happened to a workflow, for a replay: a recorded step,
// or a signal that was taken up.
type Played struct {
	Record
	Signal  string // its name; "" for a step
	Payload []byte
}

// ErrCannotReplay says that what a workflow was like at a step cannot be told from
// what is recorded.
var ErrCannotReplay = errors.New("cannot be reconstructed from what is recorded")

// Replay computes where a workflow stood when a step began for the last time, from
// the data that it was started with and what has happened to it, in order. It runs no
// code but the definition's own pure functions. The cursor that it returns has the
// step marked, with no attempt begun; copied are the records before it.
//
// It refuses what cannot be followed from records of the workflow alone: branches and
// children, waits that ended without a signal, steps that have failed.
func (m *Machine) Replay(id string, data []byte, played []Played, at string) (c Cursor, copied []Record, err error) {
	last := 0
	for _, p := range played {
		if p.Step == at {
			last = max(last, p.Group)
		}
	}
	c, cmds, err := m.Next(Cursor{ID: id, Data: data, PastKnown: true}, Started{})
	for err == nil {
		if c.Mark.Step == at && (c.Mark.Group >= last || last == 0) {
			c.Mark.Attempt = 0
			return c, copied, nil
		}
		var ev Event
		ev, played, err = m.replays(c, cmds, played)
		if err != nil {
			break
		}
		c, cmds, err = m.Next(c, ev)
		for _, cmd := range cmds {
			if r, ok := cmd.(Record); ok {
				copied = append(copied, r)
			}
		}
	}
	return Cursor{}, nil, err
}

// replays returns what happens next to a workflow that stands at c.
func (m *Machine) replays(c Cursor, cmds []Command, played []Played) (Event, []Played, error) {
	n := m.states[c.State]
	switch {
	case n.fans():
		return nil, nil, fmt.Errorf("%w: state %q works in branches or children", ErrCannotReplay, c.State)
	case c.Phase == Ended || c.Phase == RollingBack:
		return nil, nil, fmt.Errorf("%w: it never came to that step", ErrCannotReplay)
	case c.Phase == Waiting && n.kind == sleep:
		return TimerFired{}, played, nil
	case c.Phase == Waiting && n.poll != nil:
		return Resumed{}, played, nil
	case len(played) == 0:
		return nil, nil, fmt.Errorf("%w: nothing is recorded behind state %q", ErrCannotReplay, c.State)
	}
	next, rest := played[0], played[1:]
	switch {
	case c.Phase == Waiting && next.Signal != "":
		return Signalled{next.Signal, next.Payload}, rest, nil
	case c.Phase == Running && next.Signal == "" && next.Step == c.Mark.Step && next.Group == c.Mark.Group && next.Outcome == Done:
		return StepDone{next.Out}, rest, nil
	case next.Signal == "":
		return nil, nil, fmt.Errorf("%w: step %s of group %d comes next in the records, in state %q", ErrCannotReplay, next.Step, next.Group, c.State)
	}
	return nil, nil, fmt.Errorf("%w: signal %q comes next, in state %q", ErrCannotReplay, next.Signal, c.State)
}

// StateOf returns the state that runs a step by itself; false if a step of that name
// runs in a branch, is a child, or is not there.
func (m *Machine) StateOf(name string) (State, bool) {
	for _, s := range m.names() {
		if n := m.states[s]; n.kind == doStep && !n.fans() && n.step.Name == name {
			return s, true
		}
	}
	return "", false
}
