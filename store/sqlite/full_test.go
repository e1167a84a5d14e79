package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

func openInside(t *testing.T, opts ...Option) *Store {
	t.Helper()
	st, err := Open(context.Background(), filepath.Join(t.TempDir(), "test.db"), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

// owned starts a workflow that w owns.
func owned(t *testing.T, st *Store, w store.WorkerID, id string) {
	t.Helper()
	_, err := st.Start(context.Background(), []store.New{{
		ID: id, Definition: store.Def{Name: "order", Version: 1}, Owner: w,
		Place: store.Place{Status: store.Pending, State: "S"},
	}})
	require.NoError(t, err)
}

// limitPages sets how large the file may become for the writer.
func limitPages(t *testing.T, st *Store, more int) {
	t.Helper()
	var pages int
	require.NoError(t, st.writer.QueryRow("PRAGMA page_count").Scan(&pages))
	var limit int
	require.NoError(t, st.writer.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages+more)).Scan(&limit))
}

// TestFull: on a full disk every write is refused as such and writes nothing,
// what is there can be read, and the store goes on when there is space again.
func TestFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t)
	w := store.WorkerID{1}
	owned(t, st, w, "a")
	owned(t, st, w, "b")
	limitPages(t, st, 5)

	large := bytes.Repeat([]byte{1}, 1<<20)
	transition := func(id string, data []byte) store.Transition {
		return store.Transition{
			Guard: store.Guard{ID: id, Revision: 1}, Place: store.Place{Status: store.Pending, State: "T", Data: data},
			Steps: []store.StepRecord{{Step: "s", Group: 1, Status: store.StepDone}},
		}
	}
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrFull)
		require.ErrorIs(t, err, store.ErrRetry)
		require.ErrorIs(t, err, sqlite3.FULL, "the driver's error stays reachable")
		got, err := st.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "S", got.State)
		require.EqualValues(t, 1, got.Revision)
		steps, err := st.History(ctx, "a")
		require.NoError(t, err)
		require.Empty(t, steps)
	}
	for range 3 {
		_, err := st.Commit(ctx, w, []store.Transition{transition("a", nil), transition("b", large)})
		refused(err)
		_, err = st.CommitTx(ctx, w, store.Guard{ID: "a", Revision: 1}, time.Minute, func(context.Context, store.Tx) (store.Transition, error) {
			return transition("a", large), nil
		})
		refused(err)
		_, err = st.CommitTx(ctx, w, store.Guard{ID: "a", Revision: 1}, time.Minute, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
			_, err := tx.Exec(ctx, "CREATE TABLE mine AS SELECT $1 AS x", large)
			return transition("a", nil), err
		})
		refused(err)
		_, err = st.CommitTx(ctx, w, store.Guard{ID: "a", Revision: 1}, time.Minute, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
			_, err := tx.Unwrap().(*sql.Tx).ExecContext(ctx, "CREATE TABLE mine AS SELECT ?1 AS x", large)
			return transition("a", nil), err
		})
		refused(err)
	}
	limitPages(t, st, 10000)
	vs, err := st.Commit(ctx, w, []store.Transition{transition("a", nil), transition("b", large)})
	require.NoError(t, err)
	require.Equal(t, []store.Verdict{store.Applied, store.Applied}, vs)
}

// TestFullDevice: the same with a file system that is really full, where the
// machine has one that may be mounted for it.
func TestFullDevice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() != 0 || !mountSmall(t, dir, 1<<20) {
		t.Skip("only root may mount a small file system")
	}
	ctx := context.Background()
	st, err := Open(ctx, filepath.Join(dir, "test.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	w := store.WorkerID{1}
	owned(t, st, w, "a")
	ballast := filepath.Join(dir, "ballast")
	err = os.WriteFile(ballast, make([]byte, 2<<20), 0o600)
	require.Error(t, err, "it takes what is left")

	commit := func() ([]store.Verdict, error) {
		return st.Commit(ctx, w, []store.Transition{{
			Guard: store.Guard{ID: "a", Revision: 1},
			Place: store.Place{Status: store.Pending, State: "T", Data: bytes.Repeat([]byte{1}, 100_000)},
		}})
	}
	_, err = commit()
	require.ErrorIs(t, err, store.ErrFull)
	got, err := st.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "S", got.State)
	require.NoError(t, os.Remove(ballast))
	vs, err := commit()
	require.NoError(t, err)
	require.Equal(t, []store.Verdict{store.Applied}, vs)
}

// TestLongReader: a reader that stays open neither waits nor keeps writers
// waiting, and goes on seeing what it saw first.
func TestLongReader(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t)
	w := store.WorkerID{1}
	owned(t, st, w, "a")
	tx, err := st.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it only read
	revision := func() (r int64) {
		require.NoError(t, tx.QueryRowContext(ctx, "SELECT revision FROM workflow WHERE id = 'a'").Scan(&r))
		return r
	}
	require.EqualValues(t, 1, revision())
	for r := range int64(50) {
		vs, err := st.Commit(ctx, w, []store.Transition{{
			Guard: store.Guard{ID: "a", Revision: r + 1},
			Place: store.Place{Status: store.Pending, State: "T", Data: bytes.Repeat([]byte{1}, 100_000)},
		}})
		require.NoError(t, err)
		require.Equal(t, []store.Verdict{store.Applied}, vs)
		require.EqualValues(t, 1, revision())
	}
}

// TestReaderCannotWrite: what is meant to read cannot write by mistake,
// outside of the queue.
func TestReaderCannotWrite(t *testing.T) {
	t.Parallel()
	_, err := openInside(t).reader.Exec("DELETE FROM workflow")
	require.ErrorIs(t, err, sqlite3.READONLY)
}

// TestDurability: each connection that writes flushes at every commit, into a
// log, also one that the pool has opened anew.
func TestDurability(t *testing.T) {
	t.Parallel()
	st := openInside(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := st.CommitTx(ctx, store.WorkerID{1}, store.Guard{ID: "a", Revision: 1}, time.Minute, nil)
	require.NoError(t, err)
	owned(t, st, store.WorkerID{1}, "a")
	_, err = st.CommitTx(ctx, store.WorkerID{1}, store.Guard{ID: "a", Revision: 1}, time.Minute, func(context.Context, store.Tx) (store.Transition, error) {
		cancel() // its connection is thrown away
		return store.Transition{}, errors.New("over")
	})
	require.Error(t, err)
	for _, db := range []*sql.DB{st.writer, st.user} {
		var mode string
		var sync, busy, keys int
		require.NoError(t, db.QueryRow("PRAGMA journal_mode").Scan(&mode))
		require.NoError(t, db.QueryRow("PRAGMA synchronous").Scan(&sync))
		require.NoError(t, db.QueryRow("PRAGMA busy_timeout").Scan(&busy))
		require.NoError(t, db.QueryRow("PRAGMA foreign_keys").Scan(&keys))
		require.Equal(t, "wal", mode)
		require.Equal(t, 2, sync, "FULL")
		require.Equal(t, 5000, busy)
		require.Zero(t, keys)
	}
}

// TestBusy: whoever cannot get the write lock within the busy timeout is told
// that the database is busy, and that the call may be tried again.
func TestBusy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t)
	_, err := st.writer.Exec("PRAGMA busy_timeout = 10")
	require.NoError(t, err)
	tx, err := st.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = st.Renew(ctx, store.WorkerID{1}, time.Minute)
	require.ErrorIs(t, err, store.ErrBusy)
	require.ErrorIs(t, err, store.ErrRetry)
	require.ErrorIs(t, err, sqlite3.BUSY)
	require.NoError(t, tx.Rollback())
	_, err = st.Renew(ctx, store.WorkerID{1}, time.Minute)
	require.NoError(t, err)
}

// TestWaitingRespectsContext: the wait for another's write lock ends with the
// caller's context.
func TestWaitingRespectsContext(t *testing.T) {
	t.Parallel()
	st := openInside(t)
	tx, err := st.DB().BeginTx(context.Background(), nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it wrote nothing
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = st.Renew(ctx, store.WorkerID{1}, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), busyTimeout/2)
}

// TestBodyHoldsTheLock: from the fence on nobody else can write, so that what
// the body was told stays true until the commit, and the commit cannot fail
// for a lock.
func TestBodyHoldsTheLock(t *testing.T) {
	t.Parallel()
	st := openInside(t)
	w := store.WorkerID{1}
	owned(t, st, w, "a")
	v, err := st.CommitTx(context.Background(), w, store.Guard{ID: "a", Revision: 1}, time.Minute, func(ctx context.Context, _ store.Tx) (store.Transition, error) {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, err := st.DB().ExecContext(ctx, "UPDATE workflow SET owner = NULL")
		require.Error(t, err, "another writer came between")
		return store.Transition{Place: store.Place{Status: store.Completed}}, nil
	})
	require.NoError(t, err)
	require.Equal(t, store.Applied, v)
}
