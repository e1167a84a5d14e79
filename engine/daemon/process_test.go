package daemon_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is the program in a process of its own.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err *buffer
	ended    chan struct{}
}

// spawn starts the program; it is killed when the test ends, if it still runs.
func spawn(t *testing.T, url string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], args...), out: new(buffer), err: new(buffer), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envProgram+"=1", "PAWL_DATABASE_URL="+url)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.err
	require.NoError(t, p.cmd.Start())
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	return p
}

func (p *process) signal(sig os.Signal) { require.NoError(p.t, p.cmd.Process.Signal(sig)) }

// code waits for the end and returns the exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.t.Fatalf("still running: %s%s", p.out, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) says(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.out.String()+p.err.String(), text) }, 60*time.Second, 5*time.Millisecond, "%s", text)
}

// cli runs a command in a process of its own, to its end.
func cli(t *testing.T, url string, args ...string) string {
	t.Helper()
	p := spawn(t, url, args...)
	require.Zero(t, p.code(), p.err.String())
	return p.out.String()
}

// A worker in one process finishes what a client in another has started, drains
// at SIGTERM and exits 0.
func TestWorkerProcess(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	w := spawn(t, url, "run", "--poll", "50ms", "--log-format", "json")
	w.says("worker joined")
	out := cli(t, url, "workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`, "--wait")
	require.Contains(t, out, "p-1 COMPLETED in state delivered")
	require.Contains(t, cli(t, url, "worker", "list"), "alive")

	w.signal(syscall.SIGTERM)
	require.Zero(t, w.code(), w.err.String())
	for line := range bytes.Lines([]byte(w.err.String())) {
		require.True(t, bytes.HasPrefix(line, []byte(`{"time":`)), "every line of the log is JSON: %s", line)
	}
	require.Contains(t, cli(t, url, "worker", "list"), "dead")
}

// While a step runs, the drain says once a second what it waits for; once the
// step has ended, so has the worker, and the step's result is kept.
func TestDrainWaitsForRunningSteps(t *testing.T) {
	t.Parallel()
	w, url, stall := stalled(t)
	w.signal(os.Interrupt)
	w.says("drain waits for running steps")
	require.NoError(t, os.Remove(stall))
	require.Zero(t, w.code(), w.err.String())
	require.Regexp(t, `(?m)^pack  1      DONE `, cli(t, url, "workflow", "steps", "p-1"))
	require.Contains(t, cli(t, url, "workflow", "why", "p-1"), "no worker is alive")
}

// A second signal leaves at once, whatever is running, with the signal's code.
func TestSecondSignalLeavesAtOnce(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w, _, stall := stalled(t)
			w.signal(syscall.SIGTERM)
			w.says("draining")
			w.signal(sig)
			asked := time.Now()
			require.Equal(t, want, w.code(), w.err.String())
			require.Less(t, time.Since(asked), 15*time.Second, "the drain timeout is 25 s")
			require.Contains(t, w.err.String(), "left at once")
			require.FileExists(t, stall)
		})
	}
}

// stalled returns a worker in the middle of a step that ends when the file is
// removed.
func stalled(t *testing.T) (w *process, url, stall string) {
	t.Helper()
	dir := t.TempDir()
	url, stall = "sqlite:"+filepath.Join(dir, "test.db"), filepath.Join(dir, "stall")
	w = spawn(t, url, "run", "--poll", "50ms")
	w.says("worker joined")
	cli(t, url, "workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","stall":"`+stall+`"}`)
	require.Eventually(t, func() bool { _, err := os.Stat(stall); return err == nil }, 60*time.Second, 5*time.Millisecond)
	require.Contains(t, cli(t, url, "workflow", "why", "p-1"), "running step pack, attempt 1, on worker ")
	return w, url, stall
}

// The block is there within the first second.
func TestBlockWithinASecond(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	cli(t, url, "migrate", "up")
	began := time.Now()
	w := spawn(t, url, "run")
	w.says("definitions  parcel v4")
	t.Logf("after %v", time.Since(began))
	require.Less(t, time.Since(began), 10*time.Second, "it is a second on an idle machine")
}

// A killed worker's step is told from one that runs, once its lease is over.
func TestWhyOfAKilledWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, stall := "sqlite:"+filepath.Join(dir, "test.db"), filepath.Join(dir, "stall")
	w := spawn(t, url, "run", "--lease", "300ms", "--poll", "50ms")
	w.says("worker joined")
	cli(t, url, "workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","stall":"`+stall+`"}`)
	require.Eventually(t, func() bool { _, err := os.Stat(stall); return err == nil }, 60*time.Second, 5*time.Millisecond)
	w.signal(syscall.SIGKILL)
	require.Equal(t, -1, w.code())
	p := programOn(t, url)
	p.eventually("its worker is dead; no live worker knows parcel v4: no worker is alive", "workflow", "why", "p-1")
	require.Contains(t, p.must("worker", "list"), "expired")
}
