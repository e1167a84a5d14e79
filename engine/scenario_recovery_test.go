package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// kill -9 of one of three workers in a step: another finishes it, with the same
// key, soon after the lease is over.
func TestKilledInAStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		w.lease = 4 * time.Second
		ps := map[string]*process{}
		for range 3 {
			p := w.process(job{}).joined()
			ps[p.log.worker(w)] = p
		}
		gate := w.ledger.holds("w", "do-2")
		c := w.client()
		c.start("saga", "w", trip{Amount: 1})
		gate.arrived(w)
		owner := c.get("w").Owner.String()
		killed := time.Now()
		ps[owner].kill()
		c.ends("w", store.Completed)
		require.Less(w, time.Since(killed), w.lease+w.poll+5*slack)
		require.Equal(w, []string{"do-1", "do-2", "do-3", "do-4"}, w.ledger.effects("w"))
		require.Equal(w, []int{1, 2, 1}, []int{w.ledger.calls("w", "do-1"), w.ledger.calls("w", "do-2"), w.ledger.calls("w", "do-3")})
		require.Equal(w, "do-2:DONE:2", c.recorded("w")[1])
		delete(ps, owner)
		took := 0
		for _, p := range ps {
			took += p.log.count("took over", `"workflows":1`)
		}
		require.Equal(w, 1, took, "one of the others took over")
	})
}

// A worker is paused in a step until another has finished the workflow. When it
// goes on, whatever it writes is refused; it says so, and begins anew.
func TestPausedBeyondItsLease(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "single")
		gate := w.ledger.holds("w", "do-2")
		c := w.client()
		c.start("saga", "w", trip{Amount: 1})
		p := w.process(job{Lease: 6 * time.Second, Poll: w.poll}) // so that it soon finds out
		gate.arrived(w)
		p.freeze()
		w.leaseOver(p.log.worker(w))
		other := w.process(job{})
		final := c.ends("w", store.Completed)
		rows, steps := w.ledger.all(), c.recorded("w")

		gate.release() // its answer waits for the paused worker
		p.thaw()
		p.log.await(w, 1, engine.ErrLeaseLost.Error())
		p.log.await(w, 2, "worker joined")
		c.start("single", "next", trip{Amount: 1})
		c.ends("next", store.Completed)
		require.Equal(w, final, c.get("w"))
		require.Equal(w, steps, c.recorded("w"))
		require.Equal(w, rows, rowsOf(w.ledger, "w"))
		require.Zero(w, other.log.count(engine.ErrLeaseLost.Error()))
	})
}

func rowsOf(l *ledger, workflow string) []row {
	var rows []row
	for _, r := range l.all() {
		if r.workflow == workflow {
			rows = append(rows, r)
		}
	}
	return rows
}

// A worker is paused inside a transaction. PostgreSQL ends that by itself, so
// the workflow can be taken over; whatever the worker had written is gone.
func TestPausedInATransaction(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(w *world) {
		w.knows("moving")
		w.lease = 5 * time.Second // so a transaction may take two
		w.accounts()
		gate := w.ledger.holds("w", "wrote")
		c := w.client()
		c.start("moving", "w", trip{ID: "w", Amount: 10})
		p := w.process(job{})
		gate.arrived(w)
		p.freeze()
		w.leaseOver(p.log.worker(w))
		w.process(job{})
		c.ends("w", store.Completed)
		gate.release()
		p.thaw()
		p.log.await(w, 2, "worker joined")
		require.Equal(w, 2, w.ledger.visited("w", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

// A worker that cannot renew its lease stops its bodies before anybody can have
// taken over. What it could not finish is begun again, by itself if it turns out
// that nobody has.
func TestWorkerFencesItself(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.lease = 5 * time.Second
		var down atomic.Bool
		var renewed atomic.Pointer[time.Time]
		n := w.client(nodeOptions{wrap: spoils(func(f *faulty) {
			f.renew = func(ctx context.Context, me store.WorkerID, lease time.Duration) (bool, error) {
				if down.Load() {
					return false, fmt.Errorf("renew: %w: %w", store.ErrRetry, errNetwork)
				}
				now := time.Now()
				alive, err := f.Store.Renew(ctx, me, lease)
				if err == nil && alive {
					renewed.Store(&now)
				}
				return alive, err
			}
		})})
		type end struct {
			cause error
			at    time.Time
		}
		begun, cut := make(chan struct{}, 10), make(chan end, 10)
		wait := step.Call("wait", func(ctx context.Context, key step.Key, _ int) (string, error) {
			begun <- struct{}{}
			if len(cut) == 0 && down.Load() {
				<-ctx.Done()
				cut <- end{context.Cause(ctx), time.Now()}
				return "", ctx.Err()
			}
			return w.site.call(ctx, key, 0)
		}).NoUndo("it is a test")
		flow, err := engine.Register(n.Engine, statemachine.Definition[trip]{
			Name: "fenced", Version: 1, Start: "s", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{"s": statemachine.Do(wait, trip.amount, nil).Then("good")},
		})
		require.NoError(w, err)
		n.run()
		w.eventually("the lease is renewed", func() bool { return renewed.Load() != nil })
		down.Store(true)
		_, err = flow.Start(w.ctx(), "w", trip{})
		require.NoError(w, err)
		<-begun
		stopped := <-cut
		require.ErrorIs(w, stopped.cause, engine.ErrLeaseLost)
		require.Less(w, stopped.at.Sub(*renewed.Load()), w.lease, "while its lease was still good")
		require.Equal(w, store.Pending, n.get("w").Status)

		down.Store(false)
		n.ends("w", store.Completed)
		require.Equal(w, []string{"wait:DONE:2"}, n.recorded("w"))
		require.Equal(w, 1, n.log.count("worker joined"), "nobody had buried it")
	})
}

// meeting lets two go on only together.
type meeting struct {
	came atomic.Int32
	both chan struct{}
}

func newMeeting() *meeting { return &meeting{both: make(chan struct{})} }

// wait waits for the other one, or for the end of its call: the other may be about to
// stop. Whoever comes later does not wait.
func (m *meeting) wait(ctx context.Context) {
	if m.came.Add(1) == 2 {
		close(m.both)
	}
	select {
	case <-m.both:
	case <-ctx.Done():
	}
}

// Two workers find the same dead one, and are stopped between finding and taking
// over, and again between seeing what there is to claim and claiming it. Let go
// together, one of them takes it and the other does nothing.
func TestTwoRecoverersAtOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		gate := w.ledger.holds("w", "do-2")
		c := w.client()
		c.start("saga", "w", trip{Amount: 1})
		p := w.process(job{})
		gate.arrived(w)

		var armed, released, claimed atomic.Int32
		takeover, claim := newMeeting(), newMeeting()
		opts := nodeOptions{wrap: spoils(func(f *faulty) {
			f.takeover = func(ctx context.Context, base time.Duration, limit int) (int, error) {
				if armed.Load() == 1 {
					takeover.wait(ctx)
				}
				n, err := f.Store.Takeover(ctx, base, limit)
				if n > 0 {
					released.Add(int32(n))
					armed.Store(2)
				}
				return n, err
			}
			f.claim = func(ctx context.Context, me store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
				switch armed.Load() {
				case 1:
					return nil, nil // not yet
				case 2:
					claim.wait(ctx)
				}
				rows, err := f.Store.Claim(ctx, me, defs, limit)
				claimed.Add(int32(len(rows)))
				return rows, err
			}
		})}
		a, b := w.worker(opts), w.worker(opts)
		a.log.await(w, 1, "worker joined")
		b.log.await(w, 1, "worker joined")
		p.kill()
		armed.Store(1)
		w.leaseOver(p.log.worker(w))

		c.ends("w", store.Completed)
		require.EqualValues(w, 1, released.Load(), "taken over once")
		require.EqualValues(w, 1, claimed.Load(), "claimed once")
		for _, r := range w.ledger.all() {
			want := 1
			if r.step == "do-2" {
				want = 2 // the dead worker's, and one more
			}
			require.Equal(w, want, r.calls, r.key)
		}
		require.Equal(w, "do-2:DONE:2", c.recorded("w")[1])
	})
}

// A sweeper has found a worker dead and is stopped before it takes over. The
// owner, who knows nothing of it, completes the workflow. Nothing of that
// changes when the sweeper goes on.
func TestSweeperMeetsACompletedWorkflow(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		gate := w.ledger.holds("w", "work")
		owner := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.renew = func(context.Context, store.WorkerID, time.Duration) (bool, error) {
				return false, fmt.Errorf("renew: %w: %w", store.ErrRetry, errNetwork)
			}
			f.bury = func(context.Context) ([]store.WorkerID, error) { return nil, errors.New("not today") }
		})})
		owner.log.await(w, 1, "worker joined")
		owner.start("single", "w", trip{Amount: 1})
		gate.arrived(w)

		buried, stopped, swept := make(chan struct{}), make(chan struct{}), make(chan int, 1)
		var once sync.Once
		sweeper := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.bury = func(ctx context.Context) ([]store.WorkerID, error) {
				ids, err := f.Store.Bury(ctx)
				if len(ids) > 0 {
					close(buried)
				}
				return ids, err
			}
			f.takeover = func(ctx context.Context, base time.Duration, limit int) (int, error) {
				select {
				case <-buried:
				default:
					return f.Store.Takeover(ctx, base, limit)
				}
				<-stopped
				n, err := f.Store.Takeover(ctx, base, limit)
				once.Do(func() { swept <- n })
				return n, err
			}
		})})
		sweeper.log.await(w, 1, "worker joined")
		w.leaseOver(owner.log.worker(w))
		<-buried
		gate.release()
		final := owner.ends("w", store.Completed)
		close(stopped)
		require.Zero(w, <-swept)
		require.Equal(w, final, sweeper.get("w"))
		require.Equal(w, 1, w.ledger.calls("w", "work"))
	})
}

// A worker that drains lets its steps end, cuts off those that take too long,
// and gives back the rest: another goes on at once with all of them, and none
// has anything held against it.
func TestDrain(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "stone-deaf")
		c := w.client()
		gates := map[string]*gate{}
		for _, id := range []string{"ends", "cut", "deaf"} {
			gates[id] = w.ledger.holds(id, "do-1")
		}
		p := w.process(job{Concurrency: 3, Drain: 4 * time.Second}).joined()
		c.start("saga", "ends", trip{Amount: 1})
		c.start("saga", "cut", trip{Amount: 1})
		c.start("stone-deaf", "deaf", trip{Amount: 1})
		for _, g := range gates {
			g.arrived(w)
		}
		c.start("saga", "waits", trip{Amount: 1}) // there is no room for it

		other := w.process(job{}).joined()
		c.ends("waits", store.Completed)
		p.signal(sigterm)
		p.log.await(w, 1, `"draining"`)
		gates["ends"].release()
		for _, id := range []string{"ends", "cut", "deaf"} {
			c.ends(id, store.Completed)
		}
		require.Zero(w, p.code())
		require.Equal(w, []int{1, 2, 2, 1}, []int{
			w.ledger.calls("ends", "do-1"), w.ledger.calls("cut", "do-1"), w.ledger.calls("deaf", "do-1"), w.ledger.calls("waits", "do-1"),
		})
		require.Equal(w, 1, w.ledger.calls("ends", "do-2"), "by the other one")
		require.Equal(w, 1, p.log.count("drain timeout is over", `"running":2`))
		require.Zero(w, other.log.count("took over"), "nobody had to wait for a lease")
		for _, id := range []string{"cut", "deaf"} {
			require.Equal(w, "do-1:DONE:2", c.recorded(id)[0])
		}
	})
}

// What a drain cuts off in a transaction is no failure either: the step may fail
// only once, and does not.
func TestDrainInATransaction(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving-once")
		w.accounts()
		c := w.client()
		gate := w.ledger.holds("w", "wrote")
		c.start("moving-once", "w", trip{ID: "w", Amount: 10})
		p := w.process(job{Drain: 50 * time.Millisecond})
		gate.arrived(w)
		p.signal(sigterm)
		require.Zero(w, p.code())
		w.process(job{})
		c.ends("w", store.Completed)
		require.Equal(w, 2, w.ledger.visited("w", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

// A body that goes on after its worker has left touches nothing any more.
func TestLateBodyOfADrainedWorker(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("stone-deaf")
		gate := w.ledger.holds("w", "do-1")
		n := w.worker(nodeOptions{tune: func(c *engine.Config) {
			c.DrainTimeout, c.CutTimeout = 10*time.Millisecond, 10*time.Millisecond
		}})
		n.log.await(w, 1, "worker joined")
		n.start("stone-deaf", "w", trip{Amount: 1})
		gate.arrived(w)
		n.stop()
		left := n.get("w")
		require.Equal(w, store.Pending, left.Status)
		require.True(w, left.Owner.IsZero(), "given back though its body goes on")
		gate.release()
		w.eventually("the body has ended", func() bool {
			return !slices.ContainsFunc(leftBehind(w.Name()), func(stack string) bool { return strings.Contains(stack, "(*site).deaf") })
		})
		require.Equal(w, left, n.get("w"))
		w.worker()
		n.ends("w", store.Completed)
		require.Equal(w, 2, w.ledger.calls("w", "do-1"))
	})
}

// SCENARIO 11: a body that ends its process again and again, by os.Exit or by a panic in
// a goroutine of its own that nobody can recover, under workers that are
// started again and again: after five crashes the workflow is HELD, and the healthy
// ones beside it all finish.
func TestPoison(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "single")
		const healthy = 100
		for range 5 {
			w.ledger.next("poison", "work", tells("exit"), tells("panic beside"))
		}
		c := w.client()
		c.start("single", "poison", trip{Amount: 1})
		for i := range healthy {
			c.start("saga", fmt.Sprintf("w%03d", i), trip{Amount: 1})
		}
		died := make(chan *process, 16)
		launch := func() {
			p := w.process(job{})
			go func() { <-p.ended; died <- p }()
		}
		for range 3 {
			launch()
		}
		crashes := 0
		for c.get("poison").Status != store.Held {
			select {
			case p := <-died:
				crashes++
				require.LessOrEqual(w, crashes, 5)
				w.leaseOver(p.log.worker(w))
				launch()
			case <-time.After(w.poll):
			}
		}
		for i := range healthy {
			c.ends(fmt.Sprintf("w%03d", i), store.Completed)
		}
		require.Equal(w, "step work crashed its worker 5 times", c.get("poison").Reason)
		require.Equal(w, 5, w.ledger.calls("poison", "work"))
	})
}
