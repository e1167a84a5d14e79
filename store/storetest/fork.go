package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var forkTests = []test{
	{"CopiesStepsInTheirOrder", forkCopies},
	{"AllOrNothing", forkTaken},
}

// forkRecords are copies whose names are not in the order of their completion.
func forkRecords() []store.StepRecord {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	return []store.StepRecord{
		{Step: "zeta", Group: 1, Status: store.StepDone, Attempt: 2, Input: []byte("in"), Output: []byte("out"), Took: time.Second, EndedAt: at},
		{Step: "alpha", Group: 3, Status: store.StepUnknown, Attempt: 1, Error: "lost", EndedAt: at},
		{Step: "beta", Group: 1, Status: store.StepDone, Attempt: 1, Output: []byte("o"), EndedAt: at},
	}
}

func forkOf(id string) store.Fork {
	ask := func(of string) store.Request {
		return store.Request{Message: store.Message{WorkflowID: of, ID: "r", Kind: store.MessageVerb, Name: "fork", Payload: []byte(`{"actor":"ann"}`)}, Answer: "made"}
	}
	return store.Fork{
		New:   store.New{ID: id, Definition: order, InputHash: [16]byte{1}, Line: store.Line{Queue: "q"}, Place: pending(store.Mark{Step: "charge", Group: 2}, now)},
		Steps: forkRecords(), Asked: []store.Request{ask(id), ask("origin")},
	}
}

func forkCopies(e *env) {
	e.startedAndEnded("origin")
	f := forkOf("copy")
	r, err := e.st.Fork(e.ctx, f)
	require.NoError(e, err)
	require.True(e, r.Created)
	require.EqualValues(e, 4, r.Revision)
	wf := e.get("copy")
	require.EqualValues(e, 4, wf.Revision)
	require.Equal(e, f.Line, wf.Line)
	var want []store.StepRecord
	for i, rec := range forkRecords() {
		rec.Revision = int64(i + 2)
		want = append(want, rec)
	}
	require.Equal(e, want, e.history("copy"))
	for _, id := range []string{"copy", "origin"} {
		rs, err := e.st.Requests(e.ctx, id)
		require.NoError(e, err)
		require.Len(e, rs, 1)
		require.Equal(e, "made", rs[0].Answer)
		require.False(e, rs[0].TakenAt.IsZero())
	}
	c := e.claimQueued(e.worker(), 1).Rows
	require.Len(e, c, 1)
	require.Equal(e, store.Mark{Step: "charge", Group: 2, Attempt: 1}, c[0].Mark)
	require.Empty(e, c[0].Inbox)
}

// startedAndEnded makes a workflow that has ended.
func (e *env) startedAndEnded(id string) {
	w := e.worker()
	e.apply(w, e.startAs(w, id, pending(charge, never)), completed)
}

// forkTaken: of two forks of one id the second writes nothing.
func forkTaken(e *env) {
	e.startedAndEnded("origin")
	_, err := e.st.Fork(e.ctx, forkOf("copy"))
	require.NoError(e, err)
	again := forkOf("copy")
	again.Steps = again.Steps[:1]
	again.Asked[0].ID, again.Asked[1].ID = "other", "other"
	r, err := e.st.Fork(e.ctx, again)
	require.NoError(e, err)
	require.False(e, r.Created)
	require.Equal(e, [16]byte{1}, r.InputHash)
	require.Len(e, e.history("copy"), 3)
	for _, id := range []string{"copy", "origin"} {
		rs, err := e.st.Requests(e.ctx, id)
		require.NoError(e, err)
		require.Len(e, rs, 1)
	}
	r, err = e.st.Fork(e.ctx, forkOf("origin"))
	require.NoError(e, err)
	require.False(e, r.Created)
	require.Empty(e, e.history("origin"))
}
