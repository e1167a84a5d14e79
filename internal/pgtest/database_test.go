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
			require.Equal(t, "on", queryText(t, connect(t, URL(t)), "SHOW fsync"))
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

func BenchmarkURL(b *testing.B) {
	URL(b)
	for b.Loop() {
		URL(b)
	}
}
