package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var commitTests = []test{
	{"WritesEveryField", commitFields},
	{"CountsRevisions", commitRevisions},
	{"ClearsWhatIsNotSaid", commitClears},
	{"KeepsDataIfNil", commitKeepsData},
	{"EmptiesDataIfEmpty", commitEmptiesData},
	{"KeepsTheOwnerUnlessReleased", commitOwner},
	{"EndLeavesNoOwnerAndNoWake", commitEnds},
	{"MarkWithoutStepIsNoMark", commitMark},
	{"RecordsSteps", commitSteps},
	{"StepIsRecordedOnce", commitStepOnce},
	{"AnswersInTheOrderGiven", commitOrder},
	{"NothingToCommit", commitNothing},
	{"ErrorWritesNothingOfTheBatch", commitError},
}

func commitFields(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	p := store.Place{
		Status: store.Compensating, State: "Refunding", Awaits: "approval",
		Mark: store.Mark{Step: "refund", Group: 2, Attempt: 3, Failures: 4, Crashes: 5},
		Wake: in(time.Hour), Data: []byte("data"), Cursor: []byte("cursor"), Error: "declined", Pivoted: true,
	}
	got := e.apply(w, wf, p)
	e.near(got.WakeAt, time.Hour)
	e.near(got.UpdatedAt, 0)
	require.False(e, got.UpdatedAt.Before(wf.UpdatedAt))
	p.Wake = store.Wake{}
	want := wf
	want.Place, want.Revision, want.WakeAt, want.UpdatedAt = p, 2, got.WakeAt, got.UpdatedAt
	require.Equal(e, want, got)
}

func commitRevisions(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	for revision := int64(2); revision < 6; revision++ {
		wf = e.apply(w, wf, pending(charge, never))
		require.Equal(e, revision, wf.Revision)
	}
}

func commitClears(e *env) {
	w := e.worker()
	p := pending(store.Mark{Step: "charge", Group: 2, Attempt: 3, Failures: 4, Crashes: 5}, in(time.Hour))
	p.Cursor, p.Error, p.Awaits, p.Pivoted = []byte("c"), "e", "a", true
	wf := e.apply(w, e.startAs(w, "a", p), store.Place{Status: store.Held, State: "H"})
	require.Zero(e, wf.Mark)
	require.Zero(e, wf.WakeAt)
	require.Nil(e, wf.Cursor)
	require.Empty(e, wf.Error)
	require.Empty(e, wf.Awaits)
	require.False(e, wf.Pivoted)
}

func commitKeepsData(e *env) {
	w := e.worker()
	p := pending(charge, never)
	p.Data = []byte("mine")
	wf := e.apply(w, e.startAs(w, "a", p), waiting(never))
	require.Equal(e, []byte("mine"), wf.Data)
}

func commitEmptiesData(e *env) {
	w := e.worker()
	p := pending(charge, never)
	p.Data = []byte("mine")
	wf := e.startAs(w, "a", p)
	p.Data = []byte{}
	require.Empty(e, e.apply(w, wf, p).Data)
}

func commitOwner(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(never))
	require.Equal(e, w, wf.Owner)
	wf = e.apply(w, wf, waiting(never), release)
	require.True(e, wf.Owner.IsZero())
	again := store.Transition{Guard: guard(wf), Place: completed}
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, again), "it is given back")
}

func commitEnds(e *env) {
	w := e.worker()
	for _, status := range []store.Status{store.Completed, store.Compensated, store.Failed, store.Terminated, store.Expired} {
		for _, wake := range []store.Wake{now, keep} {
			wf := e.startAs(w, string(status)+string(rune('a'+wake.Kind)), pending(charge, in(time.Hour)))
			wf = e.apply(w, wf, store.Place{Status: status, State: "Z", Wake: wake})
			require.True(e, wf.Owner.IsZero(), status)
			require.Zero(e, wf.WakeAt, status)
			e.near(wf.EndedAt, 0)
			require.Equal(e, wf.UpdatedAt, wf.EndedAt, status)
		}
	}
	require.Empty(e, e.claim(e.worker()), "nothing of it may be claimed")
}

func commitMark(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	wf = e.apply(w, wf, pending(store.Mark{Group: 1, Attempt: 2, Failures: 3, Crashes: 4}, never))
	require.Zero(e, wf.Mark)
}

func commitSteps(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	known := store.StepRecord{Step: "reserve", Group: 2, Status: store.StepDone, Attempt: 3, Input: []byte("in"), Output: []byte("out"), Took: 1500 * time.Microsecond}
	unknown := store.StepRecord{Step: "charge", Group: 1, Status: store.StepUnknown, Attempt: 5, Error: "timed out"}
	wf = e.apply(w, wf, pending(charge, never), func(t *store.Transition) { t.Steps = []store.StepRecord{known} })
	wf = e.apply(w, wf, pending(charge, never))
	e.apply(w, wf, completed, func(t *store.Transition) { t.Steps = []store.StepRecord{unknown} })

	got := e.history("a")
	require.Len(e, got, 2)
	e.near(got[0].EndedAt, 0)
	known.Revision, known.EndedAt = 2, got[0].EndedAt
	unknown.Revision, unknown.EndedAt = 4, got[1].EndedAt
	require.Equal(e, []store.StepRecord{known, unknown}, got)
	require.Nil(e, got[1].Input)
	require.Nil(e, got[1].Output)
}

// commitStepOnce: a second record of one step and group is refused and takes
// its transition with it, even where the guard holds.
func commitStepOnce(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), pending(charge, never), func(t *store.Transition) {
		t.Steps = []store.StepRecord{done("charge", 1)}
	})
	_, err := e.st.Commit(e.ctx, w, []store.Transition{{Guard: guard(wf), Place: completed, Steps: []store.StepRecord{done("charge", 1)}}})
	require.Error(e, err)
	require.NotErrorIs(e, err, store.ErrRetry, "it would fail for ever")
	require.NotErrorIs(e, err, store.ErrUnsure)
	require.Equal(e, wf, e.get("a"))
	e.apply(w, wf, completed, func(t *store.Transition) { t.Steps = []store.StepRecord{done("charge", 2)} })
}

func commitOrder(e *env) {
	w := e.worker()
	for _, id := range []string{"a", "b", "c", "d"} {
		e.startAs(w, id, pending(charge, never))
	}
	to := func(id string, revision int64) store.Transition {
		return store.Transition{Guard: store.Guard{ID: id, Revision: revision}, Place: completed}
	}
	vs := e.commit(w, to("d", 1), to("b", 9), to("c", 1), to("a", 9))
	require.Equal(e, []store.Verdict{store.Applied, store.Lost, store.Applied, store.Lost}, vs)
	require.Equal(e, store.Completed, e.get("c").Status)
	require.Equal(e, store.Pending, e.get("b").Status)
}

func commitNothing(e *env) { require.Empty(e, e.commit(e.worker())) }

// commitError: one transition that the database refuses takes the whole batch
// with it; the caller parts it and sends the others again.
func commitError(e *env) {
	w := e.worker()
	twice := []store.StepRecord{done("charge", 1), done("charge", 1)}
	for _, id := range []string{"a", "b", "c"} {
		e.startAs(w, id, pending(charge, never))
	}
	_, err := e.st.Commit(e.ctx, w, []store.Transition{
		{Guard: store.Guard{ID: "a", Revision: 1}, Place: completed, Steps: []store.StepRecord{done("charge", 1)}},
		{Guard: store.Guard{ID: "b", Revision: 1}, Place: completed, Steps: twice},
		{Guard: store.Guard{ID: "c", Revision: 1}, Place: completed},
	})
	require.Error(e, err)
	for _, id := range []string{"a", "b", "c"} {
		require.EqualValues(e, 1, e.get(id).Revision)
		require.Empty(e, e.history(id))
	}
}
