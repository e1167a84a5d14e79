package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/enginetest"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// keyedBank honours keys, and remembers what it has done.
type keyedBank struct {
	mu   sync.Mutex
	done map[string]string
}

func (b *keyedBank) once(key step.Key, deed string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = map[string]string{}
	}
	b.done[key.String()] = deed
	return "ch-" + key.UUID()[:8]
}

func (b *keyedBank) Charge(_ context.Context, key step.Key, bill order.Bill) (string, error) {
	return b.once(key, fmt.Sprintf("charge %d", bill.Cents)), nil
}

func (b *keyedBank) Refund(_ context.Context, key step.Key, _, charge string) error {
	b.once(key, "refund "+charge)
	return nil
}

func (b *keyedBank) Void(_ context.Context, key step.Key, _ string, charged step.Key) error {
	b.once(key, "void "+charged.String())
	return nil
}

// books are what the bank has done, one line for each key.
func (b *keyedBank) books() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for key, deed := range b.done {
		lines = append(lines, key+": "+deed)
	}
	slices.Sort(lines)
	return lines
}

// shopDB is a database with the shop's tables, on either store.
type shopDB struct {
	store.Store
	inTx func(ctx context.Context, fn func(store.Tx) error) error
}

func sqliteShop(t *testing.T) shopDB {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return shopDB{st, func(ctx context.Context, fn func(store.Tx) error) error {
		tx, err := st.DB().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // does nothing after the commit
		if err := fn(sqlite.Tx(tx)); err != nil {
			return err
		}
		return tx.Commit()
	}}
}

func postgresShop(t *testing.T) shopDB {
	url := pgtest.URL(t)
	st, err := postgres.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	_, err = st.Migrate(t.Context())
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return shopDB{st, func(ctx context.Context, fn func(store.Tx) error) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx) //nolint:errcheck // does nothing after the commit
		if err := fn(postgres.Tx(tx)); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}}
}

// play is a dear order that is approved and delivered, or one that no courier
// takes and that is undone.
func play(t *testing.T, db shopDB, address string) enginetest.Play {
	o := order.Order{ID: "order-1", SKU: "lamp", Quantity: 2, Cents: 2 * order.NeedsApprovalAbove, Card: "4242", Address: address}
	require.NoError(t, db.inTx(t.Context(), func(tx store.Tx) error {
		if err := order.CreateTables(t.Context(), tx); err != nil {
			return err
		}
		return order.Stock(t.Context(), tx, o.SKU, 10)
	}))
	payments := &keyedBank{}
	var orders *engine.Workflow[order.Order] // of the worker that runs
	return enginetest.Play{
		Store: db.Store,
		Register: func(e *engine.Engine) (err error) {
			orders, err = engine.Register(e, (&order.Shop{Bank: payments}).Workflow())
			return err
		},
		Drive: func(ctx context.Context, e *engine.Engine, _ store.Store) error {
			err := db.inTx(ctx, func(tx store.Tx) error {
				_, err := order.Place(ctx, tx, orders, o)
				return err
			})
			if err != nil {
				return err
			}
			d := order.Decision{Approved: true, By: "ada"}
			if err := engine.Signal(ctx, e, o.ID, order.Approval, d, engine.MessageID("decision")); err != nil && !isEnded(err) {
				return err
			}
			if _, err = orders.Wait(ctx, o.ID); err != nil {
				return err
			}
			_, err = e.Steps(ctx, o.ID)
			return err
		},
		Effects: func(ctx context.Context) (string, error) { return effects(ctx, db, payments, o) },
	}
}

func isEnded(err error) bool { return strings.Contains(err.Error(), engine.ErrEnded.Error()) }

// effects are what the bank has done, what is left in stock, and what is recorded
// of the order and its invoice.
func effects(ctx context.Context, db shopDB, payments *keyedBank, o order.Order) (string, error) {
	lines := payments.books()
	var free int64
	err := db.inTx(ctx, func(tx store.Tx) error {
		return tx.QueryRow(ctx, `SELECT free FROM shop_stock WHERE sku = $1`, o.SKU).Scan(&free)
	})
	if err != nil {
		return "", err
	}
	lines = append(lines, fmt.Sprintf("in stock: %d", free))
	workflows, err := db.List(ctx, store.Query{})
	if err != nil {
		return "", err
	}
	for _, wf := range workflows {
		full, err := db.Get(ctx, wf.ID)
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%s: %s in %s, %s", wf.ID, wf.Status, wf.State, full.Data))
		steps, err := db.History(ctx, wf.ID)
		if err != nil {
			return "", err
		}
		var recorded []string
		for _, s := range steps {
			recorded = append(recorded, fmt.Sprintf("%s/%d %s %s", s.Step, s.Group, s.Status, s.Output))
		}
		slices.Sort(recorded) // of parallel branches either may be first
		lines = append(lines, recorded...)
	}
	return strings.Join(lines, "\n"), nil
}

// TestCrashEverywhere kills the worker of an order at every point where that can
// happen, once each, on each store: another worker finishes it, and nobody can
// tell the difference.
func TestCrashEverywhere(t *testing.T) {
	for name, open := range map[string]func(*testing.T) shopDB{"sqlite": sqliteShop, "postgres": postgresShop} {
		t.Run(name, func(t *testing.T) {
			n := enginetest.CrashEverywhere(t, func(t *testing.T) enginetest.Play { return play(t, open(t), "12 Harbour Road") })
			require.GreaterOrEqual(t, n, 40)
		})
	}
}

// TestCrashInAnUndo: the worker of an order that is rolled back dies once the bank
// has given the money back, and before that is recorded.
func TestCrashInAnUndo(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T) enginetest.Play { return play(t, sqliteShop(t), order.Nowhere) }
	enginetest.CrashAt(t, build, "refund-card", enginetest.AfterBody)
	enginetest.CrashAt(t, build, "release-stock", enginetest.BeforeBody)
}

// TestTheGraphIsTheOneInReview: a change of the order's graph changes a file.
func TestTheGraphIsTheOneInReview(t *testing.T) {
	t.Parallel()
	enginetest.Diagram(t, new(order.Shop).Workflow().Mermaid(), "testdata/order.mermaid")
}
