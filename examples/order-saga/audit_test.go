package main

import (
	"bytes"
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/store"
)

// books is a world that an audit looks at, written by hand. Its run is "run".
type books struct {
	*database
	bank  *sql.DB
	stage stage
	scope scope
}

// named returns the name of a thing of this run, where the test says that of
// the run "run".
func (b books) named(text string) string {
	return strings.ReplaceAll(text, "-run-", "-"+b.scope.run+"-")
}

// anew is another run in the same databases, so that a test need not make new
// ones.
func (b books) anew(t *testing.T, run string) books {
	t.Helper()
	b.scope = scope{run}
	require.NoError(t, b.prepare(t.Context(), map[string]int{b.named("sku-run-lamp"): 10}))
	return b
}

func newBooks(t *testing.T, st stage) books {
	t.Helper()
	db, err := openDatabase(t.Context(), st.databaseURL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	b, err := bank.OpenBooks(t.Context(), st.bankFile)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return books{db, b, st, scope{}}.anew(t, "run")
}

func (b books) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	require.NoError(t, b.inTx(t.Context(), func(tx store.Tx) error {
		_, err := tx.Exec(t.Context(), query, args...)
		return err
	}))
}

// accept writes down an order of one lamp for 5.00.
func (b books) accept(t *testing.T, id string) {
	t.Helper()
	b.exec(t, `INSERT INTO shop_order (order_id, sku, quantity, cents) VALUES ($1, $2, 1, 500)`, b.named(id), b.named("sku-run-lamp"))
}

// workflow gives an order a workflow that stands somewhere.
func (b books) workflow(t *testing.T, id string, status store.Status, why string) {
	t.Helper()
	_, err := b.Start(t.Context(), []store.New{{
		ID: b.named(id), Definition: store.Def{Name: "order", Version: 1},
		Place: store.Place{Status: status, State: "somewhere", Data: []byte("{}"), Error: why},
	}})
	require.NoError(t, err)
}

func (b books) take(t *testing.T, lamps int) {
	t.Helper()
	b.exec(t, `UPDATE shop_stock SET free = free - $2 WHERE sku = $1`, b.named("sku-run-lamp"), lamps)
}

// moves writes down money that moved for an order.
func (b books) moves(t *testing.T, kind, id string, cents int64) {
	t.Helper()
	_, err := b.bank.ExecContext(t.Context(), `
		INSERT INTO effect (kind, key, order_id, caller, card, charge, cents, done_at)
		VALUES (?1, 'k', ?2, 'worker-run-1', '4242', 0, ?3, 100)`, kind, b.named(id), cents)
	require.NoError(t, err)
	_, err = b.bank.ExecContext(t.Context(), `
		INSERT INTO request (path, key, order_id, caller, came_at)
		VALUES ('/' || ?1, 'k', ?2, 'worker-run-1', 100)`, kind, b.named(id))
	require.NoError(t, err)
}

func (b books) audit(t *testing.T) *audit {
	t.Helper()
	a, err := takeAudit(t.Context(), b.database, b.stage.bankFile, b.scope)
	require.NoError(t, err)
	return a
}

// good is a world in which nothing is wrong: one order that completed, one that
// was undone.
func (b books) good(t *testing.T) {
	t.Helper()
	b.accept(t, "order-run-1")
	b.workflow(t, "order-run-1", store.Completed, "")
	b.moves(t, "charge", "order-run-1", 500)
	b.take(t, 1)
	b.accept(t, "order-run-2")
	b.workflow(t, "order-run-2", store.Compensated, "print-label: refused")
	b.moves(t, "charge", "order-run-2", 500)
	b.moves(t, "refund", "order-run-2", 500)
}

func TestAuditOfAGoodWorld(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		b := newBooks(t, st)
		b.good(t)
		a := b.audit(t)
		require.Empty(t, a.findings)
		var out bytes.Buffer
		require.NoError(t, a.print(&out))
		require.Equal(t, "AUDIT orders=2 completed=1 compensated=1 kills=0 takeovers=0 bank_requests=3 charges=2 "+
			"double_charges=0 lost_orders=0 stock_errors=0 OK\n", out.String())
	})
}

// third accepts a third order, and gives it a workflow.
func (b books) third(t *testing.T, status store.Status, why string) {
	t.Helper()
	b.accept(t, "order-run-3")
	b.workflow(t, "order-run-3", status, why)
}

// Each case does one wrong thing to a good world.
func TestAuditFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		double, lost, stocks int // the figures
		says                 string
		spoil                func(*testing.T, books)
	}{
		"charged twice, both given back": {1, 0, 0, "order-run-2: charged 2 times", func(t *testing.T, b books) {
			b.moves(t, "charge", "order-run-2", 1)
			b.moves(t, "refund", "order-run-2", 1)
		}},
		"charged three times": {2, 1, 0, "order-run-1: COMPLETED, but the bank kept 15.00 and not 5.00", func(t *testing.T, b books) {
			b.moves(t, "charge", "order-run-1", 500)
			b.moves(t, "charge", "order-run-1", 500)
		}},
		"completed unpaid": {0, 1, 0, "order-run-3: COMPLETED, but the bank kept 0.00 and not 5.00", func(t *testing.T, b books) {
			b.third(t, store.Completed, "")
			b.take(t, 1)
		}},
		"undone, not refunded": {0, 1, 0, "order-run-3: COMPENSATED, but the bank kept 5.00 and not 0.00", func(t *testing.T, b books) {
			b.third(t, store.Compensated, "")
			b.moves(t, "charge", "order-run-3", 500)
		}},
		"accepted, not started": {0, 1, 0, "order-run-3: accepted, but there is no workflow", func(t *testing.T, b books) {
			b.accept(t, "order-run-3")
		}},
		"held": {0, 1, 0, "order-run-3: accepted, but HELD in state somewhere: poison", func(t *testing.T, b books) {
			b.third(t, store.Held, "poison")
		}},
		"still waiting": {0, 1, 0, "order-run-3: accepted, but WAITING in state somewhere", func(t *testing.T, b books) {
			b.third(t, store.Waiting, "")
		}},
		"failed, as no order may": {0, 1, 0, "order-run-3: accepted, but FAILED in state somewhere", func(t *testing.T, b books) {
			b.third(t, store.Failed, "")
		}},
		"stock lost": {0, 0, 1, "sku-run-lamp: 2 are gone, but completed orders took 1", func(t *testing.T, b books) {
			b.take(t, 1)
		}},
		"stock from nowhere": {0, 0, 1, "sku-run-lamp: -1 are gone, but completed orders took 1", func(t *testing.T, b books) {
			b.take(t, -2)
		}},
	}
	onEachStore(t, func(t *testing.T, st stage) {
		world := newBooks(t, st)
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				b := world.anew(t, newScope().run)
				b.good(t)
				tc.spoil(t, b)
				says := b.named(tc.says)
				a := b.audit(t)
				require.Equal(t, []int{tc.double, tc.lost, tc.stocks}, []int{a.doubleCharges, a.lostOrders, a.stockErrors}, a.findings)
				require.Contains(t, a.findings, says)
				var out bytes.Buffer
				require.ErrorIs(t, a.print(&out), errAudit)
				require.Contains(t, out.String(), "wrong: "+says+"\n")
				require.Equal(t, "FAILED", figures(t, out.String())["verdict"])
			})
		}
	})
}

func TestAuditLooksAtOneRunOnly(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		b := newBooks(t, st)
		b.good(t)
		b.accept(t, "order-other-1")
		require.Empty(t, b.audit(t).findings)
		all, err := takeAudit(t.Context(), b.database, st.bankFile, scope{})
		require.NoError(t, err)
		require.Equal(t, 3, all.orders)
		require.Equal(t, 1, all.lostOrders)
	})
}

func TestAuditWithoutABanksFileFindsNoMoney(t *testing.T) {
	t.Parallel()
	b := newBooks(t, onSQLite(t))
	b.good(t)
	a, err := takeAudit(t.Context(), b.database, b.stage.bankFile+".none", scope{"run"})
	require.NoError(t, err)
	require.Equal(t, 1, a.lostOrders)
	require.NoFileExists(t, b.stage.bankFile+".none")
}

func TestAuditCountsKillsAndTakeovers(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		b := newBooks(t, st)
		b.good(t)
		me := store.WorkerID{1}
		require.NoError(t, b.Join(t.Context(), store.Worker{ID: me, PID: 4711}, time.Minute))
		_, err := b.Start(t.Context(), []store.New{{
			ID: "order-run-3", Owner: me, Definition: store.Def{Name: "order", Version: 1},
			Place: store.Place{Status: store.Pending, State: "charging", Data: []byte("{}"), Mark: store.Mark{Step: "charge-card", Group: 1, Attempt: 1}},
		}})
		require.NoError(t, err)
		b.moves(t, "charge", "order-run-3", 500) // by worker-run-1, at 100 µs

		kill := func(worker string, at int64) {
			require.NoError(t, b.inTx(t.Context(), func(tx store.Tx) error {
				return noteKill(t.Context(), tx, b.schema, worker, 4711, time.UnixMicro(at))
			}))
		}
		kill("worker-run-1", 101)
		kill("worker-run-2", 101) // of the same process, so as to own the same order
		a := b.audit(t)
		require.Equal(t, 2, a.kills)
		require.Zero(t, a.takeovers, "it has not gone on yet")
		require.Equal(t, 1, a.caught, "the charge was worker-run-1's")

		leave(t, b, me)
		require.Equal(t, 2, b.audit(t).takeovers)
	})
}

// leave gives back what a worker owns, and lets another claim it: two
// revisions.
func leave(t *testing.T, b books, w store.WorkerID) {
	t.Helper()
	n, err := b.Leave(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	other := store.WorkerID{2}
	require.NoError(t, b.Join(t.Context(), store.Worker{ID: other, PID: 1}, time.Minute))
	claimed, err := b.Claim(t.Context(), other, []store.Def{{Name: "order", Version: 1}}, 10)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
}

func TestAnOrphanIsCaughtOnlyBetweenEffectAndCommit(t *testing.T) {
	t.Parallel()
	o := orphanRow{order: "a", worker: "w", step: "charge-card", killedAt: 100}
	for name, tc := range map[string]struct {
		deed deed
		want bool
	}{
		"before the kill":   {deed{"charge", "w", 99}, true},
		"after the kill":    {deed{"charge", "w", 101}, false},
		"of another worker": {deed{"charge", "x", 99}, false},
		"of another step":   {deed{"refund", "w", 99}, false},
	} {
		require.Equal(t, tc.want, o.caught([]deed{tc.deed}), name)
	}
}

func TestOnlySoManyFindingsArePrinted(t *testing.T) {
	t.Parallel()
	a := &audit{}
	for range maxFindings + 3 {
		a.find("x")
	}
	var out bytes.Buffer
	require.ErrorIs(t, a.print(&out), errAudit)
	require.Contains(t, out.String(), "wrong: 3 more\n")
	require.Equal(t, maxFindings+2, bytes.Count(out.Bytes(), []byte("\n")))
}

func TestAnAuditThatCannotReadSaysSo(t *testing.T) {
	t.Parallel()
	b := newBooks(t, onSQLite(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := takeAudit(ctx, b.database, b.stage.bankFile, scope{})
	require.ErrorIs(t, err, context.Canceled)
}
