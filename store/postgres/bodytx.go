package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errNotYours is what a step's body gets that tries to end its transaction.
var errNotYours = errors.New("the transaction of a step is ended by the store, by what its body returns")

// bodyTx is the pgx.Tx that a step's body sees. The transaction was begun and
// will be ended by the store, in round trips of its own; what the body does in
// between ends with limit, whatever context it uses.
type bodyTx struct {
	conn       *pgx.Conn
	limit      context.Context // of the whole transaction
	cancels    []context.CancelFunc
	savepoints int
	asked      error // the first error with which the database asked for another try
}

var _ pgx.Tx = (*bodyTx)(nil)

// finish ends every context that the transaction derived.
func (t *bodyTx) finish() {
	for _, cancel := range t.cancels {
		cancel()
	}
}

// bound returns ctx, ended at the latest with the transaction. What it derives
// lives as long as the transaction, since rows may be read until then.
func (t *bodyTx) bound(ctx context.Context) context.Context {
	deadline, _ := t.limit.Deadline()
	if d, ok := ctx.Deadline(); ok && !d.After(deadline) {
		return ctx
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errOverLimit)
	t.cancels = append(t.cancels, cancel)
	return ctx
}

// over reports whether the limit has passed. It asks the clock: the contexts
// that end with the limit do so one after the other.
func (t *bodyTx) over() bool {
	deadline, _ := t.limit.Deadline()
	return !time.Now().Before(deadline)
}

// note keeps an error that asks for another try, should the body swallow it.
func (t *bodyTx) note(err error) error {
	if err != nil && t.asked == nil && retryable(err) {
		t.asked = err
	}
	return err
}

// Begin starts a pseudo nested transaction: a savepoint.
func (t *bodyTx) Begin(ctx context.Context) (pgx.Tx, error) {
	t.savepoints++
	name := fmt.Sprintf("pawl_body_%d", t.savepoints)
	if _, err := t.Exec(ctx, "SAVEPOINT "+name); err != nil {
		return nil, err
	}
	return &savepoint{bodyTx: t, name: name}, nil
}

// Commit is refused: the store commits, together with the transition.
func (t *bodyTx) Commit(context.Context) error { return errNotYours }

// Rollback is refused: a body that returns an error is rolled back.
func (t *bodyTx) Rollback(context.Context) error { return errNotYours }

// CopyFrom bulk-loads rows into a table.
func (t *bodyTx) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource,
) (int64, error) {
	n, err := t.conn.CopyFrom(t.bound(ctx), table, columns, rows)
	return n, t.note(err)
}

// SendBatch sends a batch of statements in one round trip.
func (t *bodyTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(t.bound(ctx), b)
}

// LargeObjects gives access to large objects. Unlike the rest it costs a round
// trip of its own.
func (t *bodyTx) LargeObjects() pgx.LargeObjects {
	// The driver's own transaction is needed; an empty statement begins it,
	// since there is one already.
	tx, err := t.conn.BeginTx(t.limit, pgx.TxOptions{BeginQuery: ";"})
	if err != nil {
		_ = t.note(err)
		return pgx.LargeObjects{}
	}
	return tx.LargeObjects()
}

// Prepare makes a prepared statement.
func (t *bodyTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	d, err := t.conn.Prepare(t.bound(ctx), name, sql)
	return d, t.note(err)
}

// Exec runs a statement.
func (t *bodyTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := t.conn.Exec(t.bound(ctx), sql, args...)
	return tag, t.note(err)
}

// Query runs a query; the rows must be closed.
func (t *bodyTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := t.conn.Query(t.bound(ctx), sql, args...)
	return notedRows{rows, t}, t.note(err)
}

// QueryRow runs a query that gives one row.
func (t *bodyTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return notedRow{t.conn.QueryRow(t.bound(ctx), sql, args...), t}
}

// Conn returns the connection. Ending the transaction through it makes the
// step fail.
func (t *bodyTx) Conn() *pgx.Conn { return t.conn }

// notedRows notes the error that reading ended with.
type notedRows struct {
	pgx.Rows
	t *bodyTx
}

// Err returns the error that reading ended with.
func (r notedRows) Err() error { return r.t.note(r.Rows.Err()) }

// notedRow notes the error of its query.
type notedRow struct {
	row pgx.Row
	t   *bodyTx
}

// Scan reads the row.
func (r notedRow) Scan(dest ...any) error { return r.t.note(r.row.Scan(dest...)) }

// savepoint is a pseudo nested transaction of a body's, which may end it.
type savepoint struct {
	*bodyTx
	name   string
	closed bool
}

// Commit releases the savepoint.
func (p *savepoint) Commit(ctx context.Context) error {
	if p.closed {
		return pgx.ErrTxClosed
	}
	p.closed = true
	_, err := p.Exec(ctx, "RELEASE SAVEPOINT "+p.name)
	return err
}

// Rollback takes back what was done since the savepoint.
func (p *savepoint) Rollback(ctx context.Context) error {
	if p.closed {
		return pgx.ErrTxClosed
	}
	p.closed = true
	_, err := p.Exec(ctx, "ROLLBACK TO SAVEPOINT "+p.name)
	return err
}

// limitMS is a limit as the server's settings take it: in whole milliseconds,
// never 0, which would mean none.
func limitMS(limit time.Duration) int64 {
	return max(limit.Milliseconds(), 1)
}
