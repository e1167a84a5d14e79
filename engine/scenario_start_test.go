package engine_test

import (
	"context"
	"fmt"
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

// Two processes with 25 goroutines each start one id at the same moment: one
// execution, and the same answer for all.
func TestOneIDStartedByManyAtOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		gate := w.ledger.holds("w", "work")
		var ps []*process
		for range 2 {
			p := w.process(job{Do: "starts", Starts: 25})
			p.log.await(w, 1, `"ready"`)
			ps = append(ps, p.joined())
		}
		for _, p := range ps {
			p.send("go")
		}
		for _, p := range ps {
			p.log.await(w, 25, `"started"`, `"error":"<nil>"`)
		}
		gate.release()
		created := 0
		for _, p := range ps {
			p.log.await(w, 25, `"finished"`, `"error":"<nil>"`, `"result":"{\"Amount\":7,\"Receipts\":[\"w/work/1#1\"]}"`)
			require.Zero(w, p.code())
			created += p.log.count(`"created":true`)
		}
		require.Equal(w, 1, created)
		require.Equal(w, 1, w.ledger.calls("w", "work"))
	})
}

// The same id with another input or another definition is a conflict that says
// which, while the first runs, after a kill -9, and after its end; and does it
// no harm.
func TestConflictingStarts(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "single")
		gate := w.ledger.holds("w", "work")
		c := w.client()
		c.start("single", "w", trip{Amount: 7})
		conflicts := func(when string) {
			w.Helper()
			_, err := c.flows["single"].Start(w.ctx(), "w", trip{Amount: 8})
			require.ErrorIs(w, err, engine.ErrConflict, when)
			var conflict *engine.ConflictError
			require.ErrorAs(w, err, &conflict)
			require.Equal(w, "input", conflict.What)
			require.EqualError(w, err, `workflow "w" exists with another input`)

			_, err = c.flows["saga"].Start(w.ctx(), "w", trip{Amount: 7})
			require.ErrorAs(w, err, &conflict, when)
			require.Equal(w, "definition", conflict.What)
			require.EqualError(w, err, `workflow "w" exists as single, not saga`)
		}
		p := w.process(job{})
		gate.arrived(w)
		conflicts("while it runs")
		p.dies()
		conflicts("after a kill -9")
		w.process(job{})
		final := c.ends("w", store.Completed)
		require.Equal(w, trip{Amount: 7, Receipts: []string{"w/work/1#1"}}, final.Data)
		conflicts("after the end")
		require.Equal(w, final, c.get("w"), "unharmed")
		require.Equal(w, 2, w.ledger.calls("w", "work"), "the killed one and the one after it")
	})
}

// A duplicate start gets the first answer, however that was: whether everything
// is as it was is asked for every workflow of every scenario, see
// checkDuplicates.
func TestDuplicateStartsAfterTheEnd(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga", "single")
		w.ledger.next("failed", "work", refused)
		w.ledger.next("undone", "do-3", refused)
		n := w.worker()
		for _, tt := range []struct {
			flow, id string
			status   store.Status
			reason   string
		}{
			{"single", "done", store.Completed, ""},
			{"single", "failed", store.Failed, "step work was refused: the ledger refuses"},
			{"saga", "undone", store.Compensated, "step do-3 was refused: the ledger refuses"},
		} {
			n.start(tt.flow, tt.id, trip{Amount: 3})
			first := n.ends(tt.id, tt.status)
			require.Equal(w, tt.reason, first.Reason)
			calls := w.ledger.all()
			again := n.start(tt.flow, tt.id, trip{Amount: 3})
			require.Equal(w, engine.Started{ID: tt.id, Status: tt.status}, again)
			require.Equal(w, first, n.wait(tt.id))
			require.Equal(w, calls, w.ledger.all(), "nothing was called again")
		}
	})
}

// A workflow that is started in the caller's transaction exists if and only if
// that commits. A caller that did not hear of its commit may repeat everything.
func TestStartInTheCallersTransaction(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.accounts()
		n := w.worker()
		start := func(id string, commit bool) (s engine.Started) {
			w.inTx(func(ctx context.Context, tx store.Tx) bool {
				require.NoError(w, transfer(ctx, tx, 10, "a"))
				var err error
				s, err = n.flows["single"].StartTx(ctx, tx, id, trip{Amount: 1})
				require.NoError(w, err)
				return commit
			})
			return s
		}
		require.True(w, start("never", false).Created)
		_, err := n.Get(w.ctx(), "never")
		require.ErrorIs(w, err, engine.ErrNotFound)
		_, err = n.Wait(w.ctx(), "never")
		require.ErrorIs(w, err, engine.ErrNotFound, "a waiter is told at once")

		require.True(w, start("once", true).Created)
		w.remember("single", "once", trip{Amount: 1})
		n.ends("once", store.Completed)
		require.False(w, start("once", false).Created, "the caller repeats what it has not heard of")
		require.Equal(w, 1, w.ledger.calls("once", "work"))
		require.Empty(w, w.ledger.effects("never"))
		a, b := w.balances()
		require.Equal(w, []int{990, 1010}, []int{a, b})
	})
}

// The answer to a start gets lost: the start is repeated, finds what it has
// inserted, and the workflow runs once, by the worker that inserted it.
func TestStartWhoseReplyIsLost(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		var lost atomic.Int32
		n := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.start = func(ctx context.Context, news []store.New) ([]store.StartResult, error) {
				results, err := f.Store.Start(ctx, news)
				if err == nil && lost.Add(1) == 1 {
					return nil, fmt.Errorf("start: %w", store.ErrUnsure)
				}
				return results, err
			}
		})})
		n.log.await(w, 1, "worker joined")
		n.start("single", "w", trip{Amount: 1})
		n.ends("w", store.Completed)
		require.EqualValues(w, 2, lost.Load())
		require.Equal(w, 1, w.ledger.calls("w", "work"))
		require.Zero(w, n.log.count("took over"))
	})
}

// Many more starts at once than the worker has room for: all are answered, and
// all run.
func TestMoreStartsThanThereIsRoomFor(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.Concurrency = 4 }})
		const many = 300
		var wg sync.WaitGroup
		var created atomic.Int32
		for i := range many {
			wg.Go(func() {
				s, err := n.flows["nap"].Start(w.ctx(), fmt.Sprintf("w%04d", i), trip{Pause: time.Hour})
				if err == nil && s.Created {
					created.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(w, many, created.Load())
		for _, wf := range w.workflows() {
			require.Equal(w, store.Waiting, wf.Status)
		}
	})
}

// What is wrong with a request is said before anything is written.
func TestBadInput(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.client()
		good := n.flows["single"]
		for name, id := range map[string]string{
			"empty": "", "blank": "   ", "space around": " w", "64 KiB": strings.Repeat("x", 64<<10), "NUL": "a\x00b",
			"control": "a\nb", "not UTF-8": "a\xffb", "one byte too long": strings.Repeat("x", engine.MaxIDBytes+1),
		} {
			_, err := good.Start(w.ctx(), id, trip{})
			require.ErrorIs(w, err, engine.ErrBadID, name)
			require.Less(w, len(err.Error()), 400, "%s: an error is no place for what was sent", name)
			_, err = n.StartJSON(w.ctx(), "single", id, []byte(`{}`))
			require.ErrorIs(w, err, engine.ErrBadID, name)
			w.inTx(func(ctx context.Context, tx store.Tx) bool {
				_, err = good.StartTx(ctx, tx, id, trip{})
				return true
			})
			require.ErrorIs(w, err, engine.ErrBadID, name)
			_, err = n.Get(w.ctx(), id)
			require.ErrorIs(w, err, engine.ErrBadID, name)
			_, err = n.Wait(w.ctx(), id)
			require.ErrorIs(w, err, engine.ErrBadID, name)
			require.ErrorIs(w, n.Cancel(w.ctx(), id, ""), engine.ErrBadID, name)
			require.ErrorIs(w, engine.Signal(w.ctx(), n.Engine, id, ballot, "x"), engine.ErrBadID, name)
			require.ErrorIs(w, n.Cancel(w.ctx(), "w", "", engine.MessageID(id)), engine.ErrBadID, name)
		}
		_, err := n.StartJSON(w.ctx(), "no-such", "w", []byte(`{}`))
		require.ErrorIs(w, err, engine.ErrUnknownDefinition)
		require.ErrorContains(w, err, `"no-such"`)
		for _, data := range []string{``, `{`, `[]`, `{"Amount":"many"}`, `{"Amout":1}`, `{} {}`, `{"Amount":1e400}`, "\xff"} {
			_, err := n.StartJSON(w.ctx(), "single", "w", []byte(data))
			require.ErrorIs(w, err, engine.ErrBadInput, "%q", data)
			require.ErrorContains(w, err, `"w"`)
		}
		_, err = good.Start(w.ctx(), "w", trip{ID: strings.Repeat("x", 2<<20)})
		require.ErrorIs(w, err, engine.ErrTooLarge)
		require.Empty(w, w.workflows(), "nothing is written")

		_, err = good.Start(w.ctx(), strings.Repeat("ö", engine.MaxIDBytes/2), trip{})
		require.NoError(w, err, "the longest id that there can be")
	})
}

// A definition with five faults: all five are named, and nothing is written.
func TestDefinitionWithFiveFaults(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.client()
		bare := step.Call("charge", w.site.call) // 1: what becomes of its effect?
		_, err := engine.Register(n.Engine, statemachine.Definition[trip]{
			Name: "faulty", Version: 1, Start: "charging", OnFailure: "undone", Ends: ends,
			States: statemachine.States[trip]{
				"charging": statemachine.Do(bare, trip.amount, nil).Then("nowhere"), // 2: not defined
				"lonely": statemachine.Do(step.Call("charge", w.site.call).NoUndo("so"), trip.amount, nil). // 3: cannot be reached; 4: a name used twice
																Then("good"),
				"stuck": statemachine.If(trip.complete, "stuck", "stuck"), // 5: no way out (and not reached)
			},
		})
		require.ErrorIs(w, err, statemachine.ErrInvalid)
		for _, fault := range []string{
			`state "charging": step "charge" has an effect, so it needs one of Undo, Pivot and NoUndo`,
			`state "charging": leads to "nowhere", which is not defined`,
			`state "lonely": cannot be reached`,
			`state "lonely": uses the step name "charge", as state "charging" does`,
			`state "stuck": no end can be reached from it`,
		} {
			require.ErrorContains(w, err, fault)
		}
		_, err = n.StartJSON(w.ctx(), "faulty", "w", []byte(`{}`))
		require.ErrorIs(w, err, engine.ErrUnknownDefinition)

		mended := statemachine.Definition[trip]{
			Name: "faulty", Version: 1, Start: "charging", OnFailure: "undone", Ends: ends,
			States: statemachine.States[trip]{"charging": statemachine.Do(bare.NoUndo("so"), trip.amount, nil).Then("good")},
		}
		_, err = engine.Register(n.Engine, mended)
		require.NoError(w, err, "nothing had been written of it")
		_, err = engine.Register(n.Engine, mended)
		require.ErrorIs(w, err, engine.ErrDuplicateDefinition)
		mended.States["charging"] = statemachine.Do(bare.As("pay").NoUndo("so"), trip.amount, nil).Then("good")
		other, err := engine.New(w.st, engine.Config{})
		require.NoError(w, err)
		_, err = engine.Register(other, mended)
		require.ErrorIs(w, err, engine.ErrGraphChanged)
	})
}
