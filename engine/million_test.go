package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
)

// TestAMillionWaiting measures, in one run on PostgreSQL, what workflows that wait
// cost those that work: the time of a claim beside none and beside a million, and
// how much of a core an idle worker takes. It does not run beside other tests, since
// it counts what this process uses. Under the race detector it makes do with less.
func TestAMillionWaiting(t *testing.T) {
	many, idleLimit, slower := 1_000_000, 0.01, 1.2
	if raced || testing.Short() { // beside other packages: a plan that has gone wrong still shows
		many, idleLimit, slower = 50_000, 0.1, 4
	}
	const claims = 400
	ctx := t.Context()
	url := pgtest.URL(t)
	st, err := postgres.Open(ctx, url)
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	_, err = st.Migrate(ctx)
	require.NoError(t, err)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer conn.Close(ctx) //nolint:errcheck // nothing to save

	claimTimes(t, st, "warm", claims) // plans, pages, connections
	before := claimTimes(t, st, "alone", claims)
	began := time.Now()
	// Half wait for a signal, half for a time to come.
	_, err = conn.Exec(ctx, `
		INSERT INTO pawl.workflow (bucket, id, definition, version, status, state, revision, awaits, wake_at, pivoted, input_hash, data, created_at, updated_at)
		SELECT 0, 'waiting-' || n, 'order', 1, 'WAITING', 'approving', 3,
		       CASE WHEN n % 2 = 0 THEN 'approval' END,
		       CASE WHEN n % 2 = 1 THEN now() + interval '1 day' + n * interval '1 second' END,
		       false, '\x00000000000000000000000000000000', '{"id":"order-1","cents":4990}', now(), now()
		FROM   generate_series(1, $1::int) AS n`, many)
	require.NoError(t, err)
	t.Logf("%d workflows that wait, inserted in %v", many, time.Since(began).Round(time.Second))
	claimTimes(t, st, "warm again", claims)
	beside := claimTimes(t, st, "beside", claims)

	idle := idleCPU(t, st)
	ratio := float64(beside) / float64(before)
	t.Logf("claim p50 alone %v, beside %d waiting %v: %.2f times; an idle worker takes %.2f %% of a core", before, many, beside, ratio, 100*idle)
	require.LessOrEqual(t, ratio, slower)
	require.Less(t, idle, idleLimit)
}

// claimTimes claims workflows that were just started, one at a time, ends them, and
// returns the median time of a claim.
func claimTimes(t *testing.T, st store.Store, name string, n int) time.Duration {
	t.Helper()
	ctx := t.Context()
	me := store.WorkerID{1, byte(len(name)), name[0], name[len(name)-1]}
	order := store.Def{Name: "order", Version: 1}
	require.NoError(t, st.Join(ctx, store.Worker{ID: me, Definitions: []store.Def{order}}, time.Hour))
	times := make([]time.Duration, n)
	for i := range times {
		id := name + "-" + time.Now().Format("150405.000000000")
		_, err := st.Start(ctx, []store.New{{ID: id, Definition: order, Place: store.Place{
			Status: store.Pending, State: "charging", Mark: store.Mark{Step: "charge", Group: 1},
			Data: []byte(`{}`), Wake: store.Wake{Kind: store.WakeAfter},
		}}})
		require.NoError(t, err)
		began := time.Now()
		rows, err := st.Claim(ctx, me, []store.Def{order}, 16)
		times[i] = time.Since(began)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		_, err = st.Commit(ctx, me, []store.Transition{{
			Guard: store.Guard{ID: id, Revision: rows[0].Revision}, Place: store.Place{Status: store.Completed, State: "done"},
		}})
		require.NoError(t, err)
	}
	_, err := st.Leave(ctx, me)
	require.NoError(t, err)
	slices.Sort(times)
	return times[n/2]
}

// idleCPU returns the part of a core that this process uses while a worker has
// nothing to do.
func idleCPU(t *testing.T, st store.Store) float64 {
	t.Helper()
	e, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s := newSite("http://127.0.0.1:1")
	defer s.close()
	d := s.single()
	d.Name = "order" // what the waiting ones are
	_, err = engine.Register(e, d)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	wait(t, 2*time.Second) // until it has joined and looked around
	used, began := cpuTime(t), time.Now()
	wait(t, 10*time.Second)
	part := float64(cpuTime(t)-used) / float64(time.Since(began))
	stop()
	require.NoError(t, <-ran)
	return part
}

// wait lets real time pass: what is measured is what happens in it.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
}

// cpuTime is the processor time that this process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
