package pgtest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A stopped server refuses, a started one has the same URL and what was
// committed, in both modes.
func TestServerStopsAndStarts(t *testing.T) {
	t.Parallel()
	server := Start(t, Setting{"max_connections", "17"})
	address := server.URL()
	conn := connect(t, address)
	require.Equal(t, "on", queryText(t, conn, "SHOW fsync"))
	require.Equal(t, "17", queryText(t, conn, "SHOW max_connections"), "a test's setting wins")
	require.GreaterOrEqual(t, server.Version(), MinVersion)
	_, err := conn.Exec(t.Context(), "CREATE TABLE mark (mode text)")
	require.NoError(t, err)

	for _, mode := range []StopMode{Fast, Immediate} {
		conn := connect(t, address)
		_, err := conn.Exec(t.Context(), "INSERT INTO mark VALUES ($1)", fmt.Sprint(mode))
		require.NoError(t, err)

		require.NoError(t, server.Stop(mode))
		require.NoError(t, server.Stop(mode), "stopping twice is fine")
		_, err = pgx.Connect(t.Context(), address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Error(t, conn.Ping(t.Context()), "the session ended with the server")

		require.NoError(t, server.Start())
		require.NoError(t, server.Start(), "starting twice is fine")
		require.Equal(t, address, server.URL())
	}
	require.NoError(t, server.Restart(Fast))
	require.Equal(t, "2", queryText(t, connect(t, address), "SELECT count(*)::text FROM mark"))
}

// Immediate leaves no checkpoint behind, so the next start must recover; Fast
// must not.
func TestStopModes(t *testing.T) {
	t.Parallel()
	server := Start(t)
	require.NoError(t, server.Restart(Fast))
	require.NotContains(t, server.Log(), "automatic recovery in progress")
	require.NoError(t, server.Restart(Immediate))
	require.Contains(t, server.Log(), "automatic recovery in progress")
}

// A server whose process was killed from outside can be started again.
func TestServerStartsAfterItsProcessDied(t *testing.T) {
	t.Parallel()
	server := Start(t)
	require.NoError(t, server.proc.cmd.Process.Signal(syscall.SIGQUIT))
	<-server.proc.done
	require.NoError(t, server.Start())
	require.Equal(t, "1", queryText(t, connect(t, server.URL()), "SELECT '1'"))
}

// A server that can't start says why, from its log, and leaves nothing behind.
func TestStartFailureShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := Launch(Setting{"max_connections", "many"})
	require.ErrorContains(t, err, `invalid value for parameter "max_connections"`)
}

// A password is asked for: another user of the machine can't get in.
func TestServerWantsItsPassword(t *testing.T) {
	t.Parallel()
	server := Start(t)
	_, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), server.password, "wrong", 1))
	require.ErrorContains(t, err, "password authentication failed")
}

func TestCloseRemovesEverything(t *testing.T) {
	t.Parallel()
	server, err := Launch()
	require.NoError(t, err)
	pid := server.proc.cmd.Process.Pid
	require.NoError(t, server.Close())
	require.NoDirExists(t, server.base)
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

// The port of a stopped server may be taken for a while: it waits for its own
// port, since the programs under test know the URL.
func TestStartWaitsForItsPort(t *testing.T) {
	t.Parallel()
	server := Start(t)
	require.NoError(t, server.Stop(Fast))
	other := Start(t)
	require.NoError(t, other.Stop(Fast))
	other.port = server.port
	require.NoError(t, other.Start())

	started := make(chan error, 1)
	go func() { started <- server.Start() }()
	select {
	case err := <-started:
		t.Fatalf("started on a port that is taken: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	require.NoError(t, other.Stop(Fast))
	require.NoError(t, <-started)
}

func TestProcessThatIgnoresTheSignalIsKilled(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "trap '' INT; echo ready; while :; do sleep 1; done")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	proc := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		proc.err = cmd.Wait()
		close(proc.done)
	}()
	require.ErrorContains(t, proc.stop(Fast, 50*time.Millisecond), "was killed")
	require.True(t, proc.ended())
}

// holdVariable makes this test binary start a server, say where it is, and
// wait to be killed.
const holdVariable = "PAWL_PGTEST_HOLD"

func holdIfAsked() {
	switch os.Getenv(holdVariable) {
	case "":
		return
	case "before":
		holdBeforeTheServer()
	}
	server, err := Launch()
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(server.base, server.proc.cmd.Process.Pid)
	select {}
}

// holdBeforeTheServer only makes the server's folder, with a guard, and waits.
func holdBeforeTheServer() {
	base, err := os.MkdirTemp("", "pawl-pg-")
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	if _, err := newGuard(base, filepath.Join(base, "data")); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(base, os.Getpid())
	select {}
}

// startHolder runs this test binary as something that waits to be killed, and
// returns it with what it says about itself.
func startHolder(t *testing.T, how string) (cmd *exec.Cmd, base string, pid int) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(program)
	cmd.Env = append(os.Environ(), holdVariable+"="+how)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	base, number, found := strings.Cut(strings.TrimSpace(line), " ")
	require.True(t, found, line)
	pid, err = strconv.Atoi(number)
	require.NoError(t, err)
	return cmd, base, pid
}

// requireRemoved waits until a folder is gone.
func requireRemoved(t *testing.T, base string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(base)
		return errors.Is(err, os.ErrNotExist)
	}, time.Minute, 20*time.Millisecond)
}

// What an initdb goes on to write after its test process was killed is removed too.
func TestFolderThatComesBackIsRemoved(t *testing.T) {
	t.Parallel()
	cmd, base, _ := startHolder(t, "before")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireRemoved(t, base)
	require.NoError(t, os.MkdirAll(filepath.Join(base, "data"), 0o700))
	requireRemoved(t, base)
}

// Nothing is left of a server when the process that started it is killed.
func TestServerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	cmd, base, pid := startHolder(t, "after")
	require.DirExists(t, filepath.Join(base, "data"))
	require.NoError(t, syscall.Kill(pid, 0), "the server runs")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireRemoved(t, base)
	require.False(t, runs(pid), "the server still runs")
}

// runs reports whether a process runs. One that has ended, but whose end
// nobody has taken note of, does not.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
