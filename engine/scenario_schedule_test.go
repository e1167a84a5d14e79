package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

const slotEvery = 300 * time.Millisecond

// schedule creates a schedule of the named definition.
func (n *node) schedule(flow, name string, spec engine.ScheduleSpec, data trip) {
	n.w.Helper()
	created, err := n.flows[flow].Schedule(n.w.ctx(), name, spec, data)
	require.NoError(n.w, err)
	require.True(n.w, created)
}

// slots returns a schedule's ledger, in its order.
func (n *node) slots(name string) []store.Slot {
	n.w.Helper()
	slots, err := n.Slots(n.w.ctx(), name, 1000)
	require.NoError(n.w, err)
	slices.Reverse(slots)
	return slots
}

// decided waits until a schedule's ledger is as ok says, and returns it.
func (n *node) decided(name, what string, ok func([]store.Slot) bool) []store.Slot {
	n.w.Helper()
	var slots []store.Slot
	n.w.eventually(what, func() bool { slots = n.slots(name); return ok(slots) })
	return slots
}

func count(slots []store.Slot, status store.SlotStatus) (n int) {
	for _, s := range slots {
		if s.Status == status {
			n++
		}
	}
	return n
}

// fired returns the ids of the workflows that slots have started.
func fired(slots []store.Slot) (ids []string) {
	for _, s := range slots {
		if s.Status == store.SlotFired {
			ids = append(ids, s.WorkflowID)
		}
	}
	return ids
}

// complete checks that no slot of an interval is missing between the first and
// the last, and that each that has fired has its workflow.
func (w *world) complete(slots []store.Slot) {
	w.Helper()
	for i, s := range slots {
		require.Equal(w, slots[0].Nominal.Add(time.Duration(i)*slotEvery), s.Nominal, "slot %d", i)
		if s.Status == store.SlotFired {
			_, err := w.st.Get(w.ctx(), s.WorkflowID)
			require.NoError(w, err)
		}
	}
}

// rewind makes a schedule have been left alone since its first slot after a time.
func (w *world) rewind(name string, next time.Time) {
	w.Helper()
	s, err := w.st.GetSchedule(w.ctx(), name)
	require.NoError(w, err)
	c := store.ScheduleChange{Name: name, Revision: s.Revision, ScheduleState: s.ScheduleState}
	c.NextAt, c.DueAt = next, next
	verdict, err := w.st.ChangeSchedule(w.ctx(), c)
	require.NoError(w, err)
	require.Equal(w, store.Applied, verdict)
}

// A worker that is started anew three times an interval: each slot fires, and
// fires once.
func TestScheduleUnderRestarts(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.client()
		c.schedule("single", "tick", engine.ScheduleSpec{
			Every: slotEvery, Overlap: engine.OverlapAllow, CatchUp: engine.CatchUpAll, CatchUpLimit: 1000,
		}, trip{Amount: 7})
		restarts := 0
		for begin := time.Now(); time.Since(begin) < 3*time.Second; restarts++ {
			n := w.worker(nodeOptions{shared: true})
			<-time.After(slotEvery / 3)
			n.stop()
		}
		w.worker()
		slots := c.decided("tick", "every slot so far", func(slots []store.Slot) bool { return len(slots) >= 10 })
		w.complete(slots)
		require.Equal(w, len(slots), count(slots, store.SlotFired))
		for _, s := range slots {
			c.ends(s.WorkflowID, store.Completed)
			require.Equal(w, 1, w.ledger.calls(s.WorkflowID, "work"))
			require.Equal(w, 7, c.get(s.WorkflowID).Data.Amount)
		}
		w.Logf("%d slots, %d restarts", len(slots), restarts)
		require.NoError(w, c.PauseSchedule(w.ctx(), "tick", ""))
	})
}

// Several workers decide about the same slots: one run a slot, and each soon
// after its time.
func TestScheduleWithSeveralWorkers(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.client()
		for range 3 {
			w.worker()
		}
		c.schedule("single", "tick", engine.ScheduleSpec{Every: slotEvery, Overlap: engine.OverlapAllow}, trip{})
		slots := c.decided("tick", "ten slots", func(slots []store.Slot) bool { return len(slots) >= 10 })
		w.complete(slots)
		runs := 0
		for _, wf := range w.workflows() {
			_, nominal, ok := engine.ParseSlotID(wf.ID)
			require.True(w, ok, wf.ID)
			require.False(w, wf.CreatedAt.Before(nominal), "never early")
			runs++
		}
		require.GreaterOrEqual(w, runs, count(slots, store.SlotFired))
		for _, s := range slots {
			if s.Status == store.SlotFired {
				c.ends(s.WorkflowID, store.Completed)
				require.Equal(w, 1, w.ledger.calls(s.WorkflowID, "work"))
			}
		}
		require.NoError(w, c.PauseSchedule(w.ctx(), "tick", ""))
	})
}

// While a run goes on the slots that follow are skipped; once it has ended the
// next one fires.
func TestScheduleSkipsWhileARunGoesOn(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		n.schedule("vote", "tick", engine.ScheduleSpec{Every: slotEvery}, trip{Quorum: 1})
		slots := n.decided("tick", "some are skipped", func(slots []store.Slot) bool { return count(slots, store.SlotSkipped) >= 2 })
		require.Len(w, fired(slots), 1)
		first := fired(slots)[0]
		require.Equal(w, "an earlier run had not ended: "+first, slots[len(slots)-1].Reason)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, first, ballot, "yes"))
		n.ends(first, store.Completed)
		slots = n.decided("tick", "the next run", func(slots []store.Slot) bool { return count(slots, store.SlotFired) == 2 })
		w.complete(slots)
		require.NoError(w, n.DeleteSchedule(w.ctx(), "tick"))
	})
}

// A slot that comes while a run goes on has it rolled back, and starts when it is.
func TestScheduleCancelsTheRunThatGoesOn(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		n.schedule("vote", "tick", engine.ScheduleSpec{Every: slotEvery, Overlap: engine.OverlapCancel}, trip{Quorum: 1})
		slots := n.decided("tick", "two runs", func(slots []store.Slot) bool { return count(slots, store.SlotFired) >= 2 })
		require.NoError(w, n.DeleteSchedule(w.ctx(), "tick"))
		w.complete(slots)
		s := n.ends(fired(slots)[0], store.Compensated)
		require.Equal(w, statemachine.Cancelled, s.Cause)
		require.Equal(w, "schedule tick starts its next run", s.Reason)
		second := n.get(fired(slots)[1])
		require.False(w, second.CreatedAt.Before(s.EndedAt), "the runs do not overlap")
	})
}

// Slots that passed without a worker: the latest fire, the others are missed. And
// one schedule that cannot be decided about stops no other.
func TestScheduleAfterADowntimeBesideABrokenOne(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.client()
		hour := time.Now().UTC().Truncate(time.Hour)
		for _, name := range []string{"a-broken", "b-sound"} {
			c.schedule("single", name, engine.ScheduleSpec{
				Cron: "@hourly", Overlap: engine.OverlapAllow, CatchUp: engine.CatchUpAll, CatchUpLimit: 2,
			}, trip{})
			w.rewind(name, hour.Add(-4*time.Hour))
		}
		table := "schedule"
		if w.isPostgres() {
			table = "pawl.schedule"
		}
		w.exec(`UPDATE `+table+` SET zone = $1 WHERE name = 'a-broken'`, "Mars/Olympus")

		w.worker()
		slots := c.decided("b-sound", "it is caught up with", func(slots []store.Slot) bool { return len(slots) >= 5 })
		for i, s := range slots[:5] {
			require.Equal(w, hour.Add(time.Duration(i-4)*time.Hour), s.Nominal)
			want := store.SlotMissed
			if i >= 3 {
				want = store.SlotFired
				c.ends(s.WorkflowID, store.Completed)
			}
			require.Equal(w, want, s.Status, s.Nominal)
		}
		w.eventually("it says what is wrong", func() bool {
			row, err := w.st.GetSchedule(w.ctx(), "a-broken")
			return err == nil && row.Error == `bad schedule: zone: "Mars/Olympus" is not in the IANA database` && row.DueAt.After(time.Now())
		})
		require.Empty(w, c.slots("a-broken"))

		w.exec(`UPDATE `+table+` SET zone = $1 WHERE name = 'a-broken'`, "UTC")
		w.rewind("a-broken", hour.Add(-time.Hour))
		c.decided("a-broken", "it works again", func(slots []store.Slot) bool { return count(slots, store.SlotFired) >= 2 })
		info, err := c.GetSchedule(w.ctx(), "a-broken")
		require.NoError(w, err)
		require.Empty(w, info.Error)
	})
}

// The verbs, on a schedule whose slots are hours away.
func TestScheduleVerbs(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.worker()
		ctx := w.ctx()
		spec := engine.ScheduleSpec{Cron: "30 2 * * *", Zone: "America/New_York"}
		n.schedule("single", "nightly", spec, trip{Amount: 1})

		again, err := n.flows["single"].Schedule(ctx, "nightly", spec, trip{Amount: 1})
		require.NoError(w, err)
		require.False(w, again)
		_, err = n.flows["single"].Schedule(ctx, "nightly", spec, trip{Amount: 2})
		require.ErrorIs(w, err, engine.ErrScheduleExists)
		require.ErrorContains(w, err, "with another input")
		_, err = n.flows["single"].Schedule(ctx, "bad", engine.ScheduleSpec{Cron: "CRON_TZ=UTC"}, trip{})
		require.ErrorIs(w, err, engine.ErrBadSchedule)
		_, err = n.ScheduleJSON(ctx, "single", "bad", spec, []byte(`{"Nope":1}`))
		require.ErrorIs(w, err, engine.ErrBadInput)

		info, err := n.GetSchedule(ctx, "nightly")
		require.NoError(w, err)
		require.Equal(w, "every day at 02:30 (America/New_York)", info.Description)
		require.Len(w, info.Next, 5)
		require.Zero(w, info.Last)

		id, err := n.TriggerSchedule(ctx, "nightly")
		require.NoError(w, err)
		require.Equal(w, 1, n.ends(id, store.Completed).Data.Amount)
		require.Equal(w, store.SlotOfTrigger, n.slots("nightly")[0].Origin)

		begin := info.Next[0].AddDate(0, 0, -4)
		ids, err := n.BackfillSchedule(ctx, "nightly", begin.AddDate(0, 0, -1), info.Next[4])
		require.NoError(w, err)
		require.GreaterOrEqual(w, len(ids), 4, "nothing that is still to come")
		for _, id := range ids {
			n.ends(id, store.Completed)
			require.Equal(w, 1, w.ledger.calls(id, "work"))
		}
		ids, err = n.BackfillSchedule(ctx, "nightly", begin, info.Next[4])
		require.NoError(w, err)
		require.Empty(w, ids, "each slot once")
		_, err = n.BackfillSchedule(ctx, "nightly", begin.AddDate(-9, 0, 0), begin)
		require.ErrorIs(w, err, engine.ErrBadInput)

		require.NoError(w, n.PauseSchedule(ctx, "nightly", "holidays"))
		w.rewind("nightly", info.Next[0].AddDate(0, 0, -10))
		n.decided("nightly", "they are skipped", func(slots []store.Slot) bool { return count(slots, store.SlotSkipped) > 0 })
		require.NoError(w, n.ResumeSchedule(ctx, "nightly"))
		require.NoError(w, n.ResumeSchedule(ctx, "nightly"))
		info, err = n.GetSchedule(ctx, "nightly")
		require.NoError(w, err)
		require.False(w, info.Paused)
		require.True(w, info.Next[0].After(time.Now()))

		require.NoError(w, n.DeleteSchedule(ctx, "nightly"))
		for _, err := range []error{
			n.DeleteSchedule(ctx, "nightly"), n.PauseSchedule(ctx, "nightly", ""), n.ResumeSchedule(ctx, "nightly"), verb(n.TriggerSchedule(ctx, "nightly")),
		} {
			require.ErrorIs(w, err, engine.ErrScheduleNotFound)
		}
		n.get(id)
	})
}

func verb(_ string, err error) error { return err }

// What passed during a pause is skipped even if no worker was there to see it.
func TestResumeSkipsWhatHasPassed(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.client()
		c.schedule("single", "hourly", engine.ScheduleSpec{Cron: "0 * * * *"}, trip{})
		require.NoError(w, c.PauseSchedule(w.ctx(), "hourly", ""))
		w.rewind("hourly", time.Now().UTC().Truncate(time.Hour).Add(-1000*time.Hour))
		require.NoError(w, c.ResumeSchedule(w.ctx(), "hourly"))
		slots := c.slots("hourly")
		require.Len(w, slots, 1000)
		require.GreaterOrEqual(w, count(slots, store.SlotSkipped), 1000)
		info, err := c.GetSchedule(context.Background(), "hourly")
		require.NoError(w, err)
		require.True(w, info.DueAt.After(time.Now()))
	})
}
