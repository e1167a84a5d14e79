package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

func TestMissingSchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t, WithoutMigrations())
	missing := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrSchemaMissing)
		require.ErrorContains(t, err, "workerd migrate up")
	}
	missing(st.Check(ctx))
	_, err := st.Get(ctx, "a")
	missing(err)
	_, err = st.Start(ctx, []store.New{{ID: "a"}})
	missing(err)
	_, err = st.Claim(ctx, store.WorkerID{1}, []store.Def{{Name: "a", Version: 1}}, 1)
	missing(err)

	ms, err := st.Migrations(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, ms)
	require.Zero(t, ms[0].AppliedAt)
	applied, err := st.Migrate(ctx)
	require.NoError(t, err)
	require.Len(t, applied, len(ms))
	require.False(t, applied[0].AppliedAt.IsZero())
	require.NoError(t, st.Check(ctx))
	_, err = st.Start(ctx, []store.New{{ID: "a", Place: store.Place{Status: store.Pending}}})
	require.NoError(t, err)
}

// TestMissingTableOfTheUsers: it is not ours, and so no missing schema.
func TestMissingTableOfTheUsers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t)
	tx, err := st.DB().BeginTx(ctx, nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // it wrote nothing
	_, err = Tx(tx).Exec(ctx, "DELETE FROM orders")
	require.ErrorContains(t, err, "orders")
	require.NotErrorIs(t, err, store.ErrSchemaMissing)
}

// TestNewerSchema: a schema that has moved on but still fits is used; one that
// asks for a newer program is left alone.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "test.db")
	st, err := Open(ctx, path)
	require.NoError(t, err)
	_, err = st.DB().Exec("INSERT INTO schema_migrations VALUES (99, 'later', 0)")
	require.NoError(t, err)
	require.NoError(t, st.Check(ctx), "an additive migration leaves older programs running")
	applied, err := st.Migrate(ctx)
	require.NoError(t, err)
	require.Empty(t, applied)

	_, err = st.DB().Exec("UPDATE schema_info SET min_binary = 99")
	require.NoError(t, err)
	ahead := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrSchemaAhead)
		require.ErrorContains(t, err, "run a newer program")
	}
	ahead(st.Check(ctx))
	_, err = st.Migrate(ctx)
	ahead(err)
	require.NoError(t, st.Close())
	_, err = Open(ctx, path)
	ahead(err)
}

func TestOlderSchema(t *testing.T) {
	t.Parallel()
	older := schema{newest: generation - 1, minBinary: 1}
	if older.newest == 0 {
		older.newest = -1 // there is no older one yet
	}
	err := older.check()
	require.ErrorIs(t, err, store.ErrSchemaBehind)
	require.ErrorContains(t, err, "workerd migrate up")
	require.NoError(t, schema{newest: generation, minBinary: generation}.check())
}

// TestFailedMigration: a migration that fails leaves nothing of itself.
func TestFailedMigration(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t, WithoutMigrations())
	_, err := st.DB().Exec("CREATE TABLE worker (mine TEXT)")
	require.NoError(t, err)
	_, err = st.Migrate(ctx)
	require.ErrorContains(t, err, "worker")
	require.ErrorIs(t, st.Check(ctx), store.ErrSchemaMissing)
	var tables int
	require.NoError(t, st.DB().QueryRow("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").Scan(&tables))
	require.Equal(t, 1, tables)
}

// TestPlans: each hot statement finds its rows by an index, whatever the size
// of the tables, and the sweep's reads do too.
func TestPlans(t *testing.T) {
	t.Parallel()
	st := openInside(t)
	for query, index := range map[string]string{
		updateWorkflow:     "sqlite_autoindex_workflow_1 (id=?)",
		holdsGuard:         "sqlite_autoindex_workflow_1 (id=?)",
		claimWorkflow:      "sqlite_autoindex_workflow_1 (id=?)",
		releaseWorkflow:    "sqlite_autoindex_workflow_1 (id=?)",
		takeOver:           "sqlite_autoindex_workflow_1 (id=?)",
		selectTarget:       "sqlite_autoindex_inbox_1 (workflow_id=? AND message_id=?)",
		consumeMessage:     "sqlite_autoindex_inbox_1 (workflow_id=? AND message_id=?)",
		seeMessage:         "sqlite_autoindex_inbox_1 (workflow_id=? AND message_id=?)",
		unconsumedMessages: "sqlite_autoindex_inbox_1 (workflow_id=?)",
		dueWorkflows:       "workflow_ready (definition=? AND version=? AND wake_at>? AND wake_at<?)",
		mailedWorkflows:    "inbox_fresh",
		freshMessages:      "inbox_fresh",
		forgetMail:         "inbox_fresh",
		ownedBy:            "workflow_owner (owner=?)",
		giveBackAll:        "workflow_owner (owner=?)",
		orphans:            "workflow_owner",
		selectSteps:        "sqlite_autoindex_step_1 (workflow_id>? AND workflow_id<?)",
		renewWorker:        "sqlite_autoindex_worker_1 (id=?)",
		listWorkflows:      "sqlite_autoindex_workflow_1 (id>?)",
	} {
		require.Contains(t, plan(t, st, query), index, query)
	}
	require.NotContains(t, plan(t, st, dueWorkflows), "TEMP B-TREE", "the index gives the order")
}

func plan(t *testing.T, st *Store, query string) (text string) {
	t.Helper()
	rows, err := st.DB().Query("EXPLAIN QUERY PLAN " + query)
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		text += detail + "\n"
	}
	require.NoError(t, rows.Err())
	return text
}

// TestPause: the pause doubles from the second crash on, up to a minute.
func TestPause(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]time.Duration{
		0: 0, 1: 0, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second, 8: time.Minute, 1000: time.Minute,
	} {
		require.Equal(t, want, pause(time.Second, n), "%d crashes", n)
	}
	require.Zero(t, pause(0, 5))
	require.Equal(t, time.Minute, pause(time.Hour, 2))
}
