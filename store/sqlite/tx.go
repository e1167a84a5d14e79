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
//
// As on every store, a statement that fails spoils the transaction: those
// after it fail too. SQLite by itself would go on with what is left, and a
// body that overlooks an error would work here and nowhere else. Statements
// run by the *sql.Tx itself are SQLite's business alone.
func Tx(tx *sql.Tx) store.Tx { return &portableTx{tx: tx} }

type portableTx struct {
	tx     *sql.Tx
	failed error // the first failure of a statement
}

func (p *portableTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	query, err := p.prepare(query, args)
	if err != nil {
		return 0, err
	}
	n, err := affected(p.tx.ExecContext(ctx, query, args...))
	return n, p.note(ctx, err)
}

func (p *portableTx) QueryRow(ctx context.Context, query string, args ...any) store.Row {
	query, err := p.prepare(query, args)
	if err != nil {
		return failedRow{err}
	}
	return portableRow{ctx, p, p.tx.QueryRowContext(ctx, query, args...)}
}

func (p *portableTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	query, err := p.prepare(query, args)
	if err != nil {
		return nil, err
	}
	rows, err := p.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, p.note(ctx, err)
	}
	return portableRows{ctx, p, rows}, nil
}

func (p *portableTx) Unwrap() any { return p.tx }

// prepare returns query as SQLite takes it.
func (p *portableTx) prepare(query string, args []any) (string, error) {
	if err := p.err(); err != nil {
		return "", err
	}
	return bindable(query, len(args))
}

// err returns an error if a statement has failed.
func (p *portableTx) err() error {
	if p.failed == nil {
		return nil
	}
	return fmt.Errorf("an earlier statement of the transaction failed: %w", p.failed)
}

// note translates an error and remembers it if it is the database's.
func (p *portableTx) note(ctx context.Context, err error) error {
	err = translate(ctx, err)
	if p.failed == nil && isDriver(err) {
		p.failed = err
	}
	return err
}

// portableRow and portableRows keep the context of their query, which goes on
// until they are read.
type portableRow struct {
	ctx context.Context //nolint:containedctx // of one query
	tx  *portableTx
	row *sql.Row
}

func (r portableRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %w", store.ErrNoRows, err)
	}
	return r.tx.note(r.ctx, err)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

type portableRows struct {
	ctx  context.Context //nolint:containedctx // of one query
	tx   *portableTx
	rows *sql.Rows
}

func (r portableRows) Next() bool             { return r.rows.Next() }
func (r portableRows) Scan(dest ...any) error { return r.tx.note(r.ctx, r.rows.Scan(dest...)) }
func (r portableRows) Err() error             { return r.tx.note(r.ctx, r.rows.Err()) }
func (r portableRows) Close() error           { return r.tx.note(r.ctx, r.rows.Close()) }
