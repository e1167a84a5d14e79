package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// BenchmarkCommit measures batches of transitions, each with a finished step,
// by so many committers at once, on a fresh database that nobody analysed.
func BenchmarkCommit(b *testing.B) {
	for _, committers := range []int{1, 2, 3, 4} {
		for _, size := range []int{1, 50, 200} {
			b.Run(fmt.Sprintf("committers=%d/batch=%d", committers, size), func(b *testing.B) {
				benchmarkCommit(b, committers, size)
			})
		}
	}
}

func benchmarkCommit(b *testing.B, committers, size int) {
	ctx := context.Background()
	s := openAt(b, pgtest.Start(b).URL(), WithPool(committers)) // as durable as by default
	_, err := s.Migrate(context.Background())
	require.NoError(b, err)
	w := store.WorkerID{15: 1}
	require.NoError(b, s.Join(ctx, store.Worker{ID: w}, time.Hour))
	batches := make([][]store.Transition, committers)
	for c := range batches {
		batches[c] = startBatch(b, s, w, fmt.Sprintf("c%d", c), size)
	}
	took := make([][]time.Duration, committers)
	b.ResetTimer()
	var all sync.WaitGroup
	for c := range committers {
		all.Go(func() {
			for n := 0; n < b.N; n++ {
				began := time.Now()
				verdicts, err := s.Commit(ctx, w, batches[c])
				took[c] = append(took[c], time.Since(began))
				if err != nil || slices.Contains(verdicts, store.Lost) {
					panic(fmt.Sprint(err, verdicts))
				}
				advance(batches[c])
			}
		})
	}
	all.Wait()
	b.StopTimer()
	each := slices.Concat(took...)
	slices.Sort(each)
	b.ReportMetric(float64(b.N*committers*size)/b.Elapsed().Seconds(), "transitions/s")
	b.ReportMetric(float64(each[len(each)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(each[len(each)*99/100].Microseconds()), "p99-µs")
}

// startBatch starts owned workflows and returns their next transitions.
func startBatch(tb testing.TB, s *Store, w store.WorkerID, prefix string, size int) []store.Transition {
	place := store.Place{
		Status: store.Pending, State: "Charging",
		Mark: store.Mark{Step: "charge-card", Group: 1, Attempt: 1},
		Data: []byte(`{"order":"9527","total":"49.90","customer":"ann","lines":[1,2,3]}`),
	}
	news := make([]store.New, size)
	for i := range news {
		news[i] = store.New{
			ID: fmt.Sprintf("%s-%05d", prefix, i), Definition: store.Def{Name: "order", Version: 1}, Owner: w, Place: place,
		}
	}
	_, err := s.Start(context.Background(), news)
	require.NoError(tb, err)
	ts := make([]store.Transition, size)
	for i, n := range news {
		ts[i] = store.Transition{
			Guard: store.Guard{ID: n.ID, Revision: 1}, Place: place,
			Steps: []store.StepRecord{{Step: "charge-card", Status: store.StepDone, Attempt: 1, Output: []byte(`{"payment":"p-1"}`)}},
		}
	}
	return ts
}

// advance makes transitions the ones after them.
func advance(ts []store.Transition) {
	for i := range ts {
		ts[i].Revision++
		ts[i].Steps[0].Group = int(ts[i].Revision)
	}
}

// BenchmarkClaim measures how workflows are started for anybody, claimed and ended in
// batches of 50, beside 10,000 that wait: of those in no queue, and of those in one.
func BenchmarkClaim(b *testing.B) {
	b.Run("free", func(b *testing.B) { benchmarkClaim(b, func(*store.New) {}, claimFree) })
	b.Run("queued", func(b *testing.B) {
		benchmarkClaim(b, func(n *store.New) { n.Queue, n.Priority = "q", 3 }, claimQueued)
	})
	b.Run("queued by key", func(b *testing.B) {
		benchmarkClaim(b, func(n *store.New) { n.Queue, n.Key = "keys", n.ID[len(n.ID)-1:] }, claimQueued)
	})
}

func claimFree(ctx context.Context, s *Store, w store.WorkerID, defs []store.Def) ([]store.Claimed, error) {
	return s.Claim(ctx, w, defs, 50)
}

func benchmarkClaim(b *testing.B, line func(*store.New), claim func(context.Context, *Store, store.WorkerID, []store.Def) ([]store.Claimed, error)) {
	ctx := context.Background()
	s := openAt(b, pgtest.Start(b).URL())
	_, err := s.Migrate(ctx)
	require.NoError(b, err)
	w, def := store.WorkerID{15: 1}, store.Def{Name: "order", Version: 1}
	require.NoError(b, s.Join(ctx, store.Worker{ID: w}, time.Hour))
	prepare(b, s)
	start := func(prefix string, n int, wake time.Duration) {
		news := make([]store.New, n)
		for i := range news {
			news[i] = store.New{ID: fmt.Sprintf("%s-%06d", prefix, i), Definition: def, Place: store.Place{
				Status: store.Pending, State: "Charging", Mark: store.Mark{Step: "charge", Group: 1}, Wake: store.Wake{Kind: store.WakeAfter, After: wake},
			}}
			line(&news[i])
		}
		_, err := s.Start(ctx, news)
		require.NoError(b, err)
	}
	for i := range 50 {
		start(fmt.Sprintf("later%02d", i), 200, time.Hour)
	}
	var started, claimed time.Duration
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		from := time.Now()
		start(fmt.Sprintf("w%06d", n), 50, 0)
		started += time.Since(from)
		from = time.Now()
		rows, err := claim(ctx, s, w, []store.Def{def})
		claimed += time.Since(from)
		require.NoError(b, err)
		require.Len(b, rows, 50)
		ts := make([]store.Transition, len(rows))
		for i, row := range rows {
			ts[i] = store.Transition{Guard: store.Guard{ID: row.ID, Revision: row.Revision}, Place: store.Place{Status: store.Completed, State: "Delivered"}}
		}
		_, err = s.Commit(ctx, w, ts)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(started.Microseconds())/float64(b.N*50), "µs/start")
	b.ReportMetric(float64(claimed.Microseconds())/float64(b.N*50), "µs/claim")
}

// prepare sets up the queue that limits keys.
func prepare(b *testing.B, s *Store) {
	require.NoError(b, s.SetQueue(context.Background(), store.Queue{Name: "q", Concurrency: 1000}))
	require.NoError(b, s.SetQueue(context.Background(), store.Queue{Name: "keys", PerKey: 1000}))
}

func claimQueued(ctx context.Context, s *Store, w store.WorkerID, defs []store.Def) ([]store.Claimed, error) {
	claim, err := s.ClaimQueued(ctx, w, defs, 50)
	return claim.Rows, err
}
