package storetest

import (
	"errors"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var startTests = []test{
	{"AnswersInTheOrderGiven", startOrder},
	{"KeepsEveryField", startFields},
	{"WithoutData", startWithoutData},
	{"Owned", startOwned},
	{"Ended", startEnded},
	{"Duplicate", startDuplicate},
	{"NothingToStart", startNothing},
	{"BatchOfTheLimit", startLimit},
	{"TxCommit", startTxCommit},
	{"TxRollback", startTxRollback},
	{"TxDuplicate", startTxDuplicate},
}

func startOrder(e *env) {
	e.start("b", pending(store.Mark{}, now))
	rs, err := e.st.Start(e.ctx, []store.New{
		{ID: "c", Definition: order, InputHash: [16]byte{3}, Place: pending(store.Mark{}, now)},
		{ID: "b", Definition: order, InputHash: [16]byte{2}, Place: pending(store.Mark{}, now)},
		{ID: "a", Definition: order, InputHash: [16]byte{1}, Place: pending(store.Mark{}, now)},
	})
	require.NoError(e, err)
	require.Equal(e, []store.StartResult{
		{Created: true, Definition: order, InputHash: [16]byte{3}, Status: store.Pending, Revision: 1},
		{Created: false, Definition: order, Status: store.Pending, Revision: 1},
		{Created: true, Definition: order, InputHash: [16]byte{1}, Status: store.Pending, Revision: 1},
	}, rs)
}

func startFields(e *env) {
	p := store.Place{
		Status: store.Waiting, State: "Approving", Awaits: "approval",
		Mark: store.Mark{Step: "charge", Group: 2, Attempt: 3, Failures: 4, Crashes: 5},
		Wake: in(time.Hour), Data: []byte("data"), Cursor: []byte("cursor"), Error: "declined", Pivoted: true,
	}
	hash := [16]byte{1, 0, 0xff}
	_, err := e.st.Start(e.ctx, []store.New{{ID: "a", Definition: store.Def{Name: "order", Version: 7}, InputHash: hash, Place: p}})
	require.NoError(e, err)
	w := e.get("a")
	e.near(w.WakeAt, time.Hour)
	e.near(w.CreatedAt, 0)
	require.Equal(e, w.CreatedAt, w.UpdatedAt)
	p.Wake = store.Wake{}
	require.Equal(e, store.Workflow{
		ID: "a", Definition: store.Def{Name: "order", Version: 7}, Place: p,
		WakeAt: w.WakeAt, Revision: 1, InputHash: hash, CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt,
	}, w)
}

// startWithoutData: no data, no cursor, no mark and no wake come back as such.
func startWithoutData(e *env) {
	w := e.start("a", store.Place{Status: store.Waiting, State: "A"})
	require.Empty(e, w.Data)
	require.Nil(e, w.Cursor)
	require.Zero(e, w.Mark)
	require.Zero(e, w.WakeAt)
	require.Zero(e, w.EndedAt)
	require.Empty(e, w.Error)
	require.Empty(e, w.Awaits)
	require.True(e, w.Owner.IsZero())
}

func startOwned(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	require.Equal(e, w, wf.Owner)
	require.Equal(e, charge, wf.Mark)
	require.Empty(e, e.claim(e.worker()), "it is owned")
}

func startEnded(e *env) {
	wf := e.startAs(e.worker(), "a", store.Place{Status: store.Completed, State: "Z", Wake: now})
	require.Equal(e, store.Completed, wf.Status)
	require.True(e, wf.Owner.IsZero())
	require.Zero(e, wf.WakeAt)
	e.near(wf.EndedAt, 0)
}

// startDuplicate: the answer tells how the first one was started and how it
// stands, and the duplicate changes nothing.
func startDuplicate(e *env) {
	w := e.worker()
	first := store.New{ID: "a", Definition: order, InputHash: [16]byte{1}, Owner: w, Place: pending(charge, never)}
	_, err := e.st.Start(e.ctx, []store.New{first})
	require.NoError(e, err)
	e.apply(w, e.get("a"), completed)
	before := e.get("a")

	other := store.New{ID: "a", Definition: store.Def{Name: "other", Version: 9}, InputHash: [16]byte{2}, Owner: e.worker(), Place: pending(charge, now)}
	other.Data = []byte("other")
	rs, err := e.st.Start(e.ctx, []store.New{other})
	require.NoError(e, err)
	require.Equal(e, []store.StartResult{{Definition: order, InputHash: [16]byte{1}, Status: store.Completed, Revision: 2}}, rs)
	require.Equal(e, before, e.get("a"))
}

func startNothing(e *env) {
	rs, err := e.st.Start(e.ctx, nil)
	require.NoError(e, err)
	require.Empty(e, rs)
}

func startLimit(e *env) {
	limits := e.st.Limits()
	require.Positive(e, limits.Batch)
	require.Positive(e, limits.Committers)
	w := e.worker()
	news := make([]store.New, limits.Batch)
	ts := make([]store.Transition, limits.Batch)
	for i := range news {
		id := "wf-" + strconv.Itoa(len(news)-i)
		news[i] = store.New{ID: id, Definition: order, Owner: w, Place: pending(charge, never)}
		ts[i] = store.Transition{Guard: store.Guard{ID: id, Revision: 1}, Place: completed, Steps: []store.StepRecord{done("charge", 1)}}
	}
	rs, err := e.st.Start(e.ctx, news)
	require.NoError(e, err)
	require.Len(e, rs, len(news))
	for _, r := range rs {
		require.True(e, r.Created)
	}
	for _, v := range e.commit(w, ts...) {
		require.Equal(e, store.Applied, v)
	}
}

// startTxCommit: a workflow that was started in a transaction is there once
// the transaction has committed, and is not owned whatever New says.
func startTxCommit(e *env) {
	n := store.New{ID: "child", Definition: order, Owner: e.worker(), Place: pending(charge, now)}
	e.inTx(func(tx store.Tx) {
		r, err := e.st.StartTx(e.ctx, tx, n)
		require.NoError(e, err)
		require.True(e, r.Created)
		require.EqualValues(e, 1, r.Revision)
	})
	require.True(e, e.get("child").Owner.IsZero())
	require.Equal(e, "child", e.claimOne(e.worker()).ID)
}

func startTxRollback(e *env) {
	back := errors.New("changed my mind")
	err := e.tryInTx(func(tx store.Tx) error {
		_, err := e.st.StartTx(e.ctx, tx, store.New{ID: "child", Definition: order, Place: pending(charge, now)})
		require.NoError(e, err)
		return back
	})
	require.ErrorIs(e, err, back)
	_, err = e.st.Get(e.ctx, "child")
	require.ErrorIs(e, err, store.ErrNotFound)
}

func startTxDuplicate(e *env) {
	e.start("child", waiting(never))
	e.inTx(func(tx store.Tx) {
		r, err := e.st.StartTx(e.ctx, tx, store.New{ID: "child", Definition: store.Def{Name: "other", Version: 2}, Place: pending(charge, now)})
		require.NoError(e, err)
		require.Equal(e, store.StartResult{Definition: order, Status: store.Waiting, Revision: 1}, r)
	})
}
