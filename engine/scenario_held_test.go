package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

func isHeld(s engine.Snapshot[trip]) bool { return s.Status == store.Held }

// The data has become too large to be kept: a person must look. What an InTx
// step has written is taken back, since its result cannot be recorded; what a
// call has done cannot, so a cancellation undoes it.
func TestDataTooLarge(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("moving", "saga")
		w.accounts()
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.MaxPayload = 200 }})
		id := strings.Repeat("x", 160)

		n.start("moving", id, trip{ID: id, Amount: 10})
		held := n.becomes(id, "it is held", isHeld)
		require.Regexp(w, `^data of 2\d\d bytes, at most 200$`, held.Reason)
		require.Equal(w, 1, w.ledger.visited(id, "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{1000, 1000}, []int{a, b})
		require.Empty(w, n.recorded(id))

		n.start("saga", "call", trip{ID: id, Amount: 10})
		n.becomes("call", "it is held", isHeld)
		require.Equal(w, []string{"do-1"}, w.ledger.effects("call"))

		for _, id := range []string{id, "call"} {
			require.NoError(w, n.Cancel(w.ctx(), id, "it cannot be helped"))
			n.ends(id, store.Compensated)
		}
		require.Equal(w, []string{"do-1", "undo-1"}, w.ledger.effects("call"))
		require.False(w, w.ledger.known("call", "undo-1"))
		require.Equal(w, []string{"move:FAILED:1"}, n.recorded(id), "it has had no effect")
	})
}

// A definition's own function panics on a result: another attempt would end the
// same way, so a person must look. Nothing of an InTx step stays.
func TestBrokenMerge(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.accounts()
		n := w.client()
		breaks := func(*trip, string) { panic("cannot merge") }
		flow, err := engine.Register(n.Engine, statemachine.Definition[trip]{
			Name: "broken", Version: 1, Start: "s", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{
				"s": statemachine.Do(step.InTx("move", w.site.move).NoUndo("it is a test"), trip.self, breaks).Then("good"),
			},
		})
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{ID: "w", Amount: 10})
		require.NoError(w, err)
		held := n.becomes("w", "it is held", isHeld)
		require.Equal(w, `state "s": out of step "move": panicked: cannot merge`, held.Reason)
		require.Equal(w, 1, w.ledger.visited("w", "wrote"))
		a, b := w.balances()
		require.Equal(w, []int{1000, 1000}, []int{a, b})
	})
}

// A rollback that follows from the result of an InTx step needs the recorded
// steps. They are read before its transaction, so that one connection is enough.
func TestRollbackChosenByATransactionalStep(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.accounts()
		def := statemachine.Definition[trip]{
			Name: "regret", Version: 1, Start: "calling", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{
				"calling": statemachine.Do(step.Call("do-1", w.site.call).Undo(step.UndoCall("undo-1", w.site.undo)), trip.amount, (*trip).got).Then("moving"),
				"moving":  statemachine.Do(step.InTx("move", w.site.move).Undo(step.UndoInTx("move-back", w.site.moveBack)), trip.self, (*trip).got).Then("weighing"),
				// Nobody votes here, so a quorum of one is never there.
				"weighing": statemachine.If(trip.complete, "good", "undone"),
			},
		}
		c, n := w.client(), w.client(nodeOptions{pool: 1})
		flow, err := engine.Register(c.Engine, def)
		require.NoError(w, err)
		_, err = engine.Register(n.Engine, def)
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{ID: "w", Amount: 10, Quorum: 1})
		require.NoError(w, err)
		final := c.ends("w", store.Compensated)
		require.Equal(w, statemachine.Chosen, final.Cause)
		require.Equal(w, []string{"do-1:DONE:1", "move:DONE:1", "move-back:DONE:1", "undo-1:DONE:1"}, c.recorded("w"))
		a, b := w.balances()
		require.Equal(w, []int{1000, 1000}, []int{a, b})
		require.Zero(w, n.log.count(`"level":"WARN"`), n.log)
	})
}

// The answer to a claim gets lost: the worker owns what it does not know of. It
// compares what it owns with what it holds, and picks that up.
func TestClaimWhoseReplyIsLost(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.lease = 5 * time.Second // it compares with each renewal
		var lost atomic.Int32
		n := w.worker(nodeOptions{wrap: spoils(func(f *faulty) {
			f.claim = func(ctx context.Context, me store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
				rows, err := f.Store.Claim(ctx, me, defs, limit)
				if len(rows) > 0 && lost.Add(1) == 1 {
					return nil, fmt.Errorf("claim: %w", store.ErrUnsure)
				}
				return rows, err
			}
		})})
		n.log.await(w, 1, "worker joined")
		c := w.client()
		c.start("single", "w", trip{Amount: 1})
		c.ends("w", store.Completed)
		require.Equal(w, 1, w.ledger.calls("w", "work"))
		require.Equal(w, 1, n.log.count("picked up owned workflows"))
		require.Equal(w, []string{"work:DONE:1"}, c.recorded("w"))
	})
}

// A step may ask for the store's own transaction; one that asks for another
// store's is refused when it is registered.
func TestTransactionTypes(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.client()
		_, errSQL := engine.Register(n.Engine, asksFor[*sql.Tx]("asks-sql"))
		_, errPGX := engine.Register(n.Engine, asksFor[pgx.Tx]("asks-pgx"))
		_, errAny := engine.Register(n.Engine, asksFor[store.Tx]("asks-any"))
		require.NoError(w, errAny)
		if w.isPostgres() {
			errSQL, errPGX = errPGX, errSQL
		}
		require.NoError(w, errSQL)
		require.ErrorIs(w, errPGX, engine.ErrWrongTx)
		require.ErrorContains(w, errPGX, " asks for ")
	})
}

func asksFor[Tx any](name string) statemachine.Definition[trip] {
	look := step.InTx(name, func(context.Context, Tx, trip) (string, error) { return "", nil }).NoUndo("it only looks")
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "s", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{"s": statemachine.Do(look, trip.self, nil).Then("good")},
	}
}
