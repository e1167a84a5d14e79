package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// counting counts the transactions that the hot path makes.
type counting struct {
	store.Store
	commits atomic.Int64
}

func (c *counting) Start(ctx context.Context, n []store.New) ([]store.StartResult, error) {
	c.commits.Add(1)
	return c.Store.Start(ctx, n)
}

func (c *counting) Commit(ctx context.Context, w store.WorkerID, t []store.Transition) ([]store.Verdict, error) {
	c.commits.Add(1)
	return c.Store.Commit(ctx, w, t)
}

// benchStore is a fresh store, and two bare writes on the same database as the
// floor: one row inserted, and one row updated while another is inserted, each
// a transaction of its own with the same durability.
type benchStore struct {
	store.Store
	insert func(ctx context.Context, id string) error
	update func(ctx context.Context, id, step string) error
}

func benchStores(b *testing.B, run func(b *testing.B, st benchStore)) {
	b.Run("sqlite", func(b *testing.B) { run(b, benchSQLite(b)) })
	b.Run("postgres", func(b *testing.B) { run(b, benchPostgres(b)) })
}

func benchSQLite(b *testing.B) benchStore {
	st, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"))
	require.NoError(b, err)
	b.Cleanup(func() { st.Close() })
	bare, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "bare.db"))
	require.NoError(b, err)
	b.Cleanup(func() { bare.Close() })
	db := bare.DB()
	_, err = db.ExecContext(b.Context(), bareTables)
	require.NoError(b, err)
	inTx := func(ctx context.Context, body func(tx *sql.Tx) error) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := body(tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	return benchStore{st,
		func(ctx context.Context, id string) error {
			return inTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, bareInsert, id)
				return err
			})
		},
		func(ctx context.Context, id, step string) error {
			return inTx(ctx, func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, bareUpdate, id); err != nil {
					return err
				}
				_, err := tx.ExecContext(ctx, bareRecord, id, step)
				return err
			})
		},
	}
}

func benchPostgres(b *testing.B) benchStore {
	url := pgtest.Start(b).URL() // as durable as by default
	st, err := postgres.Open(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(func() { st.Close() })
	_, err = st.Migrate(b.Context())
	require.NoError(b, err)
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	b.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(b.Context(), bareTables)
	require.NoError(b, err)
	return benchStore{st,
		func(ctx context.Context, id string) error {
			_, err := conn.Exec(ctx, bareInsert, id)
			return err
		},
		func(ctx context.Context, id, step string) error {
			_, err := conn.Exec(ctx, "WITH u AS ("+bareUpdate+" RETURNING id) "+bareRecordOfUpdated, id, step)
			return err
		},
	}
}

const (
	bareTables          = `CREATE TABLE bare (id text PRIMARY KEY, state text, revision bigint, data text); CREATE TABLE bare_step (id text, step text, output text, PRIMARY KEY (id, step))`
	bareInsert          = `INSERT INTO bare (id, state, revision, data) VALUES ($1, 'working', 1, '{"n":1,"text":"some data of a usual size, not too short"}')`
	bareUpdate          = `UPDATE bare SET state = 'done', revision = revision + 1, data = '{"n":2,"text":"some data of a usual size, not too short"}' WHERE id = $1`
	bareRecord          = `INSERT INTO bare_step (id, step, output) VALUES ($1, $2, '{"n":2}')`
	bareRecordOfUpdated = `INSERT INTO bare_step (id, step, output) SELECT id, $2, '{"n":2}' FROM u`
)

type load struct{ N int }

// stepsOf is a definition of n trivial steps in a row.
func stepsOf(n int) statemachine.Definition[load] {
	d := statemachine.Definition[load]{
		Name: fmt.Sprintf("steps-%d", n), Version: 1, Start: "s1", OnFailure: "undone",
		States: statemachine.States[load]{},
		Ends:   statemachine.Ends{"done": statemachine.Completed, "undone": statemachine.RolledBack},
	}
	for i := 1; i <= n; i++ {
		next := statemachine.State(fmt.Sprintf("s%d", i+1))
		if i == n {
			next = "done"
		}
		st := step.Func(fmt.Sprintf("work-%d", i), func(_ context.Context, in int) (int, error) { return in + 1, nil })
		d.States[statemachine.State(fmt.Sprintf("s%d", i))] = statemachine.Do(st, func(l load) int { return l.N }, func(l *load, n int) { l.N = n }).Then(next)
	}
	return d
}

func benchEngine(b *testing.B, st store.Store, n int) *engine.Workflow[load] {
	eng, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler), Concurrency: 256})
	require.NoError(b, err)
	flow, err := engine.Register(eng, stepsOf(n))
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	b.Cleanup(func() { stop(); require.NoError(b, <-ended) })
	return flow
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// BenchmarkIdle measures one workflow at a time, start to result, against the
// sum of the bare commits that it needs, taken in turn with it.
func BenchmarkIdle(b *testing.B) {
	for _, steps := range []int{1, 5} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			benchStores(b, func(b *testing.B, st benchStore) { benchIdle(b, st, steps) })
		})
	}
}

func benchIdle(b *testing.B, st benchStore, steps int) {
	count := &counting{Store: st.Store}
	flow := benchEngine(b, count, steps)
	var engineTook, bareTook []time.Duration
	one := func(i int) {
		id := fmt.Sprintf("order-%d", i)
		began := time.Now()
		_, err := flow.Start(b.Context(), id, load{N: i})
		require.NoError(b, err)
		_, err = flow.Wait(b.Context(), id)
		require.NoError(b, err)
		engineTook = append(engineTook, time.Since(began))
		began = time.Now()
		require.NoError(b, st.insert(b.Context(), id))
		for n := range steps {
			require.NoError(b, st.update(b.Context(), id, fmt.Sprintf("work-%d", n+1)))
		}
		bareTook = append(bareTook, time.Since(began))
	}
	for i := range 50 {
		one(-i - 1)
	}
	engineTook, bareTook = nil, nil
	count.commits.Store(0)
	for i := 0; b.Loop(); i++ {
		one(i)
	}
	n := len(engineTook)
	p50, bare := median(engineTook), median(bareTook)
	b.ReportMetric(float64(p50.Microseconds()), "p50-us")
	b.ReportMetric(float64(bare.Microseconds()), "bare-us")
	b.ReportMetric(float64(p50)/float64(bare), "x-bare")
	b.ReportMetric(float64(count.commits.Load())/float64(n), "commits/workflow")
}

// BenchmarkLoad measures 128 callers at once, each starting a workflow of five
// steps and waiting for its result.
func BenchmarkLoad(b *testing.B) {
	benchStores(b, func(b *testing.B, st benchStore) {
		count := &counting{Store: st.Store}
		flow := benchEngine(b, count, 5)
		var next atomic.Int64
		b.ResetTimer()
		var wg sync.WaitGroup
		for range 128 {
			wg.Go(func() {
				for {
					i := int(next.Add(1))
					if i > b.N {
						return
					}
					id := fmt.Sprintf("order-%d", i)
					if _, err := flow.Start(b.Context(), id, load{N: i}); err != nil {
						b.Error(err)
						return
					}
					if _, err := flow.Wait(b.Context(), id); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "workflows/s")
		b.ReportMetric(float64(count.commits.Load())/float64(b.N), "commits/workflow")
		b.ReportMetric(float64(count.commits.Load())/float64(b.N)/5, "commits/step")
	})
}
