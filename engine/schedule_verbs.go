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
	// MaxBackfill is how many slots one Backfill takes.
	MaxBackfill = 1000

	// backfillBatch is how many of them one transaction starts.
	backfillBatch = 100
)

// errRaced says that a schedule was changed by somebody else in the meantime.
var errRaced = fmt.Errorf("schedule was changed meanwhile: %w", store.ErrRetry)

// PauseSchedule makes a schedule's slots be skipped, from those that are not
// decided yet, until it is resumed. The note says why, for people. What runs goes
// on, and what is queued stays so. Pausing a paused schedule only changes the
// note.
func (e *Engine) PauseSchedule(ctx context.Context, name, note string) error {
	return e.changeSchedule(ctx, "pause", name, func(s store.Schedule, now time.Time) (*decision, error) {
		d := decision{state: s.ScheduleState}
		d.state.Paused, d.state.Note = true, storable(note)
		if p, err := planOf(s); err == nil {
			d.state.DueAt = p.dueAt(d.state, now, 0)
		}
		return &d, nil
	})
}

// ResumeSchedule ends a schedule's pause: its slots fire again from now on, and
// those that passed meanwhile are skipped.
func (e *Engine) ResumeSchedule(ctx context.Context, name string) error {
	for resumed := false; !resumed; {
		err := e.changeSchedule(ctx, "resume", name, func(s store.Schedule, now time.Time) (*decision, error) {
			if resumed = !s.Paused; resumed {
				return nil, nil
			}
			return e.decideResume(ctx, s, now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// decideResume skips what has passed during a pause, and ends it unless that is
// more than one decision takes.
func (e *Engine) decideResume(ctx context.Context, s store.Schedule, now time.Time) (*decision, error) {
	p, err := planOf(s)
	if err != nil { // there is nothing to decide by; workers will say so again
		d := decision{state: s.ScheduleState}
		d.state.Paused, d.state.Note, d.state.DueAt = false, "", now
		return &d, nil
	}
	d, err := e.decideSchedule(ctx, s, now)
	if err != nil {
		return nil, err
	}
	if !p.isDue(d.state.NextAt, now) {
		d.state.Paused, d.state.Note = false, ""
		d.state.DueAt = p.dueAt(d.state, now, 0)
	}
	return &d, nil
}

// TriggerSchedule starts a workflow of a schedule now, whatever its slots and
// its overlap policy say and even if it is paused, and returns the workflow's id.
// The run is in the ledger, and counts as running for the slots that follow.
func (e *Engine) TriggerSchedule(ctx context.Context, name string) (id string, err error) {
	var slot time.Time // chosen once, so that a repeated call starts nothing new
	err = e.changeSchedule(ctx, "trigger", name, func(s store.Schedule, now time.Time) (*decision, error) {
		p, err := planOf(s)
		if err != nil {
			return nil, err
		}
		if slot.IsZero() {
			slot = now.Truncate(time.Microsecond)
			id = SlotID(name, slot)
		}
		d := deciding{plan: p, decision: decision{state: s.ScheduleState}}
		if d.state.Running, err = e.stillRunning(ctx, s.Running); err != nil {
			return nil, err
		}
		d.fire(slot, store.SlotOfTrigger)
		return &d.decision, nil
	})
	if err != nil {
		return "", err
	}
	e.hints.tell(store.TopicReady)
	return id, nil
}

// BackfillSchedule starts the workflows of those slots from one time to another,
// both included, that have not fired: slots that were missed or skipped, or that
// were before the schedule's creation. Slots that are still to be decided are
// left to their time. It returns the ids of what it started; a slot that has
// fired never does again, so it may be repeated. The runs start at once and
// beside each other: the overlap policy is not asked.
func (e *Engine) BackfillSchedule(ctx context.Context, name string, from, to time.Time) (ids []string, err error) {
	s, err := e.readSchedule(ctx, name)
	if err != nil {
		return nil, err
	}
	slots, err := e.openSlots(ctx, s, from, to)
	if err != nil {
		return nil, fmt.Errorf("backfill schedule %q: %w", name, err)
	}
	for len(slots) > 0 {
		part := slots[:min(backfillBatch, len(slots))]
		slots = slots[len(part):]
		err := e.changeSchedule(ctx, "backfill", name, func(s store.Schedule, _ time.Time) (*decision, error) {
			p, err := planOf(s)
			if err != nil {
				return nil, err
			}
			d := deciding{plan: p, decision: decision{state: s.ScheduleState}}
			for _, slot := range part {
				d.fire(slot, store.SlotOfBackfill)
			}
			return &d.decision, nil
		})
		if err != nil {
			return ids, err
		}
		e.hints.tell(store.TopicReady)
		for _, slot := range part {
			ids = append(ids, SlotID(name, slot))
		}
	}
	return ids, nil
}

// openSlots returns the slots of a range that are decided or in the past, and
// that have neither fired nor are queued.
func (e *Engine) openSlots(ctx context.Context, s store.Schedule, from, to time.Time) ([]time.Time, error) {
	end := s.NextAt
	if end.IsZero() {
		var err error
		if end, err = e.store.Now(ctx); err != nil {
			return nil, err
		}
	}
	slots, err := slotsOf(s, from, to, end)
	if err != nil || len(slots) == 0 {
		return nil, err
	}
	rows, err := e.store.SlotsBetween(ctx, s.Name, slots[0], slots[len(slots)-1])
	if err != nil {
		return nil, err
	}
	taken := map[int64]bool{}
	for _, row := range rows {
		taken[row.Nominal.UnixMicro()] = row.Status == store.SlotFired || row.Status == store.SlotQueued
	}
	return slices.DeleteFunc(slots, func(slot time.Time) bool { return taken[slot.UnixMicro()] }), nil
}

// slotsOf returns the slots from one time to another, both included, that are
// before end.
func slotsOf(s store.Schedule, from, to, end time.Time) ([]time.Time, error) {
	p, err := planOf(s)
	if err != nil {
		return nil, err
	}
	var slots []time.Time
	for slot := p.cal.Next(from.Add(-1)); !slot.IsZero() && !slot.After(to) && slot.Before(end); slot = p.cal.Next(slot) {
		if slots = append(slots, slot); len(slots) > MaxBackfill {
			return nil, fmt.Errorf("%w: more than %d slots: take a shorter range", ErrBadInput, MaxBackfill)
		}
	}
	return slots, nil
}

// DeleteSchedule removes a schedule and its ledger, or returns
// ErrScheduleNotFound. The workflows that it has started go on.
func (e *Engine) DeleteSchedule(ctx context.Context, name string) error {
	if err := checkScheduleName(name); err != nil {
		return err
	}
	tried := false
	return retry(ctx, func() error {
		err := e.store.DeleteSchedule(ctx, name)
		if tried && errors.Is(err, ErrScheduleNotFound) {
			return nil // it was this call, and its answer was lost
		}
		tried = errors.Is(err, store.ErrUnsure)
		return err
	})
}

// changeSchedule changes a schedule as change says of how it stands, again and
// again until nobody else has changed it meanwhile; so change must be such that
// its repetition does no harm. A nil decision changes nothing.
func (e *Engine) changeSchedule(ctx context.Context, verb, name string, change func(s store.Schedule, now time.Time) (*decision, error)) error {
	if err := checkScheduleName(name); err != nil {
		return err
	}
	err := retry(ctx, func() error {
		s, err := e.store.GetSchedule(ctx, name)
		if err != nil {
			return err
		}
		now, err := e.store.Now(ctx)
		if err != nil {
			return err
		}
		d, err := change(s, now)
		if err != nil || d == nil {
			return err
		}
		verdict, err := e.writeDecision(ctx, s, *d)
		if err == nil && verdict == store.Lost {
			err = errRaced
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s schedule %q: %w", verb, name, err)
	}
	return nil
}
