package pgtest

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	holdIfAsked()
	Main(m)
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func queryText(t *testing.T, conn *pgx.Conn, query string, args ...any) string {
	t.Helper()
	var text string
	require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&text))
	return text
}

// Two databases of one test are two databases: what is in one isn't in the other.
func TestURLIsANewDatabaseEachTime(t *testing.T) {
	t.Parallel()
	one, two := connect(t, URL(t)), connect(t, URL(t))

	_, err := one.Exec(t.Context(), "CREATE TABLE here (id int)")
	require.NoError(t, err)

	const tables = "SELECT count(*)::text FROM pg_tables WHERE tablename = 'here'"
	require.Equal(t, "1", queryText(t, one, tables))
	require.Equal(t, "0", queryText(t, two, tables))
	require.Equal(t, "UTF8", queryText(t, one, "SHOW server_encoding"))
}

// The database goes with its test, although a connection to it is still open.
func TestURLIsDroppedWithItsTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("owner", func(t *testing.T) {
		address := URL(t)
		conn, err := pgx.Connect(t.Context(), address)
		require.NoError(t, err)
		name = queryText(t, conn, "SELECT current_database()")
	})
	require.NotEmpty(t, name)
	require.Equal(t, "0", queryText(t, connect(t, URL(t)),
		"SELECT count(*)::text FROM pg_database WHERE datname = $1", name))
}

// Many tests ask for a database at the same moment.
func TestURLInParallel(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("database", func(t *testing.T) {
			t.Parallel()
			require.Equal(t, "on", queryText(t, connect(t, URL(t)), "SHOW synchronous_commit"))
		})
	}
}

func TestParseURLNeverRepeatsThePassword(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"postgres://user:s3cret@[::1/x",
		"mysql://user:s3cret@localhost/x",
		"host=localhost password=s3cret",
		"postgres://user:s3cret@localhost:port/x",
	} {
		_, err := parseURL(bad)
		require.ErrorContains(t, err, EnvURL, bad)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestWithDatabaseKeepsTheRest(t *testing.T) {
	t.Parallel()
	server, err := url.Parse("postgres://u:p%2Fq@host:1/old?sslmode=disable")
	require.NoError(t, err)
	require.Equal(t, "postgres://u:p%2Fq@host:1/new?sslmode=disable", withDatabase(server, "new"))
}

func TestDatabaseName(t *testing.T) {
	t.Parallel()
	name := databaseName("TestX/größe " + strings.Repeat("y", 100))
	require.Regexp(t, `^pawl_testx_gr__e_y+_[a-z0-9]{16}$`, name)
	require.LessOrEqual(t, len(name), 63, "PostgreSQL would cut it")
	require.NotEqual(t, name, databaseName("TestX/größe "+strings.Repeat("y", 100)))
}

// shows lists all that a database holds and a new one doesn't, or the other way
// round: schemas with their owners and rights, relations, functions and settings.
const shows = `
	SELECT string_agg(line, E'\n' ORDER BY line)
	FROM (
		SELECT format('schema %s %s %s', nspname, nspowner::regrole, nspacl) AS line
		FROM   pg_namespace
		WHERE  nspname NOT LIKE 'pg\_t%'
		UNION ALL
		SELECT format('%s %s', relnamespace::regnamespace, relname)
		FROM   pg_class
		WHERE  relnamespace <> 'pg_toast'::regnamespace
		UNION ALL
		SELECT format('function %s', oid::regprocedure)
		FROM   pg_proc
		UNION ALL
		SELECT format('type %s', oid::regtype)
		FROM   pg_type
		WHERE  typnamespace <> 'pg_toast'::regnamespace
	) lines`

// What a test puts into schemas, and does to them, is cleared away.
func TestWipedDatabaseIsAsNew(t *testing.T) {
	t.Parallel()
	conn := connect(t, URL(t))
	fresh := queryText(t, conn, shows)
	_, err := conn.Exec(t.Context(), `
		CREATE SCHEMA "odd ""name";
		CREATE TABLE "odd ""name".a (id bigserial PRIMARY KEY);
		CREATE TABLE b (a bigint REFERENCES "odd ""name".a);
		CREATE TYPE mood AS ENUM ('fine');
		CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1';
		REVOKE ALL ON SCHEMA public FROM PUBLIC;`)
	require.NoError(t, err)
	require.NotEqual(t, fresh, queryText(t, conn, shows), "the comparison sees what was added")

	asNew, err := wipe(t.Context(), conn)
	require.NoError(t, err)
	require.True(t, asNew)
	require.Equal(t, fresh, queryText(t, conn, shows))
}

// A database that is kept is closed to those who knew it by its old name.
func TestSpareHasAnotherName(t *testing.T) {
	t.Parallel()
	server, _, err := sharedURL()
	require.NoError(t, err)
	name := databaseName(t.Name())
	require.NoError(t, provide(t.Context(), server, name))
	conn := connect(t, withDatabase(server, name))

	now, kept, err := keepSpare(t.Context(), server, name)
	require.NoError(t, err)
	require.True(t, kept)
	require.NotEqual(t, name, now)
	require.Error(t, conn.Ping(t.Context()), "its sessions have ended")
	_, err = pgx.Connect(t.Context(), withDatabase(server, name))
	require.ErrorContains(t, err, "does not exist")
}

// A database that is not kept is dropped even while somebody is connected.
func TestDatabaseInUseIsDropped(t *testing.T) {
	t.Parallel()
	server, _, err := sharedURL()
	require.NoError(t, err)
	name := databaseName(t.Name())
	require.NoError(t, provide(t.Context(), server, name))
	conn := connect(t, withDatabase(server, name))
	require.NoError(t, giveBack(server, name, false))
	require.Error(t, conn.Ping(t.Context()))
	_, err = pgx.Connect(t.Context(), withDatabase(server, name))
	require.ErrorContains(t, err, "does not exist")
}

// What lies outside of schemas is not cleared away: such a database is dropped.
func TestDatabaseThatCannotBeAsNewIsDropped(t *testing.T) {
	t.Parallel()
	for what, statement := range map[string]string{
		"setting":         "ALTER DATABASE %s SET statement_timeout = '1s'",
		"right":           "GRANT CREATE ON DATABASE %s TO PUBLIC",
		"default rights":  "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC",
		"publication":     "CREATE PUBLICATION everything FOR ALL TABLES",
		"large object":    "SELECT lo_create(0)",
		"foreign wrapper": "CREATE FOREIGN DATA WRAPPER nothing",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, _, err := sharedURL()
			require.NoError(t, err)
			name := databaseName(t.Name())
			require.NoError(t, provide(t.Context(), server, name))
			_, err = connect(t, withDatabase(server, name)).
				Exec(t.Context(), strings.Replace(statement, "%s", quote(name), 1))
			require.NoError(t, err)

			now, kept, err := keepSpare(t.Context(), server, name)
			require.NoError(t, err)
			require.False(t, kept)
			require.NoError(t, drop(t.Context(), server, now))
			_, err = pgx.Connect(t.Context(), withDatabase(server, now))
			require.ErrorContains(t, err, "does not exist")
		})
	}
}

// BenchmarkURL is the price of a test's database when the one before it has ended.
func BenchmarkURL(b *testing.B) {
	server, _, err := sharedURL()
	require.NoError(b, err)
	for b.Loop() {
		name := databaseName(b.Name())
		require.NoError(b, provide(b.Context(), server, name))
		require.NoError(b, giveBack(server, name, true))
	}
}

// BenchmarkNewDatabase is the price without reuse.
func BenchmarkNewDatabase(b *testing.B) {
	server, _, err := sharedURL()
	require.NoError(b, err)
	for b.Loop() {
		name := databaseName(b.Name())
		require.NoError(b, execute(b.Context(), server, "CREATE DATABASE "+quote(name)+" TEMPLATE template0"))
		require.NoError(b, giveBack(server, name, false))
	}
}
