package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Fails twice, then works: three executions with one key, and one result. How
// often it has failed survives a kill -9 between two attempts.
func TestFailsTwiceThenWorks(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("paced")
		w.ledger.next("w", "do-1", failsBefore, failsBefore)
		c := w.client()
		c.start("paced", "w", trip{Amount: 1})
		p := w.process(job{})
		c.becomes("w", "the first failure is durable", func(s engine.Snapshot[trip]) bool { return s.Mark.Failures == 1 })
		p.dies()
		w.process(job{})
		final := c.ends("w", store.Completed)
		require.Equal(w, []string{"w/do-1/1#1"}, final.Data.Receipts)
		require.Equal(w, 3, w.ledger.calls("w", "do-1"))
		require.Equal(w, []string{"do-1:DONE:3"}, c.recorded("w"))
	})
}

// The policy is exhausted after exactly as many failures as it says, whichever
// workers they happened on.
func TestAttemptsSurviveAKill(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("paced")
		w.ledger.next("w", "do-1", failsBefore, failsBefore, failsBefore, failsBefore)
		c := w.client()
		c.start("paced", "w", trip{Amount: 1})
		p := w.process(job{})
		c.becomes("w", "the first failure is durable", func(s engine.Snapshot[trip]) bool { return s.Mark.Failures == 1 })
		p.dies()
		w.process(job{})
		final := c.ends("w", store.Compensated)
		require.Equal(w, statemachine.Exhausted, final.Cause)
		require.Contains(w, final.Reason, "step do-1 failed 3 times")
		require.Equal(w, 3, w.ledger.calls("w", "do-1"))
		require.Equal(w, []string{"do-1:UNKNOWN:3", "undo-1:DONE:1"}, c.recorded("w"))
	})
}

// A refusal ends the step at once: one execution, no pause (the policy's is an
// hour), and the steps before it are undone; not the step itself, which has had
// no effect.
func TestRefusalRollsBackAtOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("rare")
		w.ledger.next("w", "do-3", refused)
		n := w.worker()
		n.start("rare", "w", trip{Amount: 1})
		final := n.ends("w", store.Compensated)
		require.Equal(w, statemachine.Refused, final.Cause)
		require.Equal(w, 1, w.ledger.calls("w", "do-3"))
		require.Equal(w, []string{"do-1", "do-2", "undo-2", "undo-1"}, w.ledger.effects("w"))
		require.Equal(w, []string{"do-1:DONE:1", "do-2:DONE:1", "do-3:FAILED:1", "undo-2:DONE:1", "undo-1:DONE:1"}, n.recorded("w"))
		require.True(w, w.ledger.known("w", "undo-2"))
	})
}

// When the policy is exhausted, by errors, timeouts or panics, nobody knows
// whether the step had its effect: the rollback begins with the step itself, and
// its undo is told so.
func TestExhaustedStepIsUndoneItself(t *testing.T) {
	hang := act{effect: true, gate: newGate()}
	cases := []struct {
		id, flow string
		acts     []act
		reason   string
	}{
		{"before", "saga", []act{failsBefore, failsBefore, failsBefore}, "step do-2 failed 3 times: the ledger says 500"},
		{"after", "saga", []act{failsAfter, failsAfter, failsAfter}, "step do-2 failed 3 times: the ledger says 500"},
		{"lost", "saga", []act{replyLost, replyLost, replyLost}, "EOF"},
		{"panics", "saga", []act{tells("panic"), tells("panic"), tells("panic")}, "panic: told to panic"},
		{"goexits", "saga", []act{tells("goexit"), tells("goexit"), tells("goexit")}, "runtime.Goexit"},
		{"hangs", "brief", []act{hang, hang}, "attempt timed out after 1s"},
		{"deaf", "deaf", []act{hang, hang}, "attempt timed out after 1s"},
	}
	eachStore(t, func(w *world) {
		w.knows("brief", "deaf", "saga")
		n := w.worker()
		for _, tt := range cases {
			w.ledger.next(tt.id, "do-2", tt.acts...)
			n.start(tt.flow, tt.id, trip{Amount: 1})
		}
		for _, tt := range cases {
			final := n.ends(tt.id, store.Compensated)
			require.Equal(w, statemachine.Exhausted, final.Cause, tt.id)
			require.Contains(w, final.Reason, tt.reason)
			require.Equal(w, len(tt.acts), w.ledger.calls(tt.id, "do-2"), tt.id)
			require.Equal(w, []string{"do-1", "undo-2", "undo-1"}, without(w.ledger.effects(tt.id), "do-2"), tt.id)
			require.False(w, w.ledger.known(tt.id, "undo-2"), tt.id)
			require.True(w, w.ledger.known(tt.id, "undo-1"), tt.id)
			require.Equal(w, fmt.Sprintf("do-2:UNKNOWN:%d", len(tt.acts)), n.recorded(tt.id)[1])
		}
	})
}

func without(list []string, s string) []string {
	var rest []string
	for _, v := range list {
		if v != s {
			rest = append(rest, v)
		}
	}
	return rest
}

// A panic fails the attempt and tells its stack; so does a body that ends its
// goroutine. The worker lives and goes on with everything else.
func TestPanicFailsTheAttempt(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.ledger.next("panics", "work", tells("panic"))
		w.ledger.next("goexits", "work", tells("goexit"))
		n := w.worker()
		for _, id := range []string{"panics", "goexits", "healthy"} {
			n.start("single", id, trip{Amount: 1})
		}
		for _, id := range []string{"panics", "goexits", "healthy"} {
			n.ends(id, store.Completed)
		}
		require.Equal(w, 1, n.log.count("worker joined"))
		first := n.steps.of("panics", "work")[0]
		require.Equal(w, engine.OutcomeRetry, first.Outcome)
		require.Contains(w, first.Error, "panic: told to panic\n")
		require.Contains(w, first.Error, "(*site).obey", "the stack names the place")
		require.Contains(w, n.steps.of("goexits", "work")[0].Error, "the body ended its goroutine")
		require.Equal(w, []int{2, 2, 1}, []int{w.ledger.calls("panics", "work"), w.ledger.calls("goexits", "work"), w.ledger.calls("healthy", "work")})
	})
}

// Many workflows on many worker processes, with next to no connections each and
// nothing that fails: every step is executed exactly once, and no lease is lost.
func TestManyWorkflowsOnManyWorkers(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("rare")
		many, workers := 200, 8
		if raced {
			many = 40
		}
		url := w.url
		if w.isPostgres() {
			url = withParameter(url, "pool_max_conns", "2")
		}
		var ps []*process
		for range workers {
			ps = append(ps, w.process(job{URL: url}))
		}
		for _, p := range ps {
			p.joined()
		}
		c := w.client()
		for i := range many {
			c.start("rare", fmt.Sprintf("w%03d", i), trip{Amount: i})
		}
		for i := range many {
			c.ends(fmt.Sprintf("w%03d", i), store.Completed)
		}
		rows := w.ledger.all()
		require.Len(w, rows, 3*many)
		for _, r := range rows {
			require.Equal(w, 1, r.calls, r.key)
		}
		for _, p := range ps {
			require.Zero(w, p.log.count("lease"), p.log)
			require.Zero(w, p.log.count("stale")+p.log.count("took over"), p.log)
		}
	})
}

// An InTx step is all or nothing: killed after the user's writes and before the
// commit, nothing of it stays, and it is done once more; killed after the commit
// and before the worker has heard of it, it is not.
func TestKilledInATransactionalStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving")
		w.accounts()
		c := w.client()

		before := w.ledger.holds("before", "wrote")
		c.start("moving", "before", trip{ID: "before", Amount: 10})
		p := w.process(job{})
		before.arrived(w)
		p.dies()
		if a, b := w.balances(); a != 1000 || b != 1000 {
			w.Fatalf("half a transfer: %d, %d", a, b)
		}
		w.process(job{})
		c.ends("before", store.Completed)
		require.Equal(w, 2, w.ledger.visited("before", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

func TestKilledAfterTheCommitOfATransactionalStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving")
		w.accounts()
		c := w.client()
		after := w.ledger.holds("after", "committed")
		c.start("moving", "after", trip{ID: "after", Amount: 10})
		p := w.process(job{StopAfterCommitTx: true})
		after.arrived(w)
		p.dies()
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
		w.process(job{})
		final := c.ends("after", store.Completed)
		require.Equal(w, []string{"moved", "after/notify/1#1"}, final.Data.Receipts)
		require.Equal(w, 1, w.ledger.visited("after", "wrote"), "the body is not run again")
		a, b = w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

// An InTx body that fails, panics, or hangs for longer than its transaction may
// take leaves nothing behind, and is known to have had no effect.
func TestFailingTransactionalStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving-once")
		w.lease = 5 * time.Second // so a transaction may take two
		w.accounts()
		n := w.worker()
		for id, a := range map[string]act{
			"fails": failsBefore, "panics": tells("panic"), "goexits": tells("goexit"), "hangs": {gate: newGate()},
		} {
			w.ledger.next(id, "wrote", a)
			n.start("moving-once", id, trip{ID: id, Amount: 10})
			final := n.ends(id, store.Compensated)
			require.Equal(w, statemachine.Exhausted, final.Cause, id)
			require.Equal(w, []string{"move:FAILED:1"}, n.recorded(id), "its undo has nothing to do")
			require.Equal(w, 1, w.ledger.visited(id, "wrote"))
			if id == "hangs" {
				require.Contains(w, final.Reason, engine.ErrTimeout.Error())
			}
		}
		a, b := w.balances()
		require.Equal(w, []int{1000, 1000}, []int{a, b})
	})
}

// An InTx body that ignores the end of its time, and says "done" after it, has
// not been done: its transaction is over.
func TestTransactionalStepThatIsDoneTooLate(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.lease = 5 * time.Second
		w.accounts()
		n := w.client()
		move := step.InTx("move", func(ctx context.Context, tx store.Tx, in trip) (string, error) {
			err := transfer(ctx, tx, in.Amount, "a")
			<-ctx.Done()
			return "moved", err
		}).With(step.Policy{Attempts: 1, Timeout: 300 * time.Millisecond}).NoUndo("it is a test")
		flow, err := engine.Register(n.Engine, statemachine.Definition[trip]{
			Name: "late", Version: 1, Start: "s", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{"s": statemachine.Do(move, trip.self, nil).Then("good")},
		})
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{Amount: 10})
		require.NoError(w, err)
		final := n.ends("w", store.Compensated)
		require.Contains(w, final.Reason, engine.ErrTimeout.Error())
		require.Equal(w, []string{"move:FAILED:1"}, n.recorded("w"))
		a, b := w.balances()
		require.Equal(w, []int{1000, 1000}, []int{a, b})
	})
}

// A call may take longer than the lease: the worker lives, so it is not taken
// over, and not repeated.
func TestCallLongerThanTheLease(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.lease = 4 * time.Second
		gate := w.ledger.holds("w", "work")
		n := w.worker()
		other := w.worker()
		n.start("single", "w", trip{Amount: 1})
		gate.arrived(w)
		owner := n.get("w").Owner
		until := time.Now().Add(3 * w.lease / 2)
		w.eventually("a lease and a half have passed", func() bool { return time.Now().After(until) })
		require.Equal(w, owner, n.get("w").Owner)
		gate.release()
		n.ends("w", store.Completed)
		require.Equal(w, 1, w.ledger.calls("w", "work"))
		require.Zero(w, n.log.count("lost")+other.log.count("lost"))
	})
}

// The answer to a commit gets lost: the worker reads back what has become of it,
// and goes on from there. Nothing is called, and nothing is written, twice.
func TestCommitWhoseReplyIsLost(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving", "saga")
		w.accounts()
		var commits, transactions atomic.Int32
		n := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.commit = func(ctx context.Context, by store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
				commits.Add(1)
				if _, err := f.Store.Commit(ctx, by, ts); err != nil {
					return nil, err
				}
				return nil, fmt.Errorf("commit: %w", store.ErrUnsure)
			}
			f.commitTx = func(ctx context.Context, by store.WorkerID, g store.Guard, limit time.Duration, body txBody) (store.Verdict, error) {
				transactions.Add(1)
				if _, err := f.Store.CommitTx(ctx, by, g, limit, body); err != nil {
					return store.Lost, err
				}
				return store.Lost, fmt.Errorf("commit: %w", store.ErrUnsure)
			}
		})})
		n.log.await(w, 1, "worker joined")
		n.start("saga", "saga", trip{Amount: 1})
		final := n.ends("saga", store.Completed)
		require.EqualValues(w, 5, final.Revision, "one transition a step")
		require.EqualValues(w, 4, commits.Load(), "none was sent again")
		for _, r := range w.ledger.all() {
			require.Equal(w, 1, r.calls, r.key)
		}

		n.start("moving", "moving", trip{ID: "moving", Amount: 10})
		n.ends("moving", store.Completed)
		require.EqualValues(w, 1, transactions.Load())
		require.Equal(w, 1, w.ledger.visited("moving", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
		require.Zero(w, n.log.count("without this worker"))
	})
}

// The commit was lost, not its answer: it is sent again, and the body is not run
// again for it, unless its writes were lost with it.
func TestCommitThatNeverArrived(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving", "saga")
		w.accounts()
		var commits, transactions atomic.Int32
		n := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.commit = func(ctx context.Context, by store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
				if commits.Add(1)%2 == 1 {
					return nil, fmt.Errorf("commit: %w", store.ErrUnsure)
				}
				return f.Store.Commit(ctx, by, ts)
			}
			f.commitTx = func(ctx context.Context, by store.WorkerID, g store.Guard, limit time.Duration, body txBody) (store.Verdict, error) {
				if transactions.Add(1) > 1 {
					return f.Store.CommitTx(ctx, by, g, limit, body)
				}
				_, err := f.Store.CommitTx(ctx, by, g, limit, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
					if _, err := body(ctx, tx); err != nil {
						return store.Transition{}, err
					}
					return store.Transition{}, errNetwork
				})
				require.ErrorIs(w, err, errNetwork)
				return store.Lost, fmt.Errorf("commit: %w", store.ErrUnsure)
			}
		})})
		n.log.await(w, 1, "worker joined")
		n.start("saga", "saga", trip{Amount: 1})
		require.EqualValues(w, 5, n.ends("saga", store.Completed).Revision)
		for _, r := range w.ledger.all() {
			require.Equal(w, 1, r.calls, r.key)
		}
		n.start("moving", "moving", trip{ID: "moving", Amount: 10})
		n.ends("moving", store.Completed)
		require.Equal(w, 2, w.ledger.visited("moving", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}
