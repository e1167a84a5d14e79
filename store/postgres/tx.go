package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// Tx wraps a transaction of the application's, as [Store.StartTx] takes it. It
// stays the application's to commit or roll back.
func Tx(tx pgx.Tx) store.Tx { return portable{tx} }

// portable reduces a pgx.Tx to store.Tx.
type portable struct{ tx pgx.Tx }

// Exec runs a statement and returns how many rows it changed.
func (p portable) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := p.tx.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// QueryRow runs a query that gives one row.
func (p portable) QueryRow(ctx context.Context, sql string, args ...any) store.Row {
	return portableRow{p.tx.QueryRow(ctx, sql, args...)}
}

// Query runs a query; the rows must be closed.
func (p portable) Query(ctx context.Context, sql string, args ...any) (store.Rows, error) {
	rows, err := p.tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return portableRows{rows}, nil
}

// Unwrap returns the pgx.Tx.
func (p portable) Unwrap() any { return p.tx }

// portableRow says store.ErrNoRows where the driver has its own word.
type portableRow struct{ row pgx.Row }

// Scan reads the row.
func (r portableRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, pgx.ErrNoRows) {
		return errors.Join(store.ErrNoRows, err)
	}
	return err
}

// portableRows gives Close the error that reading ended with.
type portableRows struct{ pgx.Rows }

// Close ends the reading.
func (r portableRows) Close() error {
	r.Rows.Close()
	return r.Rows.Err()
}
