package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// onOwnPostgres runs a scenario on a server that it may stop and start.
func onOwnPostgres(t *testing.T, run func(w *world, server *pgtest.Server)) {
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Start(t)
		run(newWorld(t, server.URL()), server)
	})
}

// PostgreSQL goes away while bodies run, and comes back. What they come to
// meanwhile is kept, and committed after: nothing is called again.
func TestPostgresRestartsDuringACall(t *testing.T) {
	t.Parallel()
	onOwnPostgres(t, func(w *world, server *pgtest.Server) {
		w.knows("saga")
		n, c := w.worker(), w.client()
		n.log.await(w, 1, "worker joined")
		gates := map[string]*gate{"done": newGate(), "refused": newGate(), "across": newGate()}
		w.ledger.next("done", "do-2", act{effect: true, gate: gates["done"]})
		w.ledger.next("refused", "do-2", act{status: 409, gate: gates["refused"]})
		w.ledger.next("across", "do-2", act{effect: true, gate: gates["across"]})
		for id, g := range gates {
			c.start("saga", id, trip{Amount: 1})
			g.arrived(w)
		}
		require.NoError(w, server.Stop(pgtest.Immediate))
		gates["done"].release()
		gates["refused"].release()
		n.log.await(w, 1, `"level":"WARN"`) // it has noticed
		require.NoError(w, server.Start())
		c.ends("done", store.Completed)
		refused := c.ends("refused", store.Compensated)
		require.Equal(w, statemachine.Refused, refused.Cause)
		require.Equal(w, []string{"do-1", "undo-1"}, w.ledger.effects("refused"))
		gates["across"].release()
		c.ends("across", store.Completed)
		for _, r := range w.ledger.all() {
			require.Equal(w, 1, r.calls, r.key)
		}
		require.Equal(w, 1, n.log.count("worker joined"))
	})
}

// PostgreSQL crashes while a worker takes over from a dead one, and is back a
// moment later: everything is done soon after that.
func TestPostgresCrashesDuringATakeover(t *testing.T) {
	t.Parallel()
	onOwnPostgres(t, func(w *world, server *pgtest.Server) {
		w.knows("single")
		const many = 250
		w.lease = 4 * time.Second
		c := w.client()
		hang := newGate()
		hang.came = make(chan struct{}, many)
		for i := range many {
			id := fmt.Sprintf("w%03d", i)
			w.ledger.next(id, "work", act{effect: true, gate: hang})
			c.start("single", id, trip{Amount: i})
		}
		dead := w.process(job{Concurrency: many, Lease: 30 * time.Second, Poll: w.poll})
		for range many {
			hang.arrived(w)
		}
		dead.dies()

		taken := make(chan struct{})
		var once sync.Once
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.Concurrency = 64 }, wrap: spoils(func(f *faulty) {
			f.claim = func(ctx context.Context, me store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
				rows, err := f.Store.Claim(ctx, me, defs, limit)
				if len(rows) > 0 {
					once.Do(func() { close(taken) })
				}
				return rows, err
			}
		})})
		<-taken
		require.NoError(w, server.Stop(pgtest.Immediate))
		n.log.await(w, 1, `"level":"WARN"`)
		require.NoError(w, server.Start())
		back := time.Now()
		for i := range many {
			c.ends(fmt.Sprintf("w%03d", i), store.Completed)
		}
		require.Less(w, time.Since(back), w.lease+w.poll+5*slack)
	})
}

// Everybody writes at once while another process keeps the file's write lock for
// a while: all wait, and nothing is lost.
func TestAnotherProcessKeepsTheWriteLock(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		n.log.await(w, 1, "worker joined")
		p := w.process(job{Do: "lock"})
		p.log.await(w, 1, `"locked"`)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				_, err := n.flows["saga"].Start(w.ctx(), fmt.Sprintf("w%02d", i), trip{Amount: i})
				require.NoError(w, err)
			})
		}
		until := time.Now().Add(1500 * time.Millisecond)
		w.eventually("they have waited a while", func() bool { return time.Now().After(until) })
		require.Empty(w, w.workflows())
		p.send("let go")
		wg.Wait()
		for i := range 16 {
			n.ends(fmt.Sprintf("w%02d", i), store.Completed)
		}
		for _, r := range w.ledger.all() {
			require.Equal(w, 1, r.calls, r.key)
		}
	})
}

// lock keeps the write lock of a SQLite file until the test says so.
func (c *child) lock(ctx context.Context, j job) error {
	st, err := openStore(ctx, j.URL)
	if err != nil {
		return err
	}
	defer st.Close()
	tx, err := st.(interface{ DB() *sql.DB }).DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // that is what it is for
	c.say("locked")
	return c.hear()
}

// The disk is full for a while: every write is refused. A client is told so; the
// worker keeps what its bodies came to, and writes it once there is room.
func TestFullDisk(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving-once", "saga")
		w.accounts()
		var full, transactionsOnly atomic.Bool
		var refusals atomic.Int32
		refuse := func() error { refusals.Add(1); return fmt.Errorf("write: %w", store.ErrFull) }
		disk := spoils(func(f *faulty) {
			f.start = func(ctx context.Context, news []store.New) ([]store.StartResult, error) {
				if full.Load() && !transactionsOnly.Load() {
					return nil, refuse()
				}
				return f.Store.Start(ctx, news)
			}
			f.commit = func(ctx context.Context, by store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
				if full.Load() {
					return nil, refuse()
				}
				return f.Store.Commit(ctx, by, ts)
			}
			f.commitTx = func(ctx context.Context, by store.WorkerID, g store.Guard, limit time.Duration, body txBody) (store.Verdict, error) {
				if !full.Load() {
					return f.Store.CommitTx(ctx, by, g, limit, body)
				}
				_, err := f.Store.CommitTx(ctx, by, g, limit, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
					if _, err := body(ctx, tx); err != nil {
						return store.Transition{}, err
					}
					return store.Transition{}, errNetwork
				})
				require.ErrorIs(w, err, errNetwork)
				return store.Lost, refuse()
			}
		})
		n, c := w.worker(nodeOptions{wrap: disk}), w.client(nodeOptions{wrap: disk})
		n.log.await(w, 1, "worker joined")
		gate := w.ledger.holds("call", "do-1")
		n.start("saga", "call", trip{Amount: 1})
		gate.arrived(w)
		full.Store(true)
		gate.release()
		w.eventually("the result was refused a few times", func() bool { return refusals.Load() >= 3 })
		ctx, cancel := context.WithTimeout(w.ctx(), 100*time.Millisecond)
		defer cancel()
		_, err := c.flows["saga"].Start(ctx, "more", trip{Amount: 1})
		require.ErrorIs(w, err, store.ErrFull)
		full.Store(false)
		n.ends("call", store.Completed)
		require.Equal(w, 1, w.ledger.calls("call", "do-1"))
		_, err = n.Get(w.ctx(), "more")
		require.ErrorIs(w, err, engine.ErrNotFound)

		refusals.Store(0)
		transactionsOnly.Store(true)
		full.Store(true)
		n.start("moving-once", "tx", trip{ID: "tx", Amount: 10})
		w.eventually("its transaction was refused a few times", func() bool { return refusals.Load() >= 3 })
		require.Equal(w, store.Pending, n.get("tx").Status, "and nothing is held against it")
		full.Store(false)
		n.ends("tx", store.Completed)
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

// Transactional steps that take their time, one after the other, do not keep the
// worker from renewing its lease, though a SQLite file has one writer.
func TestTransactionsDoNotStarveTheLease(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		const many = 32
		w.lease = 10 * time.Second
		c, n := w.client(), w.client()
		slow := step.InTx("move", func(ctx context.Context, _ store.Tx, _ int) (string, error) {
			select {
			case <-time.After(350 * time.Millisecond):
				return "done", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}).NoUndo("it only takes time")
		def := statemachine.Definition[trip]{
			Name: "slow", Version: 1, Start: "s", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{"s": statemachine.Do(slow, trip.amount, nil).Then("good")},
		}
		flow, err := engine.Register(c.Engine, def)
		require.NoError(w, err)
		_, err = engine.Register(n.Engine, def)
		require.NoError(w, err)
		for i := range many {
			_, err := flow.Start(w.ctx(), fmt.Sprintf("w%02d", i), trip{})
			require.NoError(w, err)
		}
		n.run() // and claims them all at once
		for i := range many {
			n.ends(fmt.Sprintf("w%02d", i), store.Completed)
			require.Equal(w, []string{"move:DONE:1"}, n.recorded(fmt.Sprintf("w%02d", i)))
		}
		require.Zero(w, n.log.count(engine.ErrLeaseLost.Error()), n.log)
	})
}
