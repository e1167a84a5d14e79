package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// Tx makes a transaction on the store's file portable, for StartTx and for
// code that runs on every store. Statements may number their placeholders $1,
// $2 and so on.
func Tx(tx *sql.Tx) store.Tx { return portableTx{tx} }

type portableTx struct{ tx *sql.Tx }

func (p portableTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, err := bindable(query, len(args))
	if err != nil {
		return 0, err
	}
	n, err := affected(p.tx.ExecContext(ctx, query, args...))
	return n, translate(ctx, err)
}

func (p portableTx) QueryRow(ctx context.Context, query string, args ...any) store.Row {
	query, err := bindable(query, len(args))
	if err != nil {
		return failedRow{err}
	}
	return portableRow{ctx, p.tx.QueryRowContext(ctx, query, args...)}
}

func (p portableTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	query, err := bindable(query, len(args))
	if err != nil {
		return nil, err
	}
	rows, err := p.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return portableRows{ctx, rows}, nil
}

func (p portableTx) Unwrap() any { return p.tx }

// portableRow and portableRows keep the context of their query, which goes on
// until they are read.
type portableRow struct {
	ctx context.Context //nolint:containedctx // of one query
	row *sql.Row
}

func (r portableRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %w", store.ErrNoRows, err)
	}
	return translate(r.ctx, err)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

type portableRows struct {
	ctx  context.Context //nolint:containedctx // of one query
	rows *sql.Rows
}

func (r portableRows) Next() bool             { return r.rows.Next() }
func (r portableRows) Scan(dest ...any) error { return translate(r.ctx, r.rows.Scan(dest...)) }
func (r portableRows) Err() error             { return translate(r.ctx, r.rows.Err()) }
func (r portableRows) Close() error           { return translate(r.ctx, r.rows.Close()) }
