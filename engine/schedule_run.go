package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

const (
	// scheduleBatch bounds how many schedules one round decides about.
	scheduleBatch = 50

	// brokenPause is after how long a schedule is tried again that could not be
	// decided about.
	brokenPause = 30 * time.Second
)

// scheduleRound is what a round over the due schedules has come to.
type scheduleRound struct {
	fired int           // how many workflows it started
	next  time.Duration // after which a schedule is due; negative if none is known to be
}

// runSchedules decides about the schedules that are due. Each is decided about by
// itself: what is wrong with one stops no other. Any number of workers may do so
// at once, since each decision is a compare-and-swap.
func (e *Engine) runSchedules(ctx context.Context) (scheduleRound, error) {
	names := e.definitionNames()
	if len(names) == 0 {
		return scheduleRound{next: -1}, nil
	}
	due, err := e.store.DueSchedules(ctx, names, scheduleBatch)
	if err != nil {
		return scheduleRound{next: -1}, err
	}
	round := scheduleRound{next: until(due.Next, due.Now)}
	var failed []error
	for _, s := range due.Due {
		d, err := e.runSchedule(ctx, s, due.Now)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		round.fired += d.fires()
		round.next = sooner(round.next, until(d.state.DueAt, due.Now))
	}
	if len(due.Due) == scheduleBatch && len(failed) == 0 {
		round.next = 0
	}
	return round, errors.Join(failed...)
}

// definitionNames returns the names of what is registered.
func (e *Engine) definitionNames() []string {
	var names []string
	for _, d := range e.Definitions() {
		names = append(names, d.Name)
	}
	return slices.Compact(names)
}

// runSchedule decides about one schedule. If another worker was faster, nothing
// is left of the decision but when to look again.
func (e *Engine) runSchedule(ctx context.Context, s store.Schedule, now time.Time) (decision, error) {
	d, err := e.decideSchedule(ctx, s, now)
	verdict := store.Lost
	if err == nil {
		verdict, err = e.writeDecision(ctx, s, d)
	}
	switch {
	case passing(ctx, err):
		return decision{}, err
	case err != nil:
		e.log.Warn("cannot decide about a schedule", "schedule", s.Name, "error", e.loggable(err))
		return e.putOff(ctx, s, now, err)
	case verdict == store.Lost:
		return decision{state: store.ScheduleState{DueAt: d.state.DueAt}}, nil
	}
	e.cancelRuns(ctx, s, d)
	return d, nil
}

// passing reports whether an error may be gone in the next round.
func passing(ctx context.Context, err error) bool {
	return errors.Is(err, store.ErrRetry) || errors.Is(err, store.ErrUnsure) || (err != nil && ctx.Err() != nil)
}

func (e *Engine) decideSchedule(ctx context.Context, s store.Schedule, now time.Time) (decision, error) {
	p, err := planOf(s)
	if err != nil {
		return decision{}, err
	}
	st := s.ScheduleState
	if st.Running, err = e.stillRunning(ctx, st.Running); err != nil {
		return decision{}, err
	}
	return p.decide(st, now, e.cfg.Poll), nil
}

// stillRunning returns those of the workflows that have not ended.
func (e *Engine) stillRunning(ctx context.Context, ids []string) ([]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ended, missing, err := e.store.Ended(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, w := range ended {
		missing = append(missing, w.ID)
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(missing, id) }), nil
}

// writeDecision writes what was decided, and reports whether it still held.
func (e *Engine) writeDecision(ctx context.Context, s store.Schedule, d decision) (store.Verdict, error) {
	c := store.ScheduleChange{Name: s.Name, Revision: s.Revision, ScheduleState: d.state}
	for _, slot := range d.slots {
		change := store.SlotChange{Slot: slot}
		if slot.Status == store.SlotFired {
			start, err := e.slotStart(s, slot)
			if err != nil {
				return store.Lost, err
			}
			change.Start = &start
		}
		c.Slots = append(c.Slots, change)
	}
	return e.store.ChangeSchedule(ctx, c)
}

// slotStart is the workflow of a slot, of the newest version of its definition
// that is registered here.
func (e *Engine) slotStart(s store.Schedule, slot store.Slot) (store.New, error) {
	reg, err := e.newest(s.Definition)
	if err != nil {
		return store.New{}, err
	}
	if isCoded(s.Data) {
		return store.New{}, codecErrorOf(fmt.Sprintf("schedule %q", s.Name), s.Data)
	}
	n, err := e.prepare(reg, slot.WorkflowID, s.Data)
	if err != nil {
		return store.New{}, err
	}
	return n.ownedBy(store.WorkerID{}), nil
}

// putOff leaves a schedule that could not be decided about for later, and says in
// its row why. None of its slots is lost by that: they are decided about then.
func (e *Engine) putOff(ctx context.Context, s store.Schedule, now time.Time, why error) (decision, error) {
	d := decision{state: s.ScheduleState}
	d.state.Error = storable(why.Error())
	d.state.DueAt = now.Add(brokenPause)
	_, err := e.writeDecision(ctx, s, d)
	return d, err
}

// cancelRuns asks for the rollback of what a queued slot waits for. It is asked
// again each time that the schedule is looked at, under the same id.
func (e *Engine) cancelRuns(ctx context.Context, s store.Schedule, d decision) {
	for _, id := range d.cancel {
		reason := fmt.Sprintf("schedule %s starts its next run", s.Name)
		err := e.Cancel(ctx, id, reason, MessageID("schedule"))
		switch {
		case err == nil, errors.Is(err, ErrEnded), errors.Is(err, ErrPastPivot), errors.Is(err, ErrNotFound):
		default:
			e.log.Warn("cannot cancel a run of a schedule", "schedule", s.Name, "workflow", id, "error", err)
		}
	}
}

// loggable is an error as it may be logged: where payloads are encoded it may quote
// one.
func (e *Engine) loggable(err error) any {
	if e.cfg.Codec == nil || errors.Is(err, ErrCodec) {
		return err
	}
	return "see the schedule"
}

// fires counts the workflows that a decision starts.
func (d decision) fires() (n int) {
	for _, slot := range d.slots {
		if slot.Status == store.SlotFired {
			n++
		}
	}
	return n
}

// until is how long it is from now to a time, or negative if that is none.
func until(t, now time.Time) time.Duration {
	if t.IsZero() {
		return -1
	}
	return max(t.Sub(now), 0)
}

// sooner returns the shorter of two durations, of which a negative one is none.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || (b >= 0 && b < a) {
		return b
	}
	return a
}
