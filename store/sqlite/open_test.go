package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

func TestOpenRefusesPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte("this is certainly not a database file, but a text"), 0o600))
	for path, why := range map[string]string{
		"":                               "empty",
		"  ":                             "empty",
		"a\x00b":                         "NUL",
		":memory:":                       "in memory",
		"file::memory:?cache=shared":     "in memory",
		"file:x?mode=memory":             "in memory",
		"file:orders.db":                 "URI",
		dir:                              "is a directory",
		dir + "/":                        "is a directory",
		dir + "/new.db/":                 "is a directory",
		filepath.Join(dir, "no", "x.db"): "there is no directory",
		filepath.Join(text, "x.db"):      "not a directory",
		text:                             "not a SQLite database",
	} {
		_, err := sqlite.Open(context.Background(), path)
		require.ErrorIs(t, err, store.ErrBadURL, "%q", path)
		require.ErrorContains(t, err, why, "%q", path)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was created")
}

func TestOpenTakesOddNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a b?c#d%20&e.db", "ünï.db", "'q\".db", "no-extension"} {
		path := filepath.Join(dir, name)
		st := openAt(t, path)
		_, err := st.Start(context.Background(), []store.New{workflow("a")})
		require.NoError(t, err)
		require.FileExists(t, path)
	}
}

// TestOpenFindsWhatWasThere: a file goes on where it was left.
func TestOpenFindsWhatWasThere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "test.db")
	st, err := sqlite.Open(ctx, path)
	require.NoError(t, err)
	_, err = st.Start(ctx, []store.New{workflow("a")})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	w, err := openAt(t, path).Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, store.Pending, w.Status)
}

func TestWithClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	at := time.Date(2030, 1, 2, 3, 4, 5, 6789, time.UTC)
	st := open(t, sqlite.WithClock(func() time.Time { return at }))
	now, err := st.Now(ctx)
	require.NoError(t, err)
	require.Equal(t, at.Truncate(time.Microsecond), now)
	_, err = st.Start(ctx, []store.New{workflow("a")})
	require.NoError(t, err)
	w, err := st.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, now, w.CreatedAt)
}

// TestClose: it may be called twice, and calls made afterwards fail instead of
// opening the file again.
func TestClose(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	listening := make(chan error, 1)
	go func() { listening <- st.Listen(ctx, func(store.Topic) {}) }()
	require.NoError(t, st.Close())
	require.NoError(t, st.Close())
	require.Error(t, <-listening)
	_, err = st.Get(ctx, "a")
	require.ErrorContains(t, err, "closed")
	_, err = st.Start(ctx, []store.New{workflow("a")})
	require.ErrorContains(t, err, "closed")
	require.Error(t, st.DB().PingContext(ctx))
}

// TestCancelledCall: a call whose context is over says so, has written nothing
// and leaves the store in order.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	st := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := st.Start(ctx, []store.New{workflow("a")})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, store.ErrRetry)
	_, err = st.Get(context.Background(), "a")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = st.Start(context.Background(), []store.New{workflow("a")})
	require.NoError(t, err)
}

// TestUsersTransaction: a workflow is started in the transaction in which the
// program writes its own table, in the same file.
func TestUsersTransaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := open(t)
	_, err := st.DB().ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY)")
	require.NoError(t, err)
	for _, commit := range []bool{false, true} {
		tx, err := st.DB().BeginTx(ctx, nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES ('o1')")
		require.NoError(t, err)
		r, err := st.StartTx(ctx, sqlite.Tx(tx), workflow("o1"))
		require.NoError(t, err)
		require.True(t, r.Created)
		if commit {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
		}
		var orders int
		require.NoError(t, st.DB().QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&orders))
		_, err = st.Get(ctx, "o1")
		require.Equal(t, commit, orders == 1)
		require.Equal(t, commit, err == nil)
	}
}

type notOurs struct{ store.Tx }

func (notOurs) Unwrap() any { return "something else" }

func TestStartTxRefusesAnothersTransaction(t *testing.T) {
	t.Parallel()
	_, err := open(t).StartTx(context.Background(), notOurs{}, workflow("a"))
	require.ErrorContains(t, err, "not a *sql.Tx")
}
