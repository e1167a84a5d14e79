package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// openAt opens a store on a database and closes it with the test.
func openAt(t testing.TB, url string, opts ...Option) *Store {
	s, err := Open(context.Background(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openNew opens a store on a fresh database, migrated.
func openNew(t testing.TB, opts ...Option) *Store {
	s := openAt(t, pgtest.URL(t), opts...)
	_, err := s.Migrate(context.Background())
	require.NoError(t, err)
	return s
}

// open1 is openNew with one bucket and a small pool.
func open1(t testing.TB) *Store { return openNew(t, WithPool(4)) }

// direct connects to the database of a store, beside it.
func direct(t testing.TB, s *Store) *pgx.Conn {
	conn, err := pgx.ConnectConfig(context.Background(), s.beat.config.Copy())
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}
