package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// midnight is where the stories of these tests begin.
var midnight = time.Date(2025, time.June, 1, 0, 0, 0, 0, time.UTC)

// clockwork plays a schedule against a clock that the test sets: what the ledger
// comes to hold, and what still runs.
type clockwork struct {
	*testing.T
	plan   *plan
	st     store.ScheduleState
	ledger map[string]string // by the slot's time of day
	fired  []string
}

func newClockwork(t *testing.T, spec ScheduleSpec, start time.Time) *clockwork {
	p, err := compilePlan("s", spec)
	require.NoError(t, err)
	return &clockwork{T: t, plan: p, st: store.ScheduleState{NextAt: p.cal.Next(start)}, ledger: map[string]string{}}
}

// at decides at a time, after the given runs have ended.
func (c *clockwork) at(now time.Time, ended ...string) decision {
	c.Helper()
	var running []string
	for _, id := range c.st.Running {
		if _, slot, ok := ParseSlotID(id); !ok || !contains(ended, slot.Format("15:04")) {
			running = append(running, id)
		}
	}
	c.st.Running = running
	d := c.plan.decide(c.st, now, time.Second)
	for _, slot := range d.slots {
		at := slot.Nominal.Format("15:04")
		require.NotEqual(c, string(store.SlotFired), c.ledger[at], "%s was decided twice", at)
		c.ledger[at] = string(slot.Status)
		if slot.Status == store.SlotFired {
			c.fired = append(c.fired, at)
			require.Equal(c, SlotID("s", slot.Nominal), slot.WorkflowID)
		}
	}
	require.False(c, c.plan.isDue(d.state.NextAt, now) && len(d.slots) < slotBatch, "something due is left")
	c.st = d.state
	return d
}

func contains(list []string, s string) bool {
	return strings.Contains(" "+strings.Join(list, " ")+" ", " "+s+" ")
}

func hour(h float64) time.Time { return midnight.Add(time.Duration(h * float64(time.Hour))) }

var hourly = ScheduleSpec{Cron: "0 * * * *"}

func with(spec ScheduleSpec, change func(*ScheduleSpec)) ScheduleSpec {
	change(&spec)
	return spec
}

func TestEverySlotFiresInTime(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, with(hourly, func(s *ScheduleSpec) { s.Overlap = OverlapAllow }), midnight)
	for h := range 5 {
		d := c.at(hour(float64(h)))
		require.Equal(t, hour(float64(h+1)), d.state.DueAt)
	}
	require.Equal(t, []string{"01:00", "02:00", "03:00", "04:00"}, c.fired)
	require.Empty(t, c.st.Running, "where overlap does not matter nothing is remembered")
}

func TestOverlapPolicies(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[Overlap]string{
		OverlapSkip:   "01:00=FIRED 02:00=SKIPPED 03:00=SKIPPED 04:00=FIRED",
		OverlapQueue:  "01:00=FIRED 02:00=FIRED 03:00=SKIPPED 04:00=QUEUED",
		OverlapAllow:  "01:00=FIRED 02:00=FIRED 03:00=FIRED 04:00=FIRED",
		OverlapCancel: "01:00=FIRED 02:00=SKIPPED 03:00=FIRED 04:00=QUEUED",
	} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			c := newClockwork(t, with(hourly, func(s *ScheduleSpec) { s.Overlap = overlap }), midnight)
			c.at(hour(1))
			d := c.at(hour(2))
			if overlap == OverlapCancel {
				require.Equal(t, []string{"s/2025-06-01T01:00:00Z"}, d.cancel)
			} else {
				require.Empty(t, d.cancel)
			}
			if !c.st.Queued.IsZero() {
				require.Equal(t, hour(2).Add(time.Second), d.state.DueAt, "the end of the run is looked for")
			}
			c.at(hour(3))
			c.at(hour(3.5), "01:00")
			require.Equal(t, hour(4), c.st.DueAt)
			c.at(hour(4))
			require.Equal(t, want, c.text(4))
		})
	}
}

// text is the ledger of the first hours.
func (c *clockwork) text(hours int) string {
	var parts []string
	for h := 1; h <= hours; h++ {
		at := hour(float64(h)).Format("15:04")
		parts = append(parts, at+"="+c.ledger[at])
	}
	return strings.Join(parts, " ")
}

// After a downtime the latest slots fire, as many as the policy says.
func TestCatchUpPolicies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ScheduleSpec)
		now    time.Time
		want   string
	}{
		"last":                     {func(*ScheduleSpec) {}, hour(4.9), "01:00=MISSED 02:00=MISSED 03:00=MISSED 04:00=FIRED"},
		"none":                     {func(s *ScheduleSpec) { s.CatchUp = CatchUpNone }, hour(4.9), "01:00=MISSED 02:00=MISSED 03:00=MISSED 04:00=MISSED"},
		"none, but one is in time": {func(s *ScheduleSpec) { s.CatchUp = CatchUpNone }, hour(4.01), "01:00=MISSED 02:00=MISSED 03:00=MISSED 04:00=FIRED"},
		"none, with a long grace":  {func(s *ScheduleSpec) { s.CatchUp, s.Grace = CatchUpNone, time.Hour }, hour(4.9), "01:00=MISSED 02:00=MISSED 03:00=MISSED 04:00=FIRED"},
		"all up to 3":              {func(s *ScheduleSpec) { s.CatchUp, s.CatchUpLimit = CatchUpAll, 3 }, hour(4.9), "01:00=MISSED 02:00=FIRED 03:00=FIRED 04:00=FIRED"},
		"all up to 9":              {func(s *ScheduleSpec) { s.CatchUp, s.CatchUpLimit = CatchUpAll, 9 }, hour(4.9), "01:00=FIRED 02:00=FIRED 03:00=FIRED 04:00=FIRED"},
		"all, one at a time":       {func(s *ScheduleSpec) { s.CatchUp, s.CatchUpLimit, s.Overlap = CatchUpAll, 9, OverlapQueue }, hour(4.9), "01:00=FIRED 02:00=QUEUED 03:00=SKIPPED 04:00=SKIPPED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := with(hourly, func(s *ScheduleSpec) { s.Overlap = OverlapAllow; c.change(s) })
			w := newClockwork(t, spec, midnight)
			w.at(c.now)
			require.Equal(t, c.want, w.text(4))
		})
	}
}

// A downtime of more slots than one decision takes: each is in the ledger, and
// the latest are the ones that fire.
func TestLongDowntimeInSeveralDecisions(t *testing.T) {
	t.Parallel()
	spec := ScheduleSpec{Cron: "* * * * *", Overlap: OverlapAllow, CatchUp: CatchUpAll, CatchUpLimit: 5}
	c := newClockwork(t, spec, midnight)
	decisions := 0
	for now := hour(20.05); c.plan.isDue(c.st.NextAt, now); decisions++ {
		require.LessOrEqual(t, len(c.at(now).slots), slotBatch+5)
	}
	require.Len(t, c.ledger, 20*60+3)
	require.Equal(t, []string{"19:59", "20:00", "20:01", "20:02", "20:03"}, c.fired)
	require.Equal(t, 6, decisions)
}

func TestPausedSlotsAreSkipped(t *testing.T) {
	t.Parallel()
	c := newClockwork(t, with(hourly, func(s *ScheduleSpec) { s.Overlap = OverlapQueue }), midnight)
	c.at(hour(1))
	c.at(hour(2))
	c.st.Paused = true
	c.at(hour(3), "01:00")
	require.Equal(t, "01:00=FIRED 02:00=QUEUED 03:00=SKIPPED", c.text(3))
	require.Equal(t, hour(4), c.st.DueAt, "what is queued waits for the resumption")
	c.st.Paused = false
	c.at(hour(3.5))
	require.Equal(t, "01:00=FIRED 02:00=FIRED 03:00=SKIPPED", c.text(3))
}

// Scenario 46 through the ledger: the slots around a change of the clocks, with a
// worker that looks every ten minutes.
func TestClockChangesInTheLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, cron, from string
		want             []string
	}{
		{"America/New_York", "30 2 * * *", "2025-03-08T00:00:00Z", []string{"2025-03-08T07:30:00Z", "2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"}},
		{"America/New_York", "30 1 * * *", "2025-11-01T00:00:00Z", []string{"2025-11-01T05:30:00Z", "2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"}},
		{"Europe/London", "30 1 * * *", "2025-03-29T00:00:00Z", []string{"2025-03-29T01:30:00Z", "2025-03-30T01:00:00Z", "2025-03-31T00:30:00Z"}},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03T00:00:00Z", []string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
	} {
		p, err := compilePlan("s", ScheduleSpec{Cron: c.cron, Zone: c.zone, Overlap: OverlapAllow})
		require.NoError(t, err)
		from, err := time.Parse(time.RFC3339, c.from)
		require.NoError(t, err)
		st := store.ScheduleState{NextAt: p.cal.Next(from)}
		var got []string
		for now := from; now.Before(from.Add(72 * time.Hour)); now = now.Add(10 * time.Minute) {
			d := p.decide(st, now, time.Second)
			for _, slot := range d.slots {
				require.Equal(t, store.SlotFired, slot.Status)
				got = append(got, slot.Nominal.Format(time.RFC3339))
			}
			st = d.state
		}
		require.Equal(t, c.want, got, c.zone)
	}
}

// Jitter is of a slot alone, within its bound, and differs between schedules.
func TestJitter(t *testing.T) {
	t.Parallel()
	spec := with(hourly, func(s *ScheduleSpec) { s.Jitter = 10 * time.Minute })
	seen := map[time.Duration]bool{}
	for i := range 20 {
		p, err := compilePlan(fmt.Sprint("s", i), spec)
		require.NoError(t, err)
		for h := range 20 {
			slot := hour(float64(h))
			delay := p.delayed(slot).Sub(slot)
			require.Equal(t, delay, p.delayed(slot).Sub(slot))
			require.True(t, delay >= 0 && delay < 10*time.Minute, delay)
			seen[delay] = true
			require.False(t, p.isDue(slot, slot.Add(delay-1)))
			require.True(t, p.isDue(slot, slot.Add(delay)))
		}
	}
	require.Greater(t, len(seen), 390, "all but different")
}

func TestBadPolicies(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*ScheduleSpec){
		`overlap: "stop"`:                        func(s *ScheduleSpec) { s.Overlap = "stop" },
		`catch-up: "some"`:                       func(s *ScheduleSpec) { s.CatchUp = "some" },
		"catch-up limit: 0: it is 1 to 1000":     func(s *ScheduleSpec) { s.CatchUp = CatchUpAll },
		"catch-up limit: 1001: it is 1 to 1000":  func(s *ScheduleSpec) { s.CatchUp, s.CatchUpLimit = CatchUpAll, 1001 },
		"catch-up limit: it is for catch-up all": func(s *ScheduleSpec) { s.CatchUpLimit = 3 },
		"grace: -1s":                             func(s *ScheduleSpec) { s.Grace = -time.Second },
		"jitter: 25h0m0s":                        func(s *ScheduleSpec) { s.Jitter = 25 * time.Hour },
		"jitter: 2s: it is longer":               func(s *ScheduleSpec) { s.Cron, s.Every, s.Jitter = "", time.Second, 2*time.Second },
		"cron: it never fires":                   func(s *ScheduleSpec) { s.Cron = "0 0 30 2 *" },
	} {
		_, err := compilePlan("s", with(hourly, change))
		require.ErrorIs(t, err, ErrBadSchedule, want)
		require.ErrorContains(t, err, want)
	}
}

func TestSlotID(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{midnight, midnight.Add(300 * time.Millisecond), midnight.Add(time.Microsecond)} {
		schedule, nominal, ok := ParseSlotID(SlotID("a/b", at.In(time.FixedZone("", 3600))))
		require.True(t, ok)
		require.Equal(t, "a/b", schedule)
		require.Equal(t, at, nominal)
	}
	require.Equal(t, "nightly/2025-06-01T00:00:00Z", SlotID("nightly", midnight))
	for _, id := range []string{"", "order-42", "a/b", "/2025-06-01T00:00:00Z", "a/2025-06-01T00:00:00+00:00", "a/2025-06-01T00:00:00.0Z"} {
		_, _, ok := ParseSlotID(id)
		require.False(t, ok, id)
	}
	schedule, nominal, ok := SlotOf(step.NewKey("a/2025-06-01T00:00:00Z", "write", 2))
	require.True(t, ok)
	require.Equal(t, "a", schedule)
	require.Equal(t, midnight, nominal)
	_, _, ok = SlotOf(step.NewKey("order-42", "write", 2))
	require.False(t, ok)
	_, _, ok = SlotOf(step.Key{})
	require.False(t, ok)

	long := SlotID(strings.Repeat("x", MaxScheduleNameBytes), midnight.Add(time.Microsecond))
	require.NoError(t, CheckID(long))
}
