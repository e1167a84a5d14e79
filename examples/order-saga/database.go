package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// database holds the workflows and the shop's own tables.
type database struct {
	store.Store
	transactions

	// schema holds the tables workflow, step and worker.
	schema string
}

// transactions opens the shop's own transactions, on either store.
type transactions interface {
	begin(ctx context.Context, readOnly bool) (transaction, error)
	close()
}

// transaction is one of the shop's own.
type transaction struct {
	store.Tx
	commit, rollback func(context.Context) error
}

// openDatabase opens the database of a URL, sqlite:PATH or postgres://…, and
// brings the schema of the workflows up to date.
func openDatabase(ctx context.Context, text string) (*database, error) {
	st, err := daemon.OpenStore(ctx, text, "")
	if errors.Is(err, store.ErrBadURL) {
		return nil, fmt.Errorf("%w: --database-url: want sqlite:PATH or postgres://…: %w", errUsage, err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := st.Migrate(ctx); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	d := &database{Store: st}
	if lite, ok := st.(*sqlite.Store); ok {
		d.transactions, d.schema = sqliteTransactions{lite.DB()}, "main"
		return d, nil
	}
	plain, schema := withoutSchema(text)
	pool, err := pgxpool.New(ctx, plain)
	if err != nil { // its text may hold the URL
		return nil, errors.Join(store.ErrBadURL, st.Close())
	}
	d.transactions, d.schema = postgresTransactions{pool}, schema
	return d, nil
}

// withoutSchema takes the name of the workflows' schema, which is pawl's own
// setting, out of a URL.
func withoutSchema(text string) (plain, schema string) {
	u, err := url.Parse(text)
	if err != nil || !u.Query().Has("schema") {
		return text, postgres.DefaultSchema
	}
	q := u.Query()
	schema = q.Get("schema")
	q.Del("schema")
	u.RawQuery = q.Encode()
	return u.String(), schema
}

// describe names a database without what may be a secret in its URL.
func describe(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// Close closes all connections.
func (d *database) Close() error {
	d.transactions.close()
	return d.Store.Close()
}

// inTx calls fn in a transaction that is committed if fn returns nil.
func (d *database) inTx(ctx context.Context, fn func(store.Tx) error) error {
	return d.transact(ctx, false, fn)
}

// view calls fn in a transaction that only reads, and sees one moment.
func (d *database) view(ctx context.Context, fn func(store.Tx) error) error {
	return d.transact(ctx, true, fn)
}

func (d *database) transact(ctx context.Context, readOnly bool, fn func(store.Tx) error) error {
	tx, err := d.begin(ctx, readOnly)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to roll back
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// prepare creates the example's own tables and puts SKUs on the shelf.
func (d *database) prepare(ctx context.Context, stock map[string]int) error {
	return d.inTx(ctx, func(tx store.Tx) error {
		if err := order.CreateTables(ctx, tx); err != nil {
			return err
		}
		if err := createKillTables(ctx, tx); err != nil {
			return err
		}
		for sku, quantity := range stock {
			if err := order.Stock(ctx, tx, sku, quantity); err != nil {
				return err
			}
		}
		return nil
	})
}

type sqliteTransactions struct{ db *sql.DB }

func (t sqliteTransactions) begin(ctx context.Context, readOnly bool) (transaction, error) {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: readOnly})
	if err != nil {
		return transaction{}, err
	}
	return transaction{
		Tx:       sqlite.Tx(tx),
		commit:   func(context.Context) error { return tx.Commit() },
		rollback: func(context.Context) error { return tx.Rollback() },
	}, nil
}

func (t sqliteTransactions) close() {} // the store closes its pool

type postgresTransactions struct{ pool *pgxpool.Pool }

func (t postgresTransactions) begin(ctx context.Context, readOnly bool) (transaction, error) {
	opts := pgx.TxOptions{}
	if readOnly {
		opts = pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}
	}
	tx, err := t.pool.BeginTx(ctx, opts)
	if err != nil {
		return transaction{}, err
	}
	return transaction{Tx: postgres.Tx(tx), commit: tx.Commit, rollback: tx.Rollback}, nil
}

func (t postgresTransactions) close() { t.pool.Close() }
