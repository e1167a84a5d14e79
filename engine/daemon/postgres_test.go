package daemon_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// On PostgreSQL the schema is made by a command of its own, and everything else
// names it until then.
func TestPostgresFromMigrateToEnd(t *testing.T) {
	t.Parallel()
	text := pgtest.URL(t)
	p := programOn(t, text)
	for _, args := range [][]string{{"run"}, {"workflow", "list"}, {"worker", "list"}, {"workflow", "start", "parcel", "p-1", "--input", "{}"}} {
		require.Equal(t, "workerd: schema is missing; create it: workerd migrate up", p.fails(1, args...))
	}
	require.Regexp(t, `(?m)^1\s+\w+\s+pending$`, p.must("migrate", "status"))
	require.Regexp(t, `^applied 1 \w+\n`, p.must("migrate", "up"))
	require.Equal(t, "nothing to do: the schema is up to date\n", p.must("migrate", "up"))
	require.Regexp(t, `(?m)^1\s+\w+\s+\d+ s ago$`, p.must("migrate", "status"))

	block := p.worker().String()
	u, err := url.Parse(text)
	require.NoError(t, err)
	password, _ := u.User.Password()
	require.NotEmpty(t, password)
	require.NotContains(t, block, password)
	require.Contains(t, block, u.Host)
	require.Regexp(t, `(?m)^schema       pawl$`, block)

	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`)
	p.eventually("waiting for signal nod since", "workflow", "why", "p-1")
	p.must("workflow", "signal", "p-1", "nod", "--input", "true")
	require.Contains(t, p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`, "--wait"), "COMPLETED")
	require.Regexp(t, `(?m)^send  1      DONE `, p.must("workflow", "show", "p-1"))
	require.Len(t, p.mustJSON("workflow", "list")["workflows"], 1)
}

// Two schemas of one database know nothing of each other.
func TestPostgresSchemas(t *testing.T) {
	t.Parallel()
	p := programOn(t, pgtest.URL(t))
	p.must("migrate", "up", "--schema", "shop")
	require.Contains(t, p.fails(1, "workflow", "list"), "schema is missing")
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`, "--schema", "shop")
	require.Contains(t, p.must("workflow", "list", "--schema", "shop"), "p-1")
	require.Contains(t, p.fails(2, "workflow", "list", "--schema", "Shop"), "bad schema name")
	require.Equal(t, "workerd: schema is missing; create it: workerd migrate up --schema other", p.fails(1, "workflow", "list", "--schema", "other"))
}

// A server that is not there is one line, without the password.
func TestPostgresOutOfReach(t *testing.T) {
	t.Parallel()
	p := programOn(t, "postgres://ann:hunter2@127.0.0.1:1/orders")
	text := p.fails(1, "workflow", "list", "--timeout", "20s")
	require.NotContains(t, text, "hunter2")
	require.Contains(t, text, "is the database reachable?")
	require.Contains(t, text, "127.0.0.1")
	require.False(t, strings.Contains(text, "\n"))
}
