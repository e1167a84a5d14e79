package pawl_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The commands of docs/quickstart.md, as they stand there, against a worker
// that runs beside them.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/quickstart.md")
	require.NoError(t, err)
	dir := t.TempDir()
	exe := filepath.Join(dir, "workerd")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "./cmd/workerd").CombinedOutput()
	require.NoError(t, err, "%s", out)
	runWorker(t, exe, dir)

	said := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "./workerd workflow") {
			said[line] += shell(t, dir, line)
		}
	}
	require.GreaterOrEqual(t, len(said), 5)
	require.Contains(t, said["./workerd workflow show order-1"], "COMPLETED")
	require.Contains(t, said["./workerd workflow show order-1"], "order-1/charge-card/1")
	require.Eventually(t, func() bool {
		return strings.Contains(shell(t, dir, "./workerd workflow show order-2"), "COMPLETED")
	}, 20*time.Second, 50*time.Millisecond)
}

// shell runs one line in dir and returns what it printed.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PAWL_DATABASE_URL=sqlite:quickstart.db")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}

// runWorker starts a worker and lets it drain at the end of the test.
func runWorker(t *testing.T, exe, dir string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(exe, "run")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PAWL_DATABASE_URL=sqlite:quickstart.db")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-ended:
			require.NoError(t, err, "%s", log.String())
		case <-time.After(40 * time.Second):
			cmd.Process.Kill() //nolint:errcheck // it failed anyway
			t.Errorf("the worker did not drain:\n%s", log.String())
		}
	})
}
