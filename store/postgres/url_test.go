package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// TestPasswordIsNeverShown opens URLs that are wrong in every way and looks
// for the password, whole or in part, in all that is said about it.
func TestPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://ann:s3cretword@host:notaport/db",
		"postgres://ann:s3cret/word@host/db",
		"postgres://ann:s3cret%zzword@host/db",
		"postgres://ann:s3cret word@host/db",
		"postgres://ann:s3cret@word@host:5432:1/db",
		"postgres://ann:s3cretword@[::1/db",
		"postgres://ann:s3cretword@host/db?sslmode=nonsense",
		"postgres://ann:s3cretword@host/db?connect_timeout=s3cretword",
		"postgres://ann@host/db?password=s3cretword&sslmode=nonsense",
		"postgres://ann:s3cretword@host/db?pool_max_conns=s3cretword",
		"postgres://ann:s3cretword@host/db?pool_max_conns=0",
		"postgres://ann:s3cretword@host/db?target_session_attrs=s3cretword",
		"postgres://ann:s3cretword@host/db?schema=x;DROP",
		"postgres://ann:s3cretword@host:5432\n/db",
		"postgresql:///db?host=h&password=s3cretword&sslrootcert=/nowhere/s3cretword",
		"host=h user=ann password=s3cretword",
		"mysql://ann:s3cretword@host/db",
		"://ann:s3cretword@host/db",
		"postgres://ann:s3cretword@127.0.0.1:1/db?connect_timeout=1",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := Open(ctx, url)
		cancel()
		require.Error(t, err, url)
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err)} {
			for _, part := range []string{"s3cret", "word", "zz"} {
				require.NotContains(t, strings.ReplaceAll(text, "password", ""), part)
			}
		}
	}
}

// TestBadURL shows how a URL that cannot be used is refused.
func TestBadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                 "must begin with postgres:// or postgresql://",
		"sqlite:orders.db":                 "must begin with",
		"postgres://ann:x@host:port/db":    "percent-encoded",
		"postgres://h/db?sslmode=nonsense": "sslmode",
	} {
		_, err := Open(t.Context(), url)
		require.ErrorIs(t, err, store.ErrBadURL, url)
		require.ErrorContains(t, err, want)
	}
	_, err := Open(t.Context(), "postgres://h/db", WithPool(-1))
	require.ErrorContains(t, err, "pool of -1")
}

// TestBadSchemaName shows that nothing but a plain name becomes a schema.
func TestBadSchemaName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		`pawl"; DROP SCHEMA public CASCADE; --`, `a.b`, `a b`, `A`, `1a`, `_a`, `a-b`, `ä`, "a\x00", `pg_catalog`,
		strings.Repeat("a", 49), `"a"`, `{schema}`, `$1`,
	} {
		_, err := Open(t.Context(), "postgres://127.0.0.1:1/db", WithSchema(name))
		require.ErrorIs(t, err, store.ErrBadSchemaName, name)
	}
	require.Equal(t, `x "a"";--".y`, inSchema("x {schema}.y", `a";--`), "and it is quoted all the same")
}

// TestSchemasAreApart runs two schemas in one database, one of them named by a
// reserved word, one of them by the URL.
func TestSchemasAreApart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := pgtest.URL(t)
	joint := "?"
	if strings.Contains(url, "?") {
		joint = "&"
	}
	a := openAt(t, url, WithSchema("select"))
	b := openAt(t, url+joint+"schema=b_2&pool_max_conns=3")
	require.Equal(t, int32(3), b.pool.Config().MaxConns)
	for _, s := range []*Store{a, b} {
		require.ErrorIs(t, s.Check(ctx), store.ErrSchemaMissing)
		applied, err := s.Migrate(ctx)
		require.NoError(t, err)
		require.Len(t, applied, len(carried))
		startBatch(t, s, store.WorkerID{1}, "wf", 1)
	}
	require.NotEqual(t, a.channel(), b.channel())
	found, err := b.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	var tables int
	require.NoError(t, direct(t, a).QueryRow(ctx,
		`SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('select', 'b_2', 'pg_catalog', 'information_schema')`).Scan(&tables))
	require.Zero(t, tables)
}

// TestServerTooOld shows that a server is refused that pawl is not written for.
func TestServerTooOld(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkVersion(140000))
	require.NoError(t, checkVersion(180001))
	require.EqualError(t, checkVersion(130011), "open database: the server is PostgreSQL 13.11, pawl needs 14 or newer")
}

// TestIsolationIsSaid shows that pawl does not rely on the default isolation
// level, nor on search_path, of a role or a database.
func TestIsolationIsSaid(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := pgtest.URL(t)
	admin := direct(t, openAt(t, url))
	var database string
	require.NoError(t, admin.QueryRow(ctx, "SELECT quote_ident(current_database())").Scan(&database))
	_, err := admin.Exec(ctx, "ALTER DATABASE "+database+" SET default_transaction_isolation = 'serializable'")
	require.NoError(t, err)
	_, err = admin.Exec(ctx, "ALTER DATABASE "+database+" SET search_path = ''")
	require.NoError(t, err)

	s := openAt(t, url)
	_, err = s.Migrate(ctx)
	require.NoError(t, err)
	w := alive(t, s)
	tr := startBatch(t, s, w, "wf", 1)[0]
	_, err = s.CommitTx(ctx, w, tr.Guard, time.Minute, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
		var level, path string
		require.NoError(t, tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&level))
		require.Equal(t, "read committed", level)
		require.NoError(t, tx.QueryRow(ctx, "SHOW search_path").Scan(&path))
		require.Equal(t, `""`, path, "the user's own setting stays")
		return tr, nil
	})
	require.NoError(t, err)
}
