package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/store"
)

// account is what the bank's books say of one order.
type account struct {
	requests int
	charges  int
	charged  int64
	refunded int64
	by       []deed
}

// deed is one effect, and who had asked for it when.
type deed struct {
	kind, caller string
	at           int64 // microseconds since 1970
}

// readBooks reads the bank's file, order by order. A file that is not there
// holds nothing.
func readBooks(ctx context.Context, path string) (map[string]account, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := bank.OpenBooks(ctx, path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	books := map[string]account{}
	query := func(sql string, scan func(func(...any) error) error) error {
		rows, err := db.QueryContext(ctx, sql)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	err = errors.Join(readRequests(query, books), readMoney(query, books), readDeeds(query, books))
	if err != nil {
		return nil, fmt.Errorf("read books %q: %w", path, err)
	}
	return books, nil
}

// querier runs a query on the books and scans each row.
type querier func(sql string, scan func(func(...any) error) error) error

func readRequests(query querier, books map[string]account) error {
	return query(`
		SELECT order_id, count(*) FROM request
		GROUP BY order_id`, func(scan func(...any) error) error {
		var id string
		var n int
		err := scan(&id, &n)
		a := books[id]
		a.requests = n
		books[id] = a
		return err
	})
}

func readMoney(query querier, books map[string]account) error {
	return query(`
		SELECT
			order_id,
			count(*) FILTER (WHERE kind = 'charge'),
			coalesce(sum(cents) FILTER (WHERE kind = 'charge'), 0),
			coalesce(sum(cents) FILTER (WHERE kind = 'refund'), 0)
		FROM effect
		GROUP BY order_id`, func(scan func(...any) error) error {
		var id string
		var m account
		err := scan(&id, &m.charges, &m.charged, &m.refunded)
		a := books[id]
		a.charges, a.charged, a.refunded = m.charges, m.charged, m.refunded
		books[id] = a
		return err
	})
}

func readDeeds(query querier, books map[string]account) error {
	return query(`
		SELECT order_id, kind, caller, done_at FROM effect`, func(scan func(...any) error) error {
		var id string
		var d deed
		err := scan(&id, &d.kind, &d.caller, &d.at)
		a := books[id]
		a.by = append(a.by, d)
		books[id] = a
		return err
	})
}

// orderRow is an accepted order, and what became of it.
type orderRow struct {
	id, status, state, why string // status is "" if there is no workflow
	cents                  int64
}

func readOrders(ctx context.Context, tx store.Tx, schema string, s scope) ([]orderRow, error) {
	return collect(ctx, tx, fmt.Sprintf(`
		SELECT o.order_id, o.cents, coalesce(w.status, ''), coalesce(w.state, ''), coalesce(w.error, '')
		FROM shop_order o
		LEFT JOIN %s.workflow w ON w.id = o.order_id
		WHERE o.order_id LIKE $1
		ORDER BY o.order_id`, schema),
		func(scan func(...any) error) (o orderRow, err error) {
			err = scan(&o.id, &o.cents, &o.status, &o.state, &o.why)
			return o, err
		}, s.orders())
}

// stockRow is how many of a SKU are gone, and how many were sold.
type stockRow struct {
	sku         string
	taken, sold int64
}

func readStock(ctx context.Context, tx store.Tx, schema string, s scope) ([]stockRow, error) {
	return collect(ctx, tx, fmt.Sprintf(`
		SELECT k.sku, k.initial - k.free, CAST(coalesce(sum(o.quantity), 0) AS BIGINT)
		FROM shop_stock k
		LEFT JOIN (
			SELECT a.sku, a.quantity FROM shop_order a
			JOIN %s.workflow w ON w.id = a.order_id
			WHERE w.status = 'COMPLETED') o ON o.sku = k.sku
		WHERE k.sku LIKE $1
		GROUP BY k.sku, k.initial, k.free
		ORDER BY k.sku`, schema),
		func(scan func(...any) error) (r stockRow, err error) {
			err = scan(&r.sku, &r.taken, &r.sold)
			return r, err
		}, s.skus())
}

// orphanRow is an order that a worker owned when it was killed.
type orphanRow struct {
	order, worker, step string
	killedAt            int64
	moved               bool // it went on afterwards
}

func readOrphans(ctx context.Context, tx store.Tx, schema string, s scope) ([]orphanRow, error) {
	// A takeover and the claim after it each count one revision. One alone may
	// be a commit that was on its way when the worker died.
	return collect(ctx, tx, fmt.Sprintf(`
		SELECT o.order_id, o.worker, coalesce(o.step, ''), k.killed_at, w.revision > o.revision + 1
		FROM shop_orphan o
		JOIN shop_kill k ON k.worker = o.worker
		JOIN %s.workflow w ON w.id = o.order_id
		WHERE o.worker LIKE $1`, schema),
		func(scan func(...any) error) (r orphanRow, err error) {
			err = scan(&r.order, &r.worker, &r.step, &r.killedAt, &r.moved)
			return r, err
		}, s.workers())
}

// countKills counts the kills, what was taken over after them, and the orders
// whose worker died between the bank's effect and the commit.
func (a *audit) countKills(ctx context.Context, tx store.Tx, schema string, s scope, books map[string]account) error {
	err := tx.QueryRow(ctx, `
		SELECT count(*) FROM shop_kill
		WHERE worker LIKE $1`, s.workers()).Scan(&a.kills)
	if err != nil {
		return err
	}
	orphans, err := readOrphans(ctx, tx, schema, s)
	if err != nil {
		return err
	}
	for _, o := range orphans {
		if o.moved {
			a.takeovers++
		}
		if o.caught(books[o.order].by) {
			a.caught++
		}
	}
	return nil
}

// caught reports whether the bank had done what the worker asked for, and the
// worker died before it could record that: the step was still under way.
func (o orphanRow) caught(deeds []deed) bool {
	for _, d := range deeds {
		if d.caller == o.worker && d.at <= o.killedAt && o.step == d.kind+"-card" {
			return true
		}
	}
	return false
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, tx store.Tx, sql string, scan func(func(...any) error) (T, error), args ...any) (all []T, err error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has said it
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
