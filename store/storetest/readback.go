package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var readBackTests = []test{
	{"Positions", readBackPositions},
	{"WaitsForTheCommitUnderWay", readBackWaits},
	{"Owned", ownedList},
	{"LoadIsAsAClaim", loadAsClaim},
	{"LoadOnlyTheOwned", loadOwned},
}

func readBackPositions(e *env) {
	w := e.worker()
	e.startAs(w, "a", pending(charge, never))
	e.start("b", waiting(never))
	e.apply(w, e.startAs(w, "c", pending(charge, never)), completed)
	ps, err := e.st.ReadBack(e.ctx, []string{"c", "nowhere", "a", "b"})
	require.NoError(e, err)
	require.ElementsMatch(e, []store.Position{
		{ID: "a", Revision: 1, Owner: w}, {ID: "b", Revision: 1}, {ID: "c", Revision: 2},
	}, ps)
	ps, err = e.st.ReadBack(e.ctx, nil)
	require.NoError(e, err)
	require.Empty(e, ps)
}

// readBackWaits: a plain read would tell of the revision before the commit
// that is under way, and the caller would send its result twice.
func readBackWaits(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	begun, finish := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(finish) })
	defer goOn()
	committed := make(chan error, 1)
	go func() {
		_, err := e.commitTx(w, wf, func(context.Context, store.Tx) (store.Transition, error) {
			close(begun)
			<-finish
			return store.Transition{Place: waiting(never)}, nil
		})
		committed <- err
	}()
	e.await(begun)
	got := make(chan []store.Position, 1)
	go func() {
		ps, err := e.st.ReadBack(e.ctx, []string{"a"})
		if err != nil {
			e.Error(err)
		}
		got <- ps
	}()
	select {
	case ps := <-got:
		e.Errorf("it did not wait: %v", ps)
		got <- ps
	case <-time.After(200 * time.Millisecond):
	}
	goOn()
	require.NoError(e, <-committed)
	require.Equal(e, []store.Position{{ID: "a", Revision: 2, Owner: w}}, <-got)
}

func ownedList(e *env) {
	w, other := e.worker(), e.worker()
	e.startAs(w, "a", pending(charge, never))
	e.startAs(other, "b", pending(charge, never))
	e.start("c", pending(charge, now))
	e.apply(w, e.startAs(w, "d", pending(charge, never)), completed)
	require.Equal(e, "c", e.claimOne(w).ID)
	ps, err := e.st.Owned(e.ctx, w)
	require.NoError(e, err)
	require.ElementsMatch(e, []store.Position{{ID: "a", Revision: 1, Owner: w}, {ID: "c", Revision: 2, Owner: w}}, ps)
	ps, err = e.st.Owned(e.ctx, store.WorkerID{})
	require.NoError(e, err)
	require.Empty(e, ps)
}

func loadAsClaim(e *env) {
	w := e.worker()
	due := pending(charge, ago(time.Minute))
	due.Data, due.Cursor = []byte("data"), []byte("cursor")
	e.start("a", due)
	e.start("b", waiting(in(time.Hour)))
	e.send("b", "m1")
	e.send("b", "m2")
	claimed := e.claim(w)
	require.Len(e, claimed, 2)
	loaded, err := e.st.Load(e.ctx, w, []string{"a", "b"})
	require.NoError(e, err)
	require.ElementsMatch(e, claimed, loaded)
	require.Equal(e, claimed[0].Workflow, e.get(claimed[0].ID), "loading changes nothing")
}

func loadOwned(e *env) {
	w := e.worker()
	e.startAs(w, "a", pending(charge, never))
	e.startAs(e.worker(), "b", pending(charge, never))
	e.start("c", pending(charge, now))
	cs, err := e.st.Load(e.ctx, w, []string{"c", "b", "a", "nowhere"})
	require.NoError(e, err)
	require.Len(e, cs, 1)
	require.Equal(e, "a", cs[0].ID)
	require.False(e, cs[0].Due)
	cs, err = e.st.Load(e.ctx, w, nil)
	require.NoError(e, err)
	require.Empty(e, cs)
}
