package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var leaseTests = []test{
	{"JoinIsListed", leaseJoin},
	{"YoungestFirst", leaseYoungest},
	{"JoinTwice", leaseJoinTwice},
	{"RenewLengthens", leaseRenew},
	{"RenewOfTheBuried", leaseRenewBuried},
	{"RenewOfTheUnknown", leaseRenewUnknown},
	{"ExpiredButNotBuried", leaseExpired},
	{"BuryOnlyTheExpired", leaseBury},
	{"BuriedOnce", leaseBuryOnce},
	{"LeaveGivesBack", leaseLeave},
	{"LeaveIsTheEnd", leaseLeft},
}

func (e *env) workers() []store.Worker {
	ws, err := e.st.Workers(e.ctx)
	require.NoError(e, err)
	return ws
}

func leaseJoin(e *env) {
	defs := []store.Def{{Name: "order", Version: 1}, {Name: "a@b", Version: 12}}
	w := store.Worker{ID: freshID(), Host: "höst-1", PID: 4711, Definitions: defs}
	require.NoError(e, e.st.Join(e.ctx, w, time.Minute))
	got := e.workers()
	require.Len(e, got, 1)
	e.near(got[0].StartedAt, 0)
	require.WithinDuration(e, got[0].StartedAt.Add(time.Minute), got[0].ExpiresAt, time.Second)
	w.StartedAt, w.ExpiresAt = got[0].StartedAt, got[0].ExpiresAt
	require.Equal(e, []store.Worker{w}, got)
	require.True(e, got[0].Alive())
}

func leaseYoungest(e *env) {
	a, b, c := e.worker(), e.worker(), e.worker()
	ws := e.workers()
	require.Len(e, ws, 3)
	for i := range ws[1:] {
		require.False(e, ws[i].StartedAt.Before(ws[i+1].StartedAt), "the youngest comes first")
	}
	require.ElementsMatch(e, []store.WorkerID{a, b, c}, []store.WorkerID{ws[0].ID, ws[1].ID, ws[2].ID})
}

func leaseJoinTwice(e *env) {
	w := e.deadWorker()
	require.Error(e, e.st.Join(e.ctx, store.Worker{ID: w}, time.Hour), "an incarnation joins once")
	require.False(e, e.workers()[0].Alive())
}

func leaseRenew(e *env) {
	w := e.workerFor(time.Minute)
	alive, err := e.st.Renew(e.ctx, w, time.Hour)
	require.NoError(e, err)
	require.True(e, alive)
	e.near(e.workers()[0].ExpiresAt, time.Hour)
}

func leaseRenewBuried(e *env) {
	w := e.deadWorker()
	before := e.workers()
	alive, err := e.st.Renew(e.ctx, w, time.Hour)
	require.NoError(e, err)
	require.False(e, alive)
	require.Equal(e, before, e.workers(), "a buried worker is not revived")
}

func leaseRenewUnknown(e *env) {
	alive, err := e.st.Renew(e.ctx, freshID(), time.Hour)
	require.NoError(e, err)
	require.False(e, alive)
	require.Empty(e, e.workers())
}

// leaseExpired: a lease that ran out unnoticed is renewed, and the worker keeps
// what it owns.
func leaseExpired(e *env) {
	w := e.workerFor(time.Microsecond)
	e.start("a", pending(charge, now))
	require.Len(e, e.claim(w), 1, "it is not buried")
	require.Zero(e, e.takeover(time.Second))
	alive, err := e.st.Renew(e.ctx, w, time.Hour)
	require.NoError(e, err)
	require.True(e, alive)
	buried, err := e.st.Bury(e.ctx)
	require.NoError(e, err)
	require.Empty(e, buried)
	e.apply(w, e.get("a"), completed)
}

func leaseBury(e *env) {
	alive := e.worker()
	expired := []store.WorkerID{e.workerFor(time.Microsecond), e.workerFor(time.Microsecond)}
	buried, err := e.st.Bury(e.ctx)
	require.NoError(e, err)
	require.ElementsMatch(e, expired, buried)
	for _, w := range e.workers() {
		require.Equal(e, w.ID == alive, w.Alive())
		if !w.Alive() {
			e.near(w.DeadAt, 0)
		}
	}
}

func leaseBuryOnce(e *env) {
	e.deadWorker()
	before := e.workers()
	buried, err := e.st.Bury(e.ctx)
	require.NoError(e, err)
	require.Empty(e, buried)
	require.Equal(e, before, e.workers())
}

// leaseLeave: what a leaving worker gives back can go on at once and nothing is
// held against it.
func leaseLeave(e *env) {
	w := e.worker()
	executing := e.startAs(w, "executing", pending(charge, in(time.Hour)))
	undoing := pending(charge, never)
	undoing.Status = store.Compensating
	e.startAs(w, "undoing", undoing)
	timer := e.startAs(w, "timer", waiting(in(time.Hour)))
	held := e.startAs(w, "held", store.Place{Status: store.Held, State: "H", Mark: charge})
	others := e.startAs(e.worker(), "others", pending(charge, never))

	n, err := e.st.Leave(e.ctx, w)
	require.NoError(e, err)
	require.Equal(e, 4, n)
	for _, id := range []string{"executing", "undoing"} {
		got := e.get(id)
		require.True(e, got.Owner.IsZero())
		require.EqualValues(e, 2, got.Revision)
		require.Equal(e, charge, got.Mark)
		require.WithinDuration(e, got.UpdatedAt, got.WakeAt, time.Second)
	}
	require.Equal(e, executing.Data, e.get("executing").Data)
	require.Equal(e, timer.WakeAt, e.get("timer").WakeAt)
	require.True(e, e.get("timer").Owner.IsZero())
	require.Equal(e, held.WakeAt, e.get("held").WakeAt)
	require.True(e, e.get("held").Owner.IsZero())
	require.Equal(e, others, e.get("others"))
	require.Len(e, e.claim(e.worker()), 2)
}

func leaseLeft(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	_, err := e.st.Leave(e.ctx, w)
	require.NoError(e, err)
	require.False(e, e.workers()[0].Alive())
	alive, err := e.st.Renew(e.ctx, w, time.Hour)
	require.NoError(e, err)
	require.False(e, alive)
	require.Empty(e, e.claim(w))
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, everything(guard(wf))))
	n, err := e.st.Leave(e.ctx, w)
	require.NoError(e, err)
	require.Zero(e, n)
	require.Zero(e, e.takeover(time.Second), "nothing is left to take over")
}
