package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// migratorURL, when set, makes the test binary a migrator: it says "ready",
// waits for a line, migrates, and says what it applied.
const migratorURL = "PAWL_TEST_MIGRATOR_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(migratorURL); url != "" {
		os.Exit(migrator(url))
	}
	pgtest.Main(m)
}

// migrator is the main program of a migrating process.
func migrator(url string) int {
	ctx := context.Background()
	s, err := Open(ctx, url, WithPool(1))
	if err == nil {
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		applied, failed := s.Migrate(ctx)
		if err = failed; err == nil {
			if err = s.Check(ctx); err == nil {
				fmt.Println("applied", len(applied))
				return 0
			}
		}
	}
	fmt.Println("failed", err)
	return 1
}

// process is a migrating process.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startMigrator starts a process and waits until it stands at the barrier.
func startMigrator(t *testing.T, url string) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), migratorURL+"="+url)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Equal(t, "ready", p.line())
	return p
}

// line reads the next line that the process says; "" at its end.
func (p *process) line() string {
	line, _ := p.out.ReadString('\n')
	return strings.TrimSpace(line)
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
			all[i] = startMigrator(t, url)
		}
		victim := all[(round*7)%processes]
		for _, p := range all {
			_, err := io.WriteString(p.in, "go\n")
			require.NoError(t, err)
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
