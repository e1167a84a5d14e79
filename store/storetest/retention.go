package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var retentionTests = []test{
	{"OneLeads", leads},
	{"OneOfEightLeads", leadRace},
	{"ExpirableByAgeFromTheEnd", expirable},
	{"TombstonesAreForgotten", forgets},
}

func (e *env) lead(w store.WorkerID, lease time.Duration) bool {
	ok, err := e.st.Lead(e.ctx, "cleaner", w, lease)
	require.NoError(e, err)
	return ok
}

func leads(e *env) {
	one, two := freshID(), freshID()
	require.True(e, e.lead(one, time.Hour))
	require.False(e, e.lead(two, time.Hour))
	require.True(e, e.lead(one, time.Microsecond), "its holder may change it")
	require.True(e, e.lead(two, time.Hour), "what has run out is anybody's")
	require.False(e, e.lead(one, time.Hour))
	ok, err := e.st.Lead(e.ctx, "another", one, time.Hour)
	require.NoError(e, err)
	require.True(e, ok, "each name by itself")
}

func leadRace(e *env) {
	var n atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		w := freshID()
		all.Go(func() {
			if ok, err := e.st.Lead(e.ctx, "cleaner", w, time.Hour); err == nil && ok {
				n.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(e, 1, n.Load())
}

// endedOnes ends workflows of order, one after the other.
func (e *env) endedOnes(ids ...string) {
	w := e.worker()
	for _, id := range ids {
		e.apply(w, e.startAs(w, id, pending(charge, never)), completed)
	}
}

func (e *env) expirable(after time.Duration, limit int) []string {
	ids, err := e.st.Expirable(e.ctx, order.Name, after, limit)
	require.NoError(e, err)
	return ids
}

func expirable(e *env) {
	e.start("runs", waiting(never))
	e.endedOnes("a", "b", "c")
	require.Empty(e, e.expirable(time.Hour, 10), "their age counts from the end")
	require.Equal(e, []string{"a", "b"}, e.expirable(0, 2), "the longest ago first")
	_, err := e.st.Expire(e.ctx, []string{"a"})
	require.NoError(e, err)
	require.Equal(e, []string{"b", "c"}, e.expirable(0, 10))
	ids, err := e.st.Expirable(e.ctx, "another", 0, 10)
	require.NoError(e, err)
	require.Empty(e, ids)
}

func forgets(e *env) {
	var ids []string
	for i := range 5 {
		ids = append(ids, fmt.Sprint("t", i))
	}
	e.endedOnes(append(ids, "kept")...)
	require.Equal(e, store.SendEnded, e.sendAs(request("t0", "r").Message))
	_, err := e.st.Expire(e.ctx, ids)
	require.NoError(e, err)
	n, err := e.st.Forget(e.ctx, order.Name, time.Hour, 10)
	require.NoError(e, err)
	require.Zero(e, n)
	for _, want := range []int{3, 2, 0} {
		n, err := e.st.Forget(e.ctx, order.Name, 0, 3)
		require.NoError(e, err)
		require.Equal(e, want, n)
	}
	_, err = e.st.Get(e.ctx, "t0")
	require.ErrorIs(e, err, store.ErrNotFound)
	require.Equal(e, store.Completed, e.get("kept").Status, "what is no tombstone stays")
	again, err := e.st.Start(e.ctx, []store.New{{ID: "t0", Definition: order, Place: pending(charge, now)}})
	require.NoError(e, err)
	require.True(e, again[0].Created, "the id is free")
}
