package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/internal/pgtest"
)

// envProgram makes the test binary the program that it tests.
const envProgram = "PAWL_DAEMON_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		daemon.Main(register, daemon.WithName("workerd"))
	}
	pgtest.Main(m)
}

// program runs commands on one database, in this process.
type program struct {
	t   *testing.T
	env map[string]string
}

// newProgram returns a program on a SQLite file that is not there yet.
func newProgram(t *testing.T) *program {
	t.Helper()
	return programOn(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
}

func programOn(t *testing.T, url string) *program {
	return &program{t, map[string]string{"PAWL_DATABASE_URL": url}}
}

// result is what a command has left.
type result struct {
	code     int
	out, err string
}

func (p *program) run(args ...string) result { return p.runWith("", args...) }

func (p *program) runWith(stdin string, args ...string) result {
	var out, errs buffer
	code := daemon.Run(p.t.Context(), args, strings.NewReader(stdin), &out, &errs, register, daemon.WithName("workerd"), daemon.WithEnv(p.env))
	return result{code, out.String(), errs.String()}
}

// must runs a command that has to succeed and say nothing on the standard
// error, and returns its output.
func (p *program) must(args ...string) string {
	p.t.Helper()
	r := p.run(args...)
	require.Zero(p.t, r.code, "%v: %s", args, r.err)
	require.Empty(p.t, r.err, "%v", args)
	return r.out
}

// mustJSON is must for a command with -o json.
func (p *program) mustJSON(args ...string) map[string]any {
	p.t.Helper()
	var v map[string]any
	text := p.must(append(args, "-o", "json")...)
	require.NoError(p.t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// fails runs a command that has to fail: one line on the standard error.
func (p *program) fails(code int, args ...string) string {
	p.t.Helper()
	r := p.run(args...)
	require.Equal(p.t, code, r.code, "%v: %s%s", args, r.out, r.err)
	require.Equal(p.t, 1, strings.Count(r.err, "\n"), "one line: %q", r.err)
	require.True(p.t, strings.HasPrefix(r.err, "workerd: "), r.err)
	return strings.TrimSpace(r.err)
}

// worker runs "run" in this process until the test ends, and returns its
// output. It must drain in good order.
func (p *program) worker(args ...string) (out *buffer) {
	p.t.Helper()
	ctx, drain := context.WithCancel(context.Background())
	out, errs, ended := new(buffer), new(buffer), make(chan int, 1)
	go func() {
		args := append([]string{"run", "--poll", "20ms"}, args...)
		ended <- daemon.Run(ctx, args, nil, out, errs, register, daemon.WithName("workerd"), daemon.WithEnv(p.env))
	}()
	p.t.Cleanup(func() {
		drain()
		require.Zero(p.t, <-ended, errs.String())
	})
	require.Eventually(p.t, func() bool { return strings.Contains(errs.String(), "worker joined") }, 60*time.Second, 5*time.Millisecond)
	return out
}

// eventually waits until a command's output holds a text.
func (p *program) eventually(text string, args ...string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.run(args...).out, text) }, 60*time.Second, 20*time.Millisecond, "%v", args)
}

// buffer is a bytes.Buffer that several goroutines may use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
