package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// The environment of a process that is not the test itself: what it is to do,
// and on which database.
const (
	roleVariable = "PAWL_TEST_ROLE"
	urlVariable  = "PAWL_TEST_ROLE_URL"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "migrator":
		fmt.Println(migrator(os.Getenv(urlVariable)))
	case "pauser":
		fmt.Println(pauser(os.Getenv(urlVariable)))
	default:
		pgtest.Main(m)
	}
}

// process is another process of this test binary. It says what it does in
// lines, and goes on when it is told to.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts a process in a role and waits until it is ready.
func startProcess(t *testing.T, role, url string) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, urlVariable+"="+url)
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

// goOn tells the process to go on.
func (p *process) goOn(t *testing.T) {
	_, err := io.WriteString(p.in, "go\n")
	require.NoError(t, err)
}

// standReady is called by a process that then waits to be told to go on.
func standReady() {
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// pauser is a process that runs a body and stands still in it.
func pauser(url string) string {
	ctx := context.Background()
	s, err := Open(ctx, url)
	if err != nil {
		return "failed " + err.Error()
	}
	g := store.Guard{ID: "wf-00000", Revision: 1}
	_, err = s.CommitTx(ctx, store.WorkerID{0: 1, 15: 9}, g, 500*time.Millisecond,
		func(context.Context, store.Tx) (store.Transition, error) {
			standReady()
			return store.Transition{Place: store.Place{Status: store.Failed}}, nil
		})
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnsure) {
		return "over its limit"
	}
	return fmt.Sprint("failed ", err)
}

// TestServerEndsPausedProcess stops a process in the middle of a body. The
// server ends its transaction, so another goes on with the workflow; and when
// the process goes on, it has written nothing.
func TestServerEndsPausedProcess(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := pgtest.URL(t)
	s := openAt(t, url)
	_, err := s.Migrate(ctx)
	require.NoError(t, err)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 1)
	p := startProcess(t, "pauser", url)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		verdicts, err := s.Commit(ctx, w, ts)
		return err == nil && verdicts[0] == store.Applied
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	p.goOn(t)
	require.Equal(t, "over its limit", p.line())
	found, err := s.Get(ctx, ts[0].ID)
	require.NoError(t, err)
	require.Equal(t, store.Pending, found.Status)
}
