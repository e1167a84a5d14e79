package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Schedules are looked at in each round, one look at a time, and sooner if a slot
// is due sooner.
func TestLooksAtSchedules(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	looks := func(d time.Duration) int { return len(pick[cmdSchedule](g.wait(d))) }
	require.Equal(t, 1, looks(500*time.Millisecond))
	require.Zero(t, looks(time.Second), "the last look has not ended")

	g.give(evScheduled{round: scheduleRound{next: 120 * time.Millisecond}})
	require.Zero(t, looks(119*time.Millisecond))
	require.Equal(t, 1, looks(time.Millisecond))
	g.give(evScheduled{round: scheduleRound{next: time.Hour}})
	require.Equal(t, 1, looks(500*time.Millisecond), "by polling")
	g.give(evScheduled{round: scheduleRound{next: 0}})
	require.Equal(t, 1, looks(time.Millisecond), "there is more at once")
}

// However often an answer names a time, the last word counts: looks do not
// multiply.
func TestLooksAtSchedulesDoNotMultiply(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	n := 0
	for range 333 { // ten seconds, in steps that fall apart from polls and looks
		for range pick[cmdSchedule](g.wait(30 * time.Millisecond)) {
			n++
			g.give(evScheduled{round: scheduleRound{next: 100 * time.Millisecond}})
		}
		if g.r.life != alive {
			t.Fatal("the lease has ended")
		}
		g.give(evRenewed{id: self, sentAt: g.now, alive: true}, evOwned{id: self})
	}
	require.InDelta(t, 90, n, 30)
}

func TestFiredSlotsAreClaimed(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	one[cmdClaim](t, g.give(evScheduled{round: scheduleRound{fired: 2, next: -1}}))
}

func TestDrainingWorkerLeavesSchedulesAlone(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	g.take("a")
	g.give(evDrain{})
	require.Empty(t, pick[cmdSchedule](g.wait(time.Second)))
}
