package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// statement is one statement of a round trip, and what reads its answer.
type statement struct {
	sql  string
	args []any
	read func(pgx.Rows) error // called for each row; nil for no rows
}

// begin opens every transaction of pawl's: the level is said each time, since
// a role or a database may have another default.
const begin = "BEGIN ISOLATION LEVEL READ COMMITTED"

// commit ends it.
const commit = "COMMIT"

// hotSettings are local to the transaction, and arrive in its own round trip.
//
// lock_timeout: a batch whose row is locked by somebody is rolled back, for
// its caller to split it, rather than keep its neighbours waiting.
//
// enable_seqscan and plan_cache_mode: the statements are written so that each
// row is found by its key. A plan that was made while the tables were empty,
// or never analysed, would rather read them whole, and would be kept.
//
// jit: a table that has no index for a question, such as the few queues, is read
// whole at a price that would have the plan compiled, for half a second, each time.
const hotSettings = `
SELECT set_config('lock_timeout', '1s', true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`

// rollbackTimeout bounds the clean-up after a statement failed.
const rollbackTimeout = 2 * time.Second

// write runs statements as one transaction in one round trip: begin, the
// settings, the statements and commit are sent together. Its error says what
// became of the transaction.
func (s *Store) write(ctx context.Context, what string, statements ...statement) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return translate(what, err, unsent)
	}
	defer conn.Release()
	at, err := transact(ctx, conn.Conn(), hotSettings, statements)
	return translate(what, err, at)
}

// look is write for statements that change nothing, though they may lock: its
// error is never a doubt.
func (s *Store) look(ctx context.Context, what string, statements ...statement) error {
	return s.lookWith(ctx, what, hotSettings, statements...)
}

// lookWith is look with other settings.
func (s *Store) lookWith(ctx context.Context, what, settings string, statements ...statement) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return translate(what, err, unsent)
	}
	defer conn.Release()
	_, err = transact(ctx, conn.Conn(), settings, statements)
	return translate(what, err, reading)
}

// transact sends a whole transaction, and on an error says how far it came.
// The connection is left fit for the next user, or closed.
func transact(ctx context.Context, conn *pgx.Conn, settings string, statements []statement) (stage, error) {
	all := make([]statement, 0, len(statements)+3)
	all = append(all, statement{sql: begin}, statement{sql: settings})
	all = append(all, statements...)
	all = append(all, statement{sql: commit})
	at, err := send(ctx, conn, all)
	if err == nil {
		return committing, nil
	}
	rollback(ctx, conn)
	if at == len(all)-1 {
		return committing, err
	}
	return sent, err
}

// send runs statements in one round trip and returns the index of the one
// that failed.
func send(ctx context.Context, conn *pgx.Conn, statements []statement) (at int, err error) {
	batch := &pgx.Batch{}
	for _, st := range statements {
		batch.Queue(st.sql, st.args...)
	}
	results := conn.SendBatch(ctx, batch)
	for i, st := range statements {
		if err := answer(results, st.read); err != nil {
			_ = results.Close()
			return i, err
		}
	}
	return len(statements) - 1, results.Close()
}

// answer reads the answer to the next statement.
func answer(results pgx.BatchResults, read func(pgx.Rows) error) error {
	if read == nil {
		_, err := results.Exec()
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rollback leaves the connection fit for the next user, or closed.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx)
	}
}

// query runs one statement that writes nothing.
func (s *Store) query(ctx context.Context, what string, st statement) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return translate(what, err, unsent)
	}
	defer conn.Release()
	return translate(what, queryOn(ctx, conn, st), reading)
}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// queryOn runs one statement and reads its answer; the error is the driver's.
func queryOn(ctx context.Context, on queryer, st statement) error {
	rows, err := on.Query(ctx, st.sql, st.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if st.read == nil {
			continue
		}
		if err := st.read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scan returns a reader that appends each row, as one adds it, to list.
func scan[T any](list *[]T, one func(pgx.Rows, *T) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var v T
		if err := one(rows, &v); err != nil {
			return err
		}
		*list = append(*list, v)
		return nil
	}
}
