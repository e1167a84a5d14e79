package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var releaseTests = []test{
	{"NotBegunIsNotCounted", releaseNotBegun},
	{"BegunIsCounted", releaseBegun},
	{"NothingToTakeBack", releaseZero},
	{"WaitingKeepsItsTime", releaseWaiting},
	{"StaleIsSkipped", releaseStale},
	{"NothingToRelease", releaseNothing},
}

func (e *env) release(w store.WorkerID, rs ...store.Released) {
	require.NoError(e, e.st.Release(e.ctx, w, rs))
}

func releaseNotBegun(e *env) {
	for _, status := range []store.Status{store.Pending, store.Compensating} {
		w := e.worker()
		p := pending(store.Mark{Step: "charge", Group: 1, Attempt: 3, Failures: 2, Crashes: 1}, ago(time.Minute))
		p.Status = status
		e.start(string(status), p)
		c := e.claimOne(w)
		require.Equal(e, 4, c.Mark.Attempt)
		e.release(w, store.Released{Guard: guard(c.Workflow)})
		got := e.get(string(status))
		require.True(e, got.Owner.IsZero())
		require.Equal(e, c.Revision+1, got.Revision)
		require.Equal(e, p.Mark, got.Mark)
		require.WithinDuration(e, got.UpdatedAt, got.WakeAt, time.Second, "another may go on at once")
		require.Equal(e, 4, e.claimOne(e.worker()).Mark.Attempt)
	}
}

func releaseBegun(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	e.release(w, store.Released{Guard: guard(wf), Begun: true})
	got := e.get("a")
	require.Equal(e, charge, got.Mark)
	require.True(e, got.Owner.IsZero())
	require.Equal(e, 2, e.claimOne(e.worker()).Mark.Attempt)
}

func releaseZero(e *env) {
	w := e.worker()
	mark := store.Mark{Step: "charge", Group: 1}
	a := e.startAs(w, "a", pending(mark, never))
	b := e.startAs(w, "b", pending(store.Mark{}, never))
	e.release(w, store.Released{Guard: guard(a)}, store.Released{Guard: guard(b)})
	require.Equal(e, mark, e.get("a").Mark)
	require.Zero(e, e.get("b").Mark)
}

func releaseWaiting(e *env) {
	w := e.worker()
	for _, wf := range []store.Workflow{
		e.startAs(w, "timer", waiting(in(time.Hour))),
		e.startAs(w, "signal", waiting(never)),
		e.startAs(w, "held", store.Place{Status: store.Held, State: "H"}),
	} {
		e.release(w, store.Released{Guard: guard(wf)})
		got := e.get(wf.ID)
		require.Equal(e, wf.WakeAt, got.WakeAt)
		require.True(e, got.Owner.IsZero())
		require.EqualValues(e, 2, got.Revision)
	}
}

// releaseStale: one guard that does not hold does not keep the others.
func releaseStale(e *env) {
	w := e.worker()
	a := e.startAs(w, "a", pending(charge, never))
	b := e.startAs(w, "b", pending(charge, never))
	stale := guard(b)
	stale.Revision++
	e.release(w, store.Released{Guard: stale}, store.Released{Guard: guard(a)})
	require.True(e, e.get("a").Owner.IsZero())
	require.Equal(e, b, e.get("b"))
}

func releaseNothing(e *env) { e.release(e.worker()) }
