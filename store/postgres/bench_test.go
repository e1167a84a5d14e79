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
