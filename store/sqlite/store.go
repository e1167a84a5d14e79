package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/pawlhq/pawl/store"
)

const (
	// busyTimeout is how long a call waits for another process that holds the
	// write lock before it gives up with store.ErrBusy.
	busyTimeout = 5 * time.Second

	// maxBatch is how many transitions or starts fit one call. It bounds how
	// long one commit keeps other processes from the write lock.
	maxBatch = 500

	// maxReaders bounds the connections for reading, and those of DB.
	maxReaders = 4
)

// Store is a store.Store in one SQLite file. Make one with Open. It is safe
// for concurrent use.
type Store struct {
	path    string
	now     func() time.Time
	migrate bool

	writer *sql.DB // one connection: SQLite has one writer
	reader *sql.DB // cannot write
	watch  *sql.DB // one connection for each Listen
	user   *sql.DB // what DB gives out

	turn  turn       // whose turn it is to write
	stmts statements // of the writer
	reads statements // of the reader
	calls calls      // the calls under way, for Close
	hints fanout     // the listeners of this process
}

var _ store.Store = (*Store)(nil)

// Option changes how Open opens a store.
type Option func(*Store)

// WithClock makes the store take its time from now instead of the process's
// clock. It is for tests: all processes on one file must agree on the time.
func WithClock(now func() time.Time) Option {
	return func(s *Store) { s.now = now }
}

// WithoutMigrations makes Open leave the schema as it is. Migrate and Check
// are then the caller's business.
func WithoutMigrations() Option {
	return func(s *Store) { s.migrate = false }
}

// Open opens the database file at path, creates it if it is not there, and
// brings its schema up to date. Any number of processes may do so at once. A
// path that cannot be used is a store.ErrBadURL; a schema that needs a newer
// program is a store.ErrSchemaAhead.
func Open(ctx context.Context, path string, opts ...Option) (*Store, error) {
	abs, err := checkPath(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs, now: time.Now, migrate: true, turn: newTurn()}
	for _, opt := range opts {
		opt(s)
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", path, translate(ctx, err)), s.disconnect())
	}
	if !s.migrate {
		return s, nil
	}
	if _, err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %q: %w", path, err), s.disconnect())
	}
	return s, nil
}

// connect makes the four pools and the file, which it puts into WAL mode.
func (s *Store) connect(ctx context.Context) error {
	pools := []struct {
		db     **sql.DB
		txlock string
		conns  int
		init   func(*sqlite3.Conn) error
	}{
		{&s.writer, "immediate", 1, nil},
		{&s.reader, "deferred", maxReaders, queryOnly},
		{&s.watch, "deferred", 0, queryOnly},
		{&s.user, "immediate", maxReaders, nil},
	}
	for _, p := range pools {
		db, err := driver.Open(dsn(s.path, p.txlock), p.init)
		if err != nil {
			return err
		}
		db.SetMaxOpenConns(p.conns)
		db.SetMaxIdleConns(max(p.conns, 1))
		*p.db = db
	}
	return s.enableWAL(ctx)
}

func queryOnly(c *sqlite3.Conn) error { return c.Exec("PRAGMA query_only = ON") }

// enableWAL switches the file to a write-ahead log, which it then keeps. Where
// several processes do so at once SQLite answers "busy" without waiting, so
// the waiting is done here.
func (s *Store) enableWAL(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for {
		var mode string
		err := s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode != "wal":
			return fmt.Errorf("%w: no write-ahead log on this file system (journal mode %s)", store.ErrBadURL, mode)
		case err == nil || !isBusy(err):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// DB returns a pool for the user's own tables in the same file: transactions
// begin with the write lock (BEGIN IMMEDIATE) and wait up to 5 s for it. It is
// closed with the store.
//
// SQLite has one writer: while a transaction of this pool is open, every other
// writer of the file waits, the store included. So a transaction is to be
// short, and whoever has one open starts workflows with StartTx, not with
// Start.
func (s *Store) DB() *sql.DB { return s.user }

// TxType is *sql.Tx.
func (s *Store) TxType() reflect.Type { return reflect.TypeFor[*sql.Tx]() }

// Limits asks for one committer, since SQLite has one writer.
func (s *Store) Limits() store.Limits { return store.Limits{Committers: 1, Batch: maxBatch} }

// Close waits for the calls under way and closes all connections. Calls made
// afterwards fail.
func (s *Store) Close() error {
	if !s.calls.close() {
		return nil
	}
	return s.disconnect()
}

func (s *Store) disconnect() error {
	var errs []error
	for _, db := range []*sql.DB{s.user, s.watch, s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// clock returns the time in microseconds: the database's clock.
func (s *Store) clock() int64 { return s.now().UnixMicro() }

// Now returns the time of the process's clock, to the microsecond. All
// processes on one file share a machine, and so a clock.
func (s *Store) Now(context.Context) (time.Time, error) { return timeOf(s.clock()), nil }

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
	done   chan struct{} // closed by close; made on demand
}

// enter begins a call; leave must follow unless it fails.
func (c *calls) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return store.ErrClosed
	}
	c.wait.Add(1)
	return nil
}

func (c *calls) leave() { c.wait.Done() }

// closing returns a channel that close closes.
func (c *calls) closing() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doneLocked()
}

func (c *calls) doneLocked() chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
	}
	return c.done
}

// close refuses further calls and waits for those under way. It reports
// whether it was the first to do so.
func (c *calls) close() bool {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first {
		close(c.doneLocked())
	}
	c.mu.Unlock()
	c.wait.Wait()
	return first
}
