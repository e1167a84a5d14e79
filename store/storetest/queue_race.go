package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// queueRace: however many claim at once, no limit is ever passed, and each workflow
// goes to one of them.
func queueRace(e *env) {
	const workers, total = 8, 80
	e.setQueue(store.Queue{Name: "q", Concurrency: 5, PerWorker: 2, PerKey: 2})
	for i, id := range ids(total) {
		e.enqueue(store.Line{Queue: "q", Key: fmt.Sprint("k", i%4)}, now, id)
	}
	var (
		running, most atomic.Int64
		mu            sync.Mutex
		byKey, seen   = map[string]int{}, map[string]int{}
	)
	list := make([]store.WorkerID, workers)
	for i := range list {
		list[i] = e.worker()
	}
	count := func(key string, by int) {
		mu.Lock()
		defer mu.Unlock()
		byKey[key] += by
		if byKey[key] > 2 {
			e.Errorf("%d of key %s at once", byKey[key], key)
		}
	}
	var over atomic.Int64
	together(workers, func(i int) {
		for over.Load() < total && e.ctx.Err() == nil && !e.Failed() {
			c := trying(e, func() (store.QueueClaim, error) {
				return e.st.ClaimQueued(e.ctx, list[i], []store.Def{order}, 3)
			})
			if len(c.Rows) > 2 {
				e.Errorf("one worker claimed %d", len(c.Rows))
			}
			for _, row := range c.Rows {
				most.Store(max(most.Load(), running.Add(1)))
				count(row.Key, 1)
			}
			for _, row := range c.Rows {
				mu.Lock()
				seen[row.ID]++
				mu.Unlock()
				running.Add(-1) // before the slot is free
				count(row.Key, -1)
				trying(e, func() ([]store.Verdict, error) {
					return e.st.Commit(e.ctx, list[i], []store.Transition{{Guard: guard(row.Workflow), Place: completed}})
				})
				over.Add(1)
			}
		}
	})
	require.LessOrEqual(e, most.Load(), int64(5))
	require.Len(e, seen, total)
	for id, n := range seen {
		require.Equal(e, 1, n, id)
	}
}

// queueRush: claims that begin at the same moment do not all see the same free slots.
func queueRush(e *env) {
	const workers, slots = 8, 3
	e.setQueue(store.Queue{Name: "q", Concurrency: slots})
	list := make([]store.WorkerID, workers)
	for i := range list {
		list[i] = e.worker()
	}
	for round := range 8 {
		for i := range 2 * workers {
			e.enqueue(store.Line{Queue: "q"}, now, fmt.Sprintf("r%d-%d", round, i))
		}
		claimed := make([][]store.Claimed, workers)
		together(workers, func(i int) {
			claimed[i] = trying(e, func() (store.QueueClaim, error) {
				return e.st.ClaimQueued(e.ctx, list[i], []store.Def{order}, 2)
			}).Rows
		})
		n := 0
		for i, rows := range claimed {
			n += len(rows)
			for _, row := range rows {
				e.apply(list[i], row.Workflow, completed)
			}
		}
		require.Equal(e, slots, n, "round %d", round)
	}
}
