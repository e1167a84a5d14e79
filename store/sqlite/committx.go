package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// holdsGuard finds the row if the guard holds. The write lock is held, so it
// goes on holding until the commit.
const holdsGuard = `
	SELECT 1 FROM workflow
	WHERE id = ?1 AND revision = ?2 AND owner = ?3`

// CommitTx runs body and writes its transition in one transaction, which the
// driver rolls back when limit has passed, whether body heeds its context or
// not. The time spent waiting for the write lock does not count. A transaction
// that outlives its limit fails with context.DeadlineExceeded.
//
// If body panics or calls runtime.Goexit, the transaction is rolled back and
// the panic goes on to the caller.
func (s *Store) CommitTx(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body func(context.Context, store.Tx) (store.Transition, error)) (store.Verdict, error) {
	fail := func(err error) (store.Verdict, error) {
		return store.Lost, fmt.Errorf("commit workflow %q with its transaction: %w", g.ID, err)
	}
	end, err := s.enterTurn(ctx, false)
	if err != nil {
		return fail(err)
	}
	defer end()

	b, err := s.beginLimited(ctx, limit)
	if err != nil {
		return fail(translate(ctx, err))
	}
	defer b.stop()
	context.AfterFunc(b.ctx, end) // a body that overstays does not keep the others waiting

	verdict, err := b.run(w, g, body)
	overdue := ctx.Err() == nil && b.ctx.Err() != nil
	var own bodyError
	switch {
	case err == nil, errors.Is(err, store.ErrUnsure):
		return verdict, err
	case overdue && isInterrupted(err):
		return fail(fmt.Errorf("not done within its limit of %v: %w", limit, context.DeadlineExceeded))
	case errors.As(err, &own):
		return store.Lost, own.error
	}
	return fail(translate(ctx, err))
}

// limited is a transaction that is rolled back when its ctx is done.
type limited struct {
	*writeTx
	ctx  context.Context
	stop func()
}

// beginLimited opens a transaction whose limit counts from when it has the
// write lock.
func (s *Store) beginLimited(ctx context.Context, limit time.Duration) (*limited, error) {
	life, kill := context.WithCancel(ctx)
	tx, err := s.begin(life)
	if err != nil {
		kill()
		return nil, err
	}
	b := &limited{writeTx: tx, ctx: life}
	cancel := func() {}
	if limit > 0 {
		b.ctx, cancel = context.WithTimeout(life, limit)
		context.AfterFunc(b.ctx, kill)
	}
	b.stop = func() {
		tx.Rollback() //nolint:errcheck // does nothing after the commit
		cancel()
		kill()
	}
	return b, nil
}

// run fences, runs body and writes the transition.
func (b *limited) run(w store.WorkerID, g store.Guard, body func(context.Context, store.Tx) (store.Transition, error)) (store.Verdict, error) {
	fence, err := b.stmt(b.ctx, holdsGuard)
	if err != nil {
		return store.Lost, err
	}
	var one int
	switch err := fence.QueryRowContext(b.ctx, g.ID, g.Revision, w[:]).Scan(&one); {
	case errors.Is(err, sql.ErrNoRows):
		return store.Lost, nil
	case err != nil:
		return store.Lost, err
	}
	portable := &portableTx{tx: b.Tx}
	t, err := body(b.ctx, portable)
	if err != nil {
		return store.Lost, ofBody(b.ctx, err)
	}
	if err := portable.err(); err != nil {
		return store.Lost, err
	}
	t.Guard = g
	c, err := newCommitter(b.ctx, b.writeTx, w)
	if err != nil {
		return store.Lost, err
	}
	verdict, err := c.apply(b.ctx, &t)
	if err != nil || verdict == store.Lost {
		return store.Lost, err
	}
	if err := b.ctx.Err(); err != nil {
		return store.Lost, err
	}
	return store.Applied, commit(b.Tx)
}

// bodyError is an error that goes to the caller as body returned it.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// ofBody tells an error of body's own from one with which the database asks to
// try again.
func ofBody(ctx context.Context, err error) error {
	if isBusy(err) || isFull(err) {
		return translate(ctx, err)
	}
	return bodyError{err}
}
