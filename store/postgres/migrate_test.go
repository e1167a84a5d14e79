package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// migrator is a process that migrates once it is told to, and says how many
// migrations it applied.
func migrator(url string) string {
	ctx := context.Background()
	s, err := Open(ctx, url, WithPool(1))
	if err != nil {
		return "failed " + err.Error()
	}
	standReady()
	applied, err := s.Migrate(ctx)
	if err == nil {
		err = s.Check(ctx)
	}
	if err != nil {
		return "failed " + err.Error()
	}
	return fmt.Sprint("applied ", len(applied))
}

// TestProcessesMigrateAtOnce lets ten processes migrate an empty database from
// a barrier, and kills one of them meanwhile: one applies, the others wait for
// it and find nothing to do, and all of them can start.
func TestProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	const processes, rounds = 10, 4
	for round := range rounds {
		url := pgtest.URL(t)
		all := make([]*process, processes)
		for i := range all {
			all[i] = startProcess(t, "migrator", url)
		}
		victim := all[(round*7)%processes]
		for _, p := range all {
			p.goOn(t)
			if p == victim {
				require.NoError(t, p.cmd.Process.Kill())
			}
		}
		appliers := 0
		for _, p := range all {
			said := p.line()
			if p == victim && said == "" {
				continue
			}
			require.Contains(t, []string{"applied 0", fmt.Sprint("applied ", len(carried))}, said)
			if said != "applied 0" {
				appliers++
			}
		}
		// The killed one may have applied without being able to tell.
		require.LessOrEqual(t, appliers, 1)
		s := openAt(t, url)
		require.NoError(t, s.Check(t.Context()))
		again, err := s.Migrate(t.Context())
		require.NoError(t, err)
		require.Empty(t, again)
	}
}

// TestMigrationIsAllOrNothing shows that a migration that fails leaves an
// empty database as it was.
func TestMigrationIsAllOrNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openAt(t, pgtest.URL(t))
	conn := direct(t, s)
	_, err := conn.Exec(ctx, `
		CREATE FUNCTION public.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = 'pawl.worker') THEN
				RAISE EXCEPTION 'no workers here';
			END IF;
		END $$;
		CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION public.refuse()`)
	require.NoError(t, err)
	_, err = s.Migrate(ctx)
	require.ErrorContains(t, err, "migration 1 (first)")
	require.ErrorContains(t, err, "no workers here")
	var schemas int
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pawl'").Scan(&schemas))
	require.Zero(t, schemas)
	_, err = conn.Exec(ctx, "DROP EVENT TRIGGER refuse")
	require.NoError(t, err)
	_, err = s.Migrate(ctx)
	require.NoError(t, err)
}
