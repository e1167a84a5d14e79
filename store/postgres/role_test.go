package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// grants are the rights of the role that runs workflows, as doc.go and
// schema.sql list them.
const grants = `
GRANT USAGE ON SCHEMA pawl TO runner;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO runner;
`

// TestRunningRole shows that the role that runs workflows needs no right
// beyond those that the package's documentation lists.
func TestRunningRole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := pgtest.Start(t)
	owner := openAt(t, server.URL())
	_, err := owner.Migrate(ctx)
	require.NoError(t, err)
	conn := direct(t, owner)
	_, err = conn.Exec(ctx, "CREATE ROLE runner LOGIN PASSWORD 'runner-secret'; REVOKE CREATE ON SCHEMA public FROM PUBLIC;"+
		grants)
	require.NoError(t, err)

	config := conn.Config()
	url := fmt.Sprintf("postgres://runner:runner-secret@%s:%d/%s", config.Host, config.Port, config.Database)
	s := openAt(t, url)
	require.NoError(t, s.Check(ctx))
	applied, err := s.Migrate(ctx)
	require.NoError(t, err, "there is nothing to migrate")
	require.Empty(t, applied)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 2)
	_, err = s.Commit(ctx, w, ts)
	require.NoError(t, err)
	hotPath(ctx, t, s, w)
	_, err = direct(t, s).Exec(ctx, "CREATE TABLE pawl.mine (i int)")
	require.ErrorContains(t, err, "permission denied")
}

// hotPath calls whatever a worker and its clients call.
func hotPath(ctx context.Context, t *testing.T, s *Store, w store.WorkerID) {
	order := store.Def{Name: "order", Version: 1}
	_, err := s.Send(ctx, []store.Message{{WorkflowID: "wf-00000", ID: "m", Kind: store.MessageSignal}})
	require.NoError(t, err)
	_, err = s.Claim(ctx, w, []store.Def{order}, 10)
	require.NoError(t, err)
	_, err = s.CommitTx(ctx, w, store.Guard{ID: "wf-00000", Revision: 2}, time.Minute,
		func(context.Context, store.Tx) (store.Transition, error) {
			return store.Transition{Place: store.Place{Status: store.Completed}}, nil
		})
	require.NoError(t, err)
	_, err = s.Mail(ctx, w)
	require.NoError(t, err)
	_, err = s.Renew(ctx, w, time.Hour)
	require.NoError(t, err)
	_, err = s.Bury(ctx)
	require.NoError(t, err)
	_, err = s.Takeover(ctx, time.Second, 10)
	require.NoError(t, err)
	_, err = s.ReadBack(ctx, []string{"wf-00000"})
	require.NoError(t, err)
	require.NoError(t, s.Release(ctx, w, []store.Released{{Guard: store.Guard{ID: "wf-00001", Revision: 2}}}))
	require.NoError(t, s.PutDefinition(ctx, store.Definition{Def: order, Fingerprint: "f"}))
	require.NoError(t, s.Notify(ctx, store.TopicReady))
	_, err = s.Leave(ctx, w)
	require.NoError(t, err)
}
