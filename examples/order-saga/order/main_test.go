package order_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shopDB is a database with the shop's tables.
type shopDB struct {
	store.Store
	begin func(t *testing.T) (tx store.Tx, commit func(), rollback func())
}

// onEachStore runs a test on SQLite and on PostgreSQL.
func onEachStore(t *testing.T, test func(t *testing.T, db shopDB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, onPostgres(t))
	})
}

func onSQLite(t *testing.T) shopDB {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return prepared(t, shopDB{st, func(t *testing.T) (store.Tx, func(), func()) {
		t.Helper()
		tx, err := st.DB().BeginTx(t.Context(), &sql.TxOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback() }) // of a test that has failed
		return sqlite.Tx(tx), func() { require.NoError(t, tx.Commit()) }, func() { require.NoError(t, tx.Rollback()) }
	}})
}

func onPostgres(t *testing.T) shopDB {
	t.Helper()
	url := pgtest.URL(t)
	st, err := postgres.Open(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	_, err = st.Migrate(t.Context())
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return prepared(t, shopDB{st, func(t *testing.T) (store.Tx, func(), func()) {
		t.Helper()
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		ctx := context.WithoutCancel(t.Context())
		t.Cleanup(func() { _ = tx.Rollback(ctx) }) // of a test that has failed
		return postgres.Tx(tx), func() { require.NoError(t, tx.Commit(ctx)) }, func() { require.NoError(t, tx.Rollback(ctx)) }
	}})
}

// prepared creates the shop's tables, twice since that must do no harm.
func prepared(t *testing.T, db shopDB) shopDB {
	t.Helper()
	for range 2 {
		db.inTx(t, func(tx store.Tx) { require.NoError(t, order.CreateTables(t.Context(), tx)) })
	}
	return db
}

// inTx calls fn in a transaction and commits it.
func (db shopDB) inTx(t *testing.T, fn func(store.Tx)) {
	t.Helper()
	tx, commit, _ := db.begin(t)
	fn(tx)
	commit()
}

// number reads one number.
func (db shopDB) number(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	db.inTx(t, func(tx store.Tx) { require.NoError(t, tx.QueryRow(t.Context(), query, args...).Scan(&n)) })
	return n
}
