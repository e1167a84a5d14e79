package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pawlhq/pawl/store"
)

// turn puts the writers of this process into a queue: first come, first
// served. Heartbeats do not stand in it, since a lease must not run out behind
// transactions that take their time: they wait for the writer at work and at
// most the next one. It only orders them; what keeps them apart is that there
// is one connection to write on.
type turn struct {
	queue chan struct{} // whoever is next holds it until it is at work
	work  chan struct{}
}

func newTurn() turn { return turn{make(chan struct{}, 1), make(chan struct{}, 1)} }

// take waits for its turn and returns what ends it, which may be called more
// than once.
func (t turn) take(ctx context.Context, heartbeat bool) (end func(), err error) {
	if !heartbeat {
		select {
		case t.queue <- struct{}{}:
			defer func() { <-t.queue }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case t.work <- struct{}{}:
		return sync.OnceFunc(func() { <-t.work }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// writeTx is a transaction that holds the write lock.
type writeTx struct {
	*sql.Tx
	stmts *statements
	now   int64 // the clock, read once the lock was held
}

// stmt returns a prepared statement, which the transaction closes.
func (tx *writeTx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := tx.stmts.get(query); s != nil {
		return tx.StmtContext(ctx, s), nil
	}
	return tx.PrepareContext(ctx, query)
}

// exec runs a prepared statement and returns how many rows it changed.
func (tx *writeTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := tx.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	return affected(s.ExecContext(ctx, args...))
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// enterTurn begins a call that writes; end must be called, and may be called
// more than once.
func (s *Store) enterTurn(ctx context.Context, heartbeat bool) (end func(), err error) {
	if err := s.calls.enter(); err != nil {
		return nil, err
	}
	yield, err := s.turn.take(ctx, heartbeat)
	if err != nil {
		s.calls.leave()
		return nil, translate(ctx, err)
	}
	return sync.OnceFunc(func() {
		yield()
		s.calls.leave()
	}), nil
}

// write runs fn in a transaction that holds the write lock, and commits. doing
// says what the call does, for its error. Except for store.ErrUnsure, an error
// means that nothing was written.
func (s *Store) write(ctx context.Context, doing string, fn func(*writeTx) error) error {
	return s.writeAs(ctx, doing, false, fn)
}

// writeAs is write, for a heartbeat or for anything else.
func (s *Store) writeAs(ctx context.Context, doing string, heartbeat bool, fn func(*writeTx) error) error {
	end, err := s.enterTurn(ctx, heartbeat)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer end()
	if err := s.writeInTurn(ctx, fn); err != nil {
		return fmt.Errorf("%s: %w", doing, translate(ctx, err))
	}
	return nil
}

func (s *Store) writeInTurn(ctx context.Context, fn func(*writeTx) error) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // does nothing after the commit
	if err := fn(tx); err != nil {
		return err
	}
	return commit(tx.Tx)
}

// begin opens a transaction with the write lock, for which it waits as long as
// the busy timeout says. It is rolled back when ctx is done.
func (s *Store) begin(ctx context.Context) (*writeTx, error) {
	if err := s.stmts.prepare(ctx, s.writer, writerQueries); err != nil {
		return nil, err
	}
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &writeTx{Tx: tx, stmts: &s.stmts, now: s.clock()}, nil
}

// commit ends a transaction.
func commit(tx *sql.Tx) error {
	err := tx.Commit()
	if err != nil && isUnsure(err) {
		return fmt.Errorf("%w: %w", store.ErrUnsure, err)
	}
	return err
}

// writerQueries are prepared once for the writer's connection: what runs
// often.
var writerQueries = []string{
	insertWorkflow, selectStarted,
	updateWorkflow, insertStep, consumeMessage, seeMessage, holdsGuard,
	livingWorker, dueWorkflows, mailedWorkflows, claimWorkflow, unconsumedMessages,
	renewWorker, positionOf, releaseWorkflow, insertMessage, selectTarget,
}

// statements are prepared statements by their text.
type statements struct {
	all   atomic.Bool // prepare has succeeded
	mu    sync.RWMutex
	byKey map[string]*sql.Stmt
}

// get returns the statement, or nil if it is not prepared.
func (p *statements) get(query string) *sql.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byKey[query]
}

// prepare makes sure that all of the queries are prepared. It must not be
// called while a transaction holds the only connection of db.
func (p *statements) prepare(ctx context.Context, db *sql.DB, queries []string) error {
	if p.all.Load() {
		return nil
	}
	for _, q := range queries {
		if _, err := p.prepared(ctx, db, q); err != nil {
			return err
		}
	}
	p.all.Store(true)
	return nil
}

// prepared returns the statement and prepares it at its first use.
func (p *statements) prepared(ctx context.Context, db *sql.DB, query string) (*sql.Stmt, error) {
	if s := p.get(query); s != nil {
		return s, nil
	}
	s, err := db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.byKey[query]; first != nil {
		return first, s.Close()
	}
	if p.byKey == nil {
		p.byKey = make(map[string]*sql.Stmt)
	}
	p.byKey[query] = s
	return s, nil
}
