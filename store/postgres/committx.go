package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/store"
)

// fenceSQL locks a workflow's row if the guard holds.
const fenceSQL = `
SELECT 1
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.id = $2
AND    w.revision = $3 AND w.owner IS NOT DISTINCT FROM $4::uuid
FOR    NO KEY UPDATE`

// fenceSettings are in force while the fence waits for its lock, limitSettings
// from then on: a body's own statements are not bound by that lock_timeout.
const fenceSettings = `
SELECT set_config('lock_timeout', '1s', true)`

const unboundLocks = `
SET LOCAL lock_timeout TO DEFAULT`

const limitSettings = `
SELECT set_config('statement_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $1, true)`

// transactionLimit has the server end the whole transaction, where it can.
const transactionLimit = `
SELECT set_config('transaction_timeout', $1, true)`

// errOverLimit says that a transaction took longer than it may.
var errOverLimit = fmt.Errorf("the transaction took longer than its limit: %w", context.DeadlineExceeded)

// CommitTx runs body between a fence and a transition, all in one transaction:
// one round trip to begin and lock the row, one to write and commit. A row
// that somebody else keeps locked for a second makes it store.ErrBusy.
//
// The transaction ends with limit, an error that is a
// [context.DeadlineExceeded], whichever notices first. In a process that runs,
// the connection is cut even if the body does not heed its context; for one
// that is paused, the server's timeouts do it. Before PostgreSQL 17 the server
// counts each statement and each idle moment by itself, from then on the
// transaction as a whole.
func (s *Store) CommitTx(
	ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration,
	body func(context.Context, store.Tx) (store.Transition, error),
) (store.Verdict, error) {
	if w.IsZero() {
		return store.Lost, nil // nobody owns nothing
	}
	what := naming("commit", 1, g.ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return store.Lost, fmt.Errorf("%s: %w", what, err)
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return store.Lost, translate(what, err, unsent)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errOverLimit)
	defer cancel()
	own := &lent{conn: conn}
	defer own.giveBack()
	defer context.AfterFunc(limited, own.tear)()

	run := &fenced{s: s, w: w, g: g, bucket: bucketOf(g.ID, buckets), conn: conn.Conn(), what: what}
	verdict, err := run.do(limited, limit, body)
	if err != nil {
		rollback(ctx, run.conn)
	}
	return verdict, err
}

// lent is a connection of the pool in the hands of a body, which may not give
// it back: it may not heed its context.
type lent struct {
	conn *pgxpool.Conn
	once sync.Once
}

// giveBack returns the connection to the pool.
func (l *lent) giveBack() { l.once.Do(l.conn.Release) }

// tear takes the connection away from the pool, which may open another in its
// place, and cuts it: the server rolls back at once, and whoever still uses
// the connection gets an error.
func (l *lent) tear() {
	l.once.Do(func() { _ = l.conn.Hijack().PgConn().Conn().Close() })
}

// fenced is one CommitTx under way.
type fenced struct {
	s      *Store
	w      store.WorkerID
	g      store.Guard
	bucket int16
	conn   *pgx.Conn
	what   string
}

// do fences, runs the body and commits.
func (f *fenced) do(
	ctx context.Context, limit time.Duration,
	body func(context.Context, store.Tx) (store.Transition, error),
) (store.Verdict, error) {
	held, err := f.fence(ctx, limit)
	if err != nil {
		return store.Lost, translate(f.what, err, reading)
	}
	if !held {
		rollback(ctx, f.conn)
		return store.Lost, nil
	}
	t, err := f.run(ctx, body)
	if err != nil {
		return store.Lost, err
	}
	return f.commit(ctx, t)
}

// fence begins the transaction and locks the row, in one round trip.
func (f *fenced) fence(ctx context.Context, limit time.Duration) (held bool, err error) {
	ms := strconv.FormatInt(limitMS(limit), 10)
	statements := []statement{
		{sql: begin},
		{sql: fenceSettings},
		{
			sql:  f.s.sql.fence,
			args: []any{f.bucket, f.g.ID, f.g.Revision, uuid(f.w)},
			read: func(pgx.Rows) error { held = true; return nil },
		},
		{sql: unboundLocks},
		{sql: limitSettings, args: []any{ms}},
	}
	if f.s.version >= transactionTimeoutServer {
		statements = append(statements, statement{sql: transactionLimit, args: []any{ms}})
	}
	_, err = send(ctx, f.conn, statements)
	return held, err
}

// run runs the body. A panic of its leaves the transaction to be rolled back
// and goes on to the caller.
func (f *fenced) run(
	ctx context.Context, body func(context.Context, store.Tx) (store.Transition, error),
) (t store.Transition, err error) {
	tx := &bodyTx{conn: f.conn, limit: ctx}
	defer tx.finish()
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit
			rollback(ctx, f.conn)
		}
	}()
	t, err = body(ctx, portable{tx})
	returned = true

	if err != nil {
		return t, f.bodyFailed(err, tx)
	}
	if err := f.fit(ctx, tx); err != nil {
		return t, fmt.Errorf("%s: %w", f.what, err)
	}
	t.Guard = f.g // the one that was checked, whatever the body says
	return t, nil
}

// bodyFailed is the error of a body that failed: its own, unless the database
// asked for another try or ended the transaction at its limit.
func (f *fenced) bodyFailed(err error, tx *bodyTx) error {
	switch {
	case overLimit(err), tx.over() && f.conn.IsClosed():
		return fmt.Errorf("%s: %w: %w", f.what, errOverLimit, err)
	case tx.limit.Err() != nil:
		return err
	case tx.asked != nil || retryable(err) || f.conn.IsClosed():
		return fmt.Errorf("%s: %w: %w", f.what, store.ErrRetry, err)
	}
	return err
}

// fit returns why a transaction whose body is content cannot be committed all
// the same.
func (f *fenced) fit(ctx context.Context, tx *bodyTx) error {
	switch {
	case tx.over():
		return errOverLimit
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case tx.asked != nil:
		return fmt.Errorf("%w: %w", store.ErrRetry, tx.asked)
	case f.conn.IsClosed():
		return fmt.Errorf("%w: the connection broke while the body ran", store.ErrRetry)
	case f.conn.PgConn().IsBusy():
		return errors.New("the body left rows open")
	case f.conn.PgConn().TxStatus() == 'E':
		return errors.New("the body went on after an error of the database's")
	case f.conn.PgConn().TxStatus() != 'T':
		return errors.New("the body ended the transaction itself")
	}
	return nil
}

// commit writes the transition and commits, in one round trip.
func (f *fenced) commit(ctx context.Context, t store.Transition) (store.Verdict, error) {
	verdicts := make([]store.Verdict, 1)
	statements := []statement{
		{sql: hotSettings},
		f.s.commitStatement(f.w, []store.Transition{t}, group{bucket: f.bucket, at: []int{0}}, verdicts),
		{sql: commit},
	}
	at, err := send(ctx, f.conn, statements)
	switch {
	case err == nil:
		return verdicts[0], nil
	case at == len(statements)-1:
		return store.Lost, translate(f.what, err, committing)
	}
	return store.Lost, translate(f.what, err, sent)
}
