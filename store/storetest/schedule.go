package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var scheduleTests = []test{
	{"KeepsEveryField", scheduleFields},
	{"NameIsTaken", scheduleTaken},
	{"NotFound", scheduleNotFound},
	{"List", scheduleList},
	{"Due", scheduleDue},
	{"ChangeWritesAll", scheduleChange},
	{"ChangeIsGuarded", scheduleGuard},
	{"ChangeIsAtomic", scheduleAtomic},
	{"FiredSlotIsNeverReplaced", slotFiredOnce},
	{"QueuedSlotIsReplaced", slotQueued},
	{"WorkflowIDIsTaken", slotTaken},
	{"OneRunUnderEightWorkers", slotRace},
	{"LedgerInOrder", slotLedger},
	{"Delete", scheduleDelete},
}

// noon is a nominal time.
var noon = time.Date(2025, time.June, 1, 12, 0, 0, 0, time.UTC)

// schedule creates a schedule that is due at a time.
func (e *env) schedule(name string, due time.Time) store.Schedule {
	s := store.Schedule{Name: name, Definition: "order", Zone: "UTC", Spec: []byte(`{}`), Data: []byte(`{}`)}
	s.NextAt, s.DueAt = noon, due
	require.NoError(e, e.st.CreateSchedule(e.ctx, s))
	return e.getSchedule(name)
}

func (e *env) getSchedule(name string) store.Schedule {
	s, err := e.st.GetSchedule(e.ctx, name)
	require.NoError(e, err)
	return s
}

func (e *env) change(c store.ScheduleChange) store.Verdict {
	v, err := e.st.ChangeSchedule(e.ctx, c)
	require.NoError(e, err)
	return v
}

// changeOf is a change of s that leaves it as it is, but for the slots.
func changeOf(s store.Schedule, slots ...store.SlotChange) store.ScheduleChange {
	return store.ScheduleChange{Name: s.Name, Revision: s.Revision, ScheduleState: s.ScheduleState, Slots: slots}
}

// fires is the decision that a slot fires.
func fires(nominal time.Time, id string) store.SlotChange {
	return store.SlotChange{
		Slot:  store.Slot{Nominal: nominal, Status: store.SlotFired, Origin: store.SlotOfCalendar, WorkflowID: id},
		Start: &store.New{ID: id, Definition: order, Place: pending(charge, now)},
	}
}

// decides is a decision that starts nothing.
func decides(nominal time.Time, status store.SlotStatus, reason string) store.SlotChange {
	return store.SlotChange{Slot: store.Slot{Nominal: nominal, Status: status, Origin: store.SlotOfCalendar, Reason: reason}}
}

// slots returns a schedule's ledger, the latest first, without its times.
func (e *env) slots(name string) []store.Slot {
	slots, err := e.st.Slots(e.ctx, name, time.Time{}, 1000)
	require.NoError(e, err)
	for i := range slots {
		e.near(slots[i].DecidedAt, 0)
		slots[i].DecidedAt = time.Time{}
	}
	return slots
}

func scheduleFields(e *env) {
	s := store.Schedule{
		Name: "nightly", Definition: "order", Zone: "America/New_York", Spec: []byte{0, 1}, Data: []byte{0xff, 0},
		ScheduleState: store.ScheduleState{
			NextAt: noon, DueAt: noon.Add(time.Second), Queued: noon.Add(-time.Hour), Running: []string{"a", "b/c"},
			Paused: true, Note: "holidays", Error: "oh",
		},
	}
	require.NoError(e, e.st.CreateSchedule(e.ctx, s))
	got := e.getSchedule("nightly")
	e.near(got.CreatedAt, 0)
	e.near(got.PausedAt, 0)
	require.Equal(e, got.CreatedAt, got.UpdatedAt)
	s.Revision, s.PausedAt, s.CreatedAt, s.UpdatedAt = 1, got.PausedAt, got.CreatedAt, got.UpdatedAt
	require.Equal(e, s, got)

	bare := store.Schedule{Name: "bare", Definition: "order", Zone: "UTC", Spec: []byte("x")}
	require.NoError(e, e.st.CreateSchedule(e.ctx, bare))
	got = e.getSchedule("bare")
	require.Empty(e, got.Data)
	require.Empty(e, got.Running)
	require.Zero(e, got.NextAt)
	require.Zero(e, got.DueAt)
	require.Zero(e, got.Queued)
	require.Zero(e, got.PausedAt)
	require.False(e, got.Paused)
}

func scheduleTaken(e *env) {
	before := e.schedule("nightly", noon)
	again := before
	again.Definition, again.Data = "other", []byte("other")
	require.ErrorIs(e, e.st.CreateSchedule(e.ctx, again), store.ErrScheduleExists)
	require.Equal(e, before, e.getSchedule("nightly"))
}

func scheduleNotFound(e *env) {
	_, err := e.st.GetSchedule(e.ctx, "none")
	require.ErrorIs(e, err, store.ErrScheduleNotFound)
	require.ErrorContains(e, err, "none")
	require.ErrorIs(e, e.st.DeleteSchedule(e.ctx, "none"), store.ErrScheduleNotFound)
	require.Equal(e, store.Lost, e.change(store.ScheduleChange{Name: "none", Revision: 1, Slots: []store.SlotChange{fires(noon, "x")}}))
	require.Empty(e, e.slots("none"))
}

func scheduleList(e *env) {
	for _, name := range []string{"c", "a", "b"} {
		e.schedule(name, noon)
	}
	all, err := e.st.ListSchedules(e.ctx, "", 2)
	require.NoError(e, err)
	require.Len(e, all, 2)
	require.Equal(e, []string{"a", "b"}, []string{all[0].Name, all[1].Name})
	require.Nil(e, all[0].Data)
	all, err = e.st.ListSchedules(e.ctx, "b", 2)
	require.NoError(e, err)
	require.Len(e, all, 1)
	require.Equal(e, "c", all[0].Name)
}

// scheduleDue: what is due comes the longest due first, up to the limit and of
// the known definitions only, with the time when the next one will be.
func scheduleDue(e *env) {
	due := func(limit int, definitions ...string) (names []string, next time.Time) {
		d, err := e.st.DueSchedules(e.ctx, definitions, limit)
		require.NoError(e, err)
		e.near(d.Now, 0)
		for _, s := range d.Due {
			require.Equal(e, []byte(`{}`), s.Data)
			names = append(names, s.Name)
		}
		return names, d.Next
	}
	names, next := due(10, "order")
	require.Empty(e, names)
	require.Zero(e, next)

	at := e.time().Truncate(time.Microsecond)
	e.schedule("never", time.Time{})
	e.schedule("soon", at.Add(time.Hour))
	e.schedule("later", at.Add(2*time.Hour))
	e.schedule("second", at.Add(-time.Minute))
	e.schedule("first", at.Add(-time.Hour))
	names, next = due(10, "order", "other")
	require.Equal(e, []string{"first", "second"}, names)
	require.Equal(e, at.Add(time.Hour), next)
	names, _ = due(1, "order")
	require.Equal(e, []string{"first"}, names)
	names, next = due(10, "other")
	require.Empty(e, names)
	require.Zero(e, next)
	names, _ = due(10)
	require.Empty(e, names)
}

func scheduleChange(e *env) {
	s := e.schedule("nightly", noon)
	c := changeOf(s, decides(noon, store.SlotMissed, "late"), fires(noon.Add(time.Hour), "nightly/1"))
	c.NextAt, c.DueAt, c.Queued = noon.Add(2*time.Hour), noon.Add(3*time.Hour), noon.Add(-time.Hour)
	c.Running, c.Paused, c.Note, c.Error = []string{"nightly/1"}, true, "why", "what"
	require.Equal(e, store.Applied, e.change(c))

	got := e.getSchedule("nightly")
	require.Equal(e, c.ScheduleState, got.ScheduleState)
	require.EqualValues(e, 2, got.Revision)
	e.near(got.PausedAt, 0)
	require.False(e, got.UpdatedAt.Before(s.UpdatedAt))
	require.Equal(e, []store.Slot{
		{Nominal: noon.Add(time.Hour), Status: store.SlotFired, Origin: store.SlotOfCalendar, WorkflowID: "nightly/1"},
		{Nominal: noon, Status: store.SlotMissed, Origin: store.SlotOfCalendar, Reason: "late"},
	}, e.slots("nightly"))
	require.True(e, e.get("nightly/1").Owner.IsZero())
	require.Equal(e, "nightly/1", e.claimOne(e.worker()).ID)

	again := changeOf(got)
	require.Equal(e, store.Applied, e.change(again))
	require.Equal(e, got.PausedAt, e.getSchedule("nightly").PausedAt, "paused since the first time")
	again.Revision, again.ScheduleState = 3, store.ScheduleState{}
	require.Equal(e, store.Applied, e.change(again))
	got = e.getSchedule("nightly")
	require.Zero(e, got.PausedAt)
	require.Zero(e, got.NextAt)
	require.Empty(e, got.Note+got.Error)
}

func scheduleGuard(e *env) {
	s := e.schedule("nightly", noon)
	require.Equal(e, store.Applied, e.change(changeOf(s)))
	before := e.getSchedule("nightly")
	stale := changeOf(s, fires(noon, "nightly/1"))
	stale.NextAt = noon.Add(time.Hour)
	require.Equal(e, store.Lost, e.change(stale))
	require.Equal(e, before, e.getSchedule("nightly"))
	require.Empty(e, e.slots("nightly"))
	_, err := e.st.Get(e.ctx, "nightly/1")
	require.ErrorIs(e, err, store.ErrNotFound)
}

// scheduleAtomic: a workflow that cannot be started, since another transaction
// is about to take its id, takes the slots and the schedule's change with it.
func scheduleAtomic(e *env) {
	s := e.schedule("nightly", noon)
	c := changeOf(s, fires(noon, "nightly/1"), fires(noon.Add(time.Hour), "nightly/2"))
	back := errors.New("changed my mind")
	err := e.tryInTx(func(tx store.Tx) error {
		_, err := e.st.StartTx(e.ctx, tx, store.New{ID: "nightly/2", Definition: order, Place: pending(charge, now)})
		require.NoError(e, err)
		ctx, cancel := context.WithTimeout(e.ctx, 2*time.Second)
		defer cancel()
		_, err = e.st.ChangeSchedule(ctx, c)
		require.ErrorIs(e, err, store.ErrRetry)
		return back
	})
	require.ErrorIs(e, err, back)
	require.Equal(e, s, e.getSchedule("nightly"))
	require.Empty(e, e.slots("nightly"))
	_, err = e.st.Get(e.ctx, "nightly/1")
	require.ErrorIs(e, err, store.ErrNotFound)
	require.Equal(e, store.Applied, e.change(c), "the same change again")
}

func slotFiredOnce(e *env) {
	s := e.schedule("nightly", noon)
	require.Equal(e, store.Applied, e.change(changeOf(s, fires(noon, "nightly/1"))))
	want := e.slots("nightly")
	for _, other := range []store.SlotChange{fires(noon, "nightly/other"), decides(noon, store.SlotSkipped, "no")} {
		require.Equal(e, store.Applied, e.change(changeOf(e.getSchedule("nightly"), other)))
		require.Equal(e, want, e.slots("nightly"))
	}
	_, err := e.st.Get(e.ctx, "nightly/other")
	require.ErrorIs(e, err, store.ErrNotFound)
}

func slotQueued(e *env) {
	for i, status := range []store.SlotStatus{store.SlotQueued, store.SlotSkipped, store.SlotMissed} {
		name, id := fmt.Sprint("s", i), fmt.Sprint("run-", i)
		s := e.schedule(name, noon)
		require.Equal(e, store.Applied, e.change(changeOf(s, decides(noon, status, ""))))
		require.Equal(e, status, e.slots(name)[0].Status)
		require.Equal(e, store.Applied, e.change(changeOf(e.getSchedule(name), fires(noon, id))))
		require.Equal(e, store.SlotFired, e.slots(name)[0].Status)
		e.get(id)
	}
}

func slotTaken(e *env) {
	e.start("nightly/1", waiting(never))
	before := e.get("nightly/1")
	s := e.schedule("nightly", noon)
	require.Equal(e, store.Applied, e.change(changeOf(s, fires(noon, "nightly/1"), fires(noon.Add(time.Hour), "nightly/2"))))
	require.Equal(e, before, e.get("nightly/1"))
	slots := e.slots("nightly")
	require.Equal(e, store.Slot{Nominal: noon, Status: store.SlotSkipped, Origin: store.SlotOfCalendar, Reason: store.ReasonTaken}, slots[1])
	require.Equal(e, store.SlotFired, slots[0].Status, "the others fire")
}

// slotRace: eight workers decide the same slots at once, each as fast as it can;
// each slot has one row, and one of them started its workflow.
func slotRace(e *env) {
	const slots = 10
	e.schedule("nightly", noon)
	var applied atomic.Int64
	together(8, func(int) {
		for {
			s := trying(e, func() (store.Schedule, error) { return e.st.GetSchedule(e.ctx, "nightly") })
			if e.Failed() {
				return
			}
			if s.NextAt.Equal(noon.Add(slots * time.Hour)) {
				return
			}
			c := changeOf(s, fires(s.NextAt, "nightly/"+s.NextAt.Format(time.RFC3339)))
			c.NextAt = s.NextAt.Add(time.Hour)
			if trying(e, func() (store.Verdict, error) { return e.st.ChangeSchedule(e.ctx, c) }) == store.Applied {
				applied.Add(1)
			}
		}
	})
	require.EqualValues(e, slots, applied.Load())
	require.EqualValues(e, slots+1, e.getSchedule("nightly").Revision)
	ledger := e.slots("nightly")
	require.Len(e, ledger, slots)
	require.Len(e, all(e.ctx, e, e.st), slots)
	for i, sl := range ledger {
		require.Equal(e, noon.Add(time.Duration(slots-1-i)*time.Hour), sl.Nominal)
		require.Equal(e, store.SlotFired, sl.Status)
	}
}

func slotLedger(e *env) {
	s := e.schedule("nightly", noon)
	other := e.schedule("other", noon)
	var changes []store.SlotChange
	for i := range 5 {
		changes = append(changes, decides(noon.Add(time.Duration(i)*time.Hour), store.SlotSkipped, "no"))
	}
	require.Equal(e, store.Applied, e.change(changeOf(s, changes...)))
	require.Equal(e, store.Applied, e.change(changeOf(other, changes[0])))

	hours := func(slots []store.Slot, err error) (list []int) {
		require.NoError(e, err)
		for _, sl := range slots {
			list = append(list, int(sl.Nominal.Sub(noon)/time.Hour))
		}
		return list
	}
	require.Equal(e, []int{4, 3}, hours(e.st.Slots(e.ctx, "nightly", time.Time{}, 2)))
	require.Equal(e, []int{2, 1}, hours(e.st.Slots(e.ctx, "nightly", noon.Add(3*time.Hour), 2)))
	require.Equal(e, []int{1, 2, 3}, hours(e.st.SlotsBetween(e.ctx, "nightly", noon.Add(time.Hour), noon.Add(3*time.Hour))))
	require.Equal(e, []int{0}, hours(e.st.Slots(e.ctx, "other", time.Time{}, 9)))
}

func scheduleDelete(e *env) {
	s := e.schedule("nightly", noon)
	e.schedule("other", noon)
	require.Equal(e, store.Applied, e.change(changeOf(s, fires(noon, "nightly/1"))))
	require.NoError(e, e.st.DeleteSchedule(e.ctx, "nightly"))
	_, err := e.st.GetSchedule(e.ctx, "nightly")
	require.ErrorIs(e, err, store.ErrScheduleNotFound)
	require.Empty(e, e.slots("nightly"))
	e.get("nightly/1")
	e.getSchedule("other")
}
