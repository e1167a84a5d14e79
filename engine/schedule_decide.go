package engine

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

// What becomes of a schedule's slots. Everything here is pure: it follows from
// the schedule's row and the database's time.

// slotBatch bounds how many slots one decision leaves out as missed: after a long
// downtime it takes several.
const slotBatch = 200

// decision is what is to be written about a schedule.
type decision struct {
	state  store.ScheduleState
	slots  []store.Slot // of distinct nominal times
	cancel []string     // workflows to be asked for their rollback, once it is written
}

// decide says what becomes of the slots that are due. st.Running holds what has
// not ended. While a slot is queued the schedule is looked at again after recheck.
//
// Of the slots that are due, the latest may fire: as many as the catch-up policy
// says. The others are missed. Then the overlap policy has its say. While the
// schedule is paused all of them are skipped.
func (p *plan) decide(st store.ScheduleState, now time.Time, recheck time.Duration) decision {
	d := &deciding{plan: p, decision: decision{state: st}}
	d.state.Running = slices.Clone(st.Running)
	d.state.Error = ""
	d.unqueue()
	missed, current, next := p.due(st.NextAt, now)
	for _, slot := range missed {
		if st.Paused {
			d.skip(slot, "the schedule was paused")
		} else {
			d.put(store.Slot{Nominal: slot, Status: store.SlotMissed, Reason: "no worker was there in time"})
		}
	}
	for _, slot := range current {
		if st.Paused {
			d.skip(slot, "the schedule was paused")
		} else {
			d.place(slot)
		}
	}
	if p.spec.Overlap == OverlapCancel && !d.state.Queued.IsZero() && !st.Paused {
		d.cancel = d.state.Running
	}
	d.state.NextAt = next
	d.state.DueAt = p.dueAt(d.state, now, recheck)
	return d.decision
}

// due returns the slots from next on that are due: those that are missed, those
// that may fire, and the first that is left for later. If there are too many for
// one decision it returns the earliest, all of them missed.
func (p *plan) due(next, now time.Time) (missed, current []time.Time, rest time.Time) {
	fires := 1
	if p.spec.CatchUp == CatchUpAll {
		fires = p.spec.CatchUpLimit
	}
	var slots []time.Time
	for ; p.isDue(next, now); next = p.cal.Next(next) {
		if slots = append(slots, next); len(slots) > slotBatch+fires {
			return slots[:slotBatch], nil, slots[slotBatch]
		}
	}
	fires = min(fires, len(slots))
	if fires > 0 && p.spec.CatchUp == CatchUpNone && now.Sub(p.delayed(slots[len(slots)-1])) > p.spec.Grace {
		fires = 0
	}
	split := len(slots) - fires
	return slots[:split], slots[split:], next
}

// isDue reports whether a slot's time has come.
func (p *plan) isDue(slot, now time.Time) bool {
	return !slot.IsZero() && !p.delayed(slot).After(now)
}

// delayed is a slot's nominal time and its jitter, which is always the same.
func (p *plan) delayed(slot time.Time) time.Time {
	if p.spec.Jitter < time.Microsecond {
		return slot
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.name))
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(slot.UnixMicro())))
	part := h.Sum64() % uint64(p.spec.Jitter/time.Microsecond)
	return slot.Add(time.Duration(part) * time.Microsecond)
}

// dueAt says when a schedule is to be looked at: at its next slot, or sooner if a
// slot waits for the end of a run.
func (p *plan) dueAt(st store.ScheduleState, now time.Time, recheck time.Duration) time.Time {
	var at time.Time
	if !st.NextAt.IsZero() {
		at = p.delayed(st.NextAt)
	}
	if soon := now.Add(recheck); !st.Queued.IsZero() && !st.Paused && (at.IsZero() || soon.Before(at)) {
		at = soon
	}
	return at
}

// deciding is a decision in the making.
type deciding struct {
	*plan
	decision
}

// unqueue fires the queued slot if nothing is running any more.
func (d *deciding) unqueue() {
	if slot := d.state.Queued; !slot.IsZero() && !d.state.Paused && len(d.state.Running) == 0 {
		d.state.Queued = time.Time{}
		d.fire(slot, store.SlotOfCalendar)
	}
}

// place decides about a slot by the overlap policy.
func (d *deciding) place(slot time.Time) {
	idle, waits := len(d.state.Running) == 0, !d.state.Queued.IsZero()
	switch overlap := d.spec.Overlap; {
	case overlap == OverlapAllow, idle && !waits:
		d.fire(slot, store.SlotOfCalendar)
	case overlap == OverlapSkip:
		d.skip(slot, "an earlier run had not ended: "+d.state.Running[0])
	case overlap == OverlapQueue && waits:
		d.skip(slot, "another slot was queued already")
	default:
		if waits {
			d.skip(d.state.Queued, "a later slot was queued in its place")
		}
		d.state.Queued = slot
		d.put(store.Slot{Nominal: slot, Status: store.SlotQueued})
	}
}

// fire starts a slot's workflow. Where overlap matters it is remembered.
func (d *deciding) fire(slot time.Time, origin store.SlotOrigin) {
	id := SlotID(d.name, slot)
	d.put(store.Slot{Nominal: slot, Status: store.SlotFired, Origin: origin, WorkflowID: id})
	if d.spec.Overlap != OverlapAllow && origin != store.SlotOfBackfill && !slices.Contains(d.state.Running, id) {
		d.state.Running = append(d.state.Running, id)
	}
}

func (d *deciding) skip(slot time.Time, reason string) {
	d.put(store.Slot{Nominal: slot, Status: store.SlotSkipped, Reason: reason})
}

// put adds a slot to the decision; a second word about one replaces the first.
func (d *deciding) put(slot store.Slot) {
	slot.Origin = or(slot.Origin, store.SlotOfCalendar)
	same := func(s store.Slot) bool { return s.Nominal.Equal(slot.Nominal) }
	if i := slices.IndexFunc(d.slots, same); i >= 0 {
		d.slots[i] = slot
		return
	}
	d.slots = append(d.slots, slot)
}
