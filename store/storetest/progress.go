package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var progressTests = []test{
	{"IsKeptUnderItsKey", progressKept},
	{"OnlyByTheOwner", progressGuarded},
	{"LeavesTheRowAlone", progressApart},
	{"GoesWithThePayloads", progressExpires},
}

func (e *env) beat(w store.WorkerID, wf store.Workflow, key, progress string) store.Verdict {
	v, err := e.st.Beat(e.ctx, w, guard(wf), key, []byte(progress))
	require.NoError(e, err)
	return v
}

// lastBeat returns the progress of a key, "" if there is none.
func (e *env) lastBeat(id, key string) string {
	p, err := e.st.LastBeat(e.ctx, id, key)
	require.NoError(e, err)
	return string(p)
}

func progressKept(e *env) {
	w := e.worker()
	a, b := e.startAs(w, "a", pending(charge, never)), e.startAs(w, "b", pending(charge, never))
	require.Empty(e, e.lastBeat("a", "k"))
	require.Equal(e, store.Applied, e.beat(w, a, "k", "1"))
	require.Equal(e, store.Applied, e.beat(w, a, "k", "2"))
	require.Equal(e, store.Applied, e.beat(w, b, "k", "3"))
	require.Equal(e, "2", e.lastBeat("a", "k"))
	require.Equal(e, "3", e.lastBeat("b", "k"))
	require.Empty(e, e.lastBeat("a", "other"))
	require.Equal(e, store.Applied, e.beat(w, a, "other", "4"))
	require.Empty(e, e.lastBeat("a", "k"), "one body runs at a time: what the one before it has left is of no use")
	require.Empty(e, e.lastBeat("none", "k"))
}

// progressGuarded: a worker that has lost the workflow writes nothing.
func progressGuarded(e *env) {
	w := e.workerFor(1000)
	a := e.startAs(w, "a", pending(charge, never))
	require.Equal(e, store.Applied, e.beat(w, a, "k", "1"))
	require.Equal(e, store.Lost, e.beat(e.worker(), a, "k", "2"))
	require.Equal(e, store.Lost, e.beat(store.WorkerID{}, a, "k", "2"))
	e.bury(w)
	require.Equal(e, 1, e.takeover(1))
	require.Equal(e, store.Lost, e.beat(w, a, "k", "2"))
	v := e.worker()
	claimed := e.claimOne(v)
	require.Equal(e, store.Lost, e.beat(v, a, "k", "2"), "the revision is another")
	require.Equal(e, "1", e.lastBeat("a", "k"), "the next attempt finds it")
	require.Equal(e, store.Applied, e.beat(v, claimed.Workflow, "k", "3"))
	e.apply(v, claimed.Workflow, completed)
	require.Equal(e, store.Lost, e.beat(v, e.get("a"), "k", "4"))
	none := a
	none.ID = "none"
	require.Equal(e, store.Lost, e.beat(v, none, "k", "2"))
}

func progressApart(e *env) {
	w := e.worker()
	a := e.startAs(w, "a", pending(charge, never))
	require.Equal(e, store.Applied, e.beat(w, a, "k", "1"))
	require.Equal(e, a, e.get("a"))
	e.apply(w, a, completed)
}

func progressExpires(e *env) {
	w := e.worker()
	a := e.startAs(w, "a", pending(charge, never))
	branch := store.BranchID("a", "0.x/1")
	b := e.startAs(w, branch, pending(charge, never))
	require.Equal(e, store.Applied, e.beat(w, a, "k", "secret"))
	require.Equal(e, store.Applied, e.beat(w, b, "k", "secret"))
	e.apply(w, b, completed)
	e.apply(w, a, completed)
	_, err := e.st.Expire(e.ctx, []string{"a"})
	require.NoError(e, err)
	require.Empty(e, e.lastBeat("a", "k"))
	require.Empty(e, e.lastBeat(branch, "k"))
}
