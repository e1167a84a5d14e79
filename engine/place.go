package engine

import (
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// follow is what an owner does once a transition is durable: run a step's body,
// or look again after a while, or nothing.
type follow struct {
	run  *statemachine.RunStep
	wake *time.Duration // after which to look again; of one that has a time, by this machine's clock
	at   time.Time      // when to look again, by the database's clock; zero if only wake says
}

// followOf picks what is to be done out of the commands of the last event.
func followOf(cmds []statemachine.Command) follow {
	var f follow
	for _, cmd := range cmds {
		switch cmd := cmd.(type) {
		case statemachine.RunStep:
			f.run = &cmd
		case statemachine.Wake:
			f.wake, f.at = &cmd.After, cmd.At
			if !cmd.At.IsZero() {
				after := max(time.Until(cmd.At), 0)
				f.wake = &after
			}
		}
	}
	return f
}

// placeOf is a cursor as the store keeps it, for a workflow that stays with its
// owner if it has a body to run.
func placeOf(m *statemachine.Machine, c statemachine.Cursor, f follow) store.Place {
	p := store.Place{
		Status:  statusOf(m, c),
		State:   string(c.State),
		Mark:    store.Mark(c.Mark),
		Awaits:  c.Awaits,
		Data:    c.Data,
		Cursor:  c.Rest(),
		Error:   storable(c.Reason),
		Pivoted: c.Pivoted,
	}
	switch {
	case f.wake == nil:
	case !f.at.IsZero():
		p.Wake = store.Wake{Kind: store.WakeAt, After: *f.wake, At: f.at}
	default:
		p.Wake = store.Wake{Kind: store.WakeAfter, After: *f.wake}
	}
	return p
}

// unowned turns the place of a workflow that has a body to run into the place
// of one that waits to be claimed: the claim counts the attempt.
func unowned(p store.Place) store.Place {
	if p.Status == store.Pending || (p.Status == store.Compensating && p.Wake.Kind == store.WakeNever) {
		p.Wake = store.Wake{Kind: store.WakeAfter}
		p.Mark.Attempt = max(p.Mark.Attempt-1, 0)
	}
	return p
}

func statusOf(m *statemachine.Machine, c statemachine.Cursor) store.Status {
	switch c.Phase {
	case statemachine.Running:
		return store.Pending
	case statemachine.Waiting:
		return store.Waiting
	case statemachine.RollingBack:
		return store.Compensating
	case statemachine.Held:
		return store.Held
	}
	if c.Branch != "" {
		return statusOfBranch(c)
	}
	if c.Cause == statemachine.Stopped {
		return store.Terminated
	}
	switch end, _ := m.End(c.End); end {
	case statemachine.RolledBack:
		return store.Compensated
	case statemachine.Failed:
		return store.Failed
	default:
		return store.Completed
	}
}

// statusOfBranch is for a branch that has ended. It undoes nothing itself.
func statusOfBranch(c statemachine.Cursor) store.Status {
	if c.Cause != "" {
		return store.Failed
	}
	return store.Completed
}

func phaseOf(s store.Status) statemachine.Phase {
	switch s {
	case store.Pending:
		return statemachine.Running
	case store.Waiting:
		return statemachine.Waiting
	case store.Compensating:
		return statemachine.RollingBack
	case store.Held:
		return statemachine.Held
	default:
		return statemachine.Ended
	}
}

// cursorOf is the way back from the store. Of a row that cannot be read, which is an
// ErrCodec, it returns what is no payload.
func cursorOf(w store.Workflow) (statemachine.Cursor, error) {
	c := statemachine.Cursor{
		ID:      store.RootOf(w.ID),
		Branch:  store.BranchOf(w.ID),
		State:   statemachine.State(w.State),
		Phase:   phaseOf(w.Status),
		Data:    w.Data,
		Mark:    statemachine.Mark(w.Mark),
		Awaits:  w.Awaits,
		Pivoted: w.Pivoted,
		Reason:  w.Error,
	}
	if err := readable(w); err != nil {
		return c, err
	}
	return c, c.SetRest(w.Cursor)
}
