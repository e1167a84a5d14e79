package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// tallied counts and sums up what comes, in order: nothing of an item stays in the data.
func (t *trip) tallied(i, n int, _ string) {
	if t.Quorum == i { // in order
		t.Quorum++
	}
	t.Amount += n
}

// pager gives the numbers from 1 to many, size at a time.
func pager(many, size int, asked *atomic.Int32) step.Step[string, statemachine.Page[int]] {
	return step.Func("own-pages", func(_ context.Context, cursor string) (p statemachine.Page[int], err error) {
		asked.Add(1)
		from := 0
		if cursor != "" {
			if from, err = strconv.Atoi(cursor); err != nil {
				return p, err
			}
		}
		for n := from + 1; n <= min(from+size, many); n++ {
			p.Items = append(p.Items, n)
		}
		if from+size < many {
			p.Next = strconv.Itoa(from + size)
		}
		return p, nil
	})
}

// pages works on items page by page.
func pages(name string, p step.Step[string, statemachine.Page[int]], item step.Step[int, string]) statemachine.Definition[trip] {
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "paging", OnFailure: "undone", Ends: ends,
		States: statemachine.States[trip]{"paging": statemachine.EachPage(p, item, (*trip).tallied).AtMost(8).Then("good")},
	}
}

// TestPagesOutliveTheirWorker: what a page is was recorded, so it is asked for once,
// whoever works on its items; every item is merged once, and in order.
func TestPagesOutliveTheirWorker(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		var asked atomic.Int32
		var calls atomic.Int32
		hang, came := make(chan struct{}), make(chan struct{})
		item := step.Call("own-item", func(ctx context.Context, key step.Key, n int) (string, error) {
			calls.Add(1)
			if n == 25 && calls.Load() < 60 { // in the second page, for the first time
				select {
				case came <- struct{}{}:
					<-hang
				default:
				}
			}
			return key.String(), ctx.Err()
		}).With(quick).NoUndo("a number stays")
		worker := func() *node {
			n := w.client()
			n.learns(pages("pages", pager(50, 20, &asked), item))
			n.run()
			return n
		}
		first := worker()
		first.begins("pages", "p", trip{})
		<-came
		w.leaseOver(first.log.worker(w))
		second := worker()
		s := second.ends("p", store.Completed)
		close(hang)
		require.Equal(w, 50*51/2, s.Data.Amount)
		require.Equal(w, 50, s.Data.Quorum, "in the order of the items, over all pages")
		require.EqualValues(w, 3, asked.Load(), "each page once")
		steps, err := second.Steps(w.ctx(), "p")
		require.NoError(w, err)
		keys := map[string]bool{}
		for _, r := range steps {
			keys[r.Key.String()] = true
		}
		require.Len(w, keys, 53, "each item, and each page, has a key of its own")
		require.True(w, keys["p/own-item/5.2"], "the fifth of the second page")
	})
}

// TestEachPageIsFlat: neither what a commit writes nor what is in memory grows with the
// number of items. It prints the largest commit of the root and the most live heap over
// that of the beginning, as sampled.
func TestEachPageIsFlat(t *testing.T) {
	sizes := []int{100, 1_000, 10_000}
	if raced || testing.Short() {
		sizes = []int{100, 300, 600}
	}
	t.Parallel()
	onSQLite(t, func(w *world) {
		w.knows("nap")
		item := step.Func("own-item", func(context.Context, int) (string, error) { return "done", nil })
		var root []int
		for _, many := range sizes {
			s := &scale{}
			n := w.client(nodeOptions{wrap: func(st store.Store) store.Store { s.Store = st; return s }})
			var asked atomic.Int32
			name := fmt.Sprintf("pages-%d", many)
			n.learns(pages(name, pager(many, 50, &asked), item))
			n.run()
			peak := heapPeak()
			n.begins(name, name, trip{})
			final := n.ends(name, store.Completed)
			n.stop()
			require.Equal(w, many, final.Data.Quorum)
			require.EqualValues(w, many/50, asked.Load())
			root = append(root, s.root)
			w.Logf("items %6d   the root's largest commit %6d B   peak heap over the start %6d KiB", many, s.root, peak()>>10)
		}
		require.Less(w, float64(root[2]), 2*float64(root[0]), "a page is all that it holds, of longer numbers")
	})
}

// heapPeak samples the live heap until the function that it returns is called, which
// returns by how much it has grown at most.
func heapPeak() (grown func() uint64) {
	runtime.GC()
	var at runtime.MemStats
	runtime.ReadMemStats(&at)
	start, peak := at.HeapAlloc, at.HeapAlloc
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				runtime.GC()
				runtime.ReadMemStats(&at)
				peak = max(peak, at.HeapAlloc)
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return peak - start
	}
}
