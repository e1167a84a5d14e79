package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// envProgram makes the test binary the program.
const envProgram = "WORKERD_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
	}
	pgtest.Main(m)
}

// The commands of the package's documentation, on a database that is new.
func TestOrderFromStartToEnd(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "orders.db") },
		"postgres": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			text, err := workerd(t, url, "migrate", "up").CombinedOutput()
			require.NoError(t, err, string(text))

			worker := workerd(t, url, "run", "--poll", "50ms")
			var log strings.Builder
			worker.Stdout, worker.Stderr = &log, &log
			require.NoError(t, worker.Start())
			text, err = workerd(t, url, "workflow", "start", "order", "order-1", "--wait", "--timeout", "30s", "--input",
				`{"id":"order-1","sku":"lamp","quantity":1,"cents":4990,"card":"4242","address":"12 Harbour Road"}`).CombinedOutput()
			require.NoError(t, err, string(text))
			require.Regexp(t, `^order-1 COMPLETED in state delivered: `, string(text))

			text, err = workerd(t, url, "workflow", "start", "order", "order-2", "--wait", "--timeout", "30s", "--input",
				`{"id":"order-2","sku":"lamp","quantity":1,"cents":4990,"card":"4242","address":"nowhere"}`).CombinedOutput()
			require.Error(t, err)
			require.Regexp(t, `^order-2 COMPENSATED in state cancelled: `, string(text))

			require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
			require.NoError(t, worker.Wait(), log.String())
			require.Regexp(t, `(?m)^definitions +invoicing v1, order v1, pawl-bulk v1, stocking v1$`, log.String())
		})
	}
}

// workerd is a command in a process of its own.
func workerd(t *testing.T, url string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), envProgram+"=1", "BANK_URL=", "PAWL_DATABASE_URL="+url)
	return cmd
}

// The file that people are to copy stays short.
func TestMainIsShort(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(source), "\n"), 40)
	require.Regexp(t, `daemon\.Main\(`, string(source))
}
