package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// roleVar names what a second process, which is this test binary run again, is
// to do with the file named by its argument.
const roleVar = "PAWL_SQLITE_TEST_ROLE"

var roles = map[string]func(ctx context.Context, path string) error{
	"hold":    roleHold,
	"start":   roleStart,
	"migrate": roleMigrate,
	"notify":  roleNotify,
}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(roleVar)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(context.Background(), os.Args[1]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process is a second process on the same file.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func spawn(t *testing.T, role, path string) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() }) //nolint:errcheck // it may be over
	return &process{t, cmd, stdin, bufio.NewScanner(stdout)}
}

// expect waits for a line.
func (p *process) expect(line string) {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "the process ended before it said %q", line)
	require.Equal(p.t, line, p.lines.Text())
}

// say gives the process a sign.
func (p *process) say() {
	_, err := io.WriteString(p.stdin, "\n")
	require.NoError(p.t, err)
}

// sign waits for say.
func sign() error {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// roleHold holds a write transaction for 3 seconds.
func roleHold(ctx context.Context, path string) error {
	st, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	tx, err := st.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS held (id TEXT)"); err != nil {
		return err
	}
	fmt.Println("holding")
	time.Sleep(3 * time.Second)
	if err := tx.Commit(); err != nil {
		return err
	}
	fmt.Println("released")
	return st.Close()
}

// roleStart starts one workflow after the other and says so, until it is
// killed.
func roleStart(ctx context.Context, path string) error {
	st, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		id := strconv.Itoa(i)
		if _, err := st.Start(ctx, []store.New{workflow(id)}); err != nil {
			return err
		}
		fmt.Println(id)
	}
}

// roleMigrate opens the file at a sign.
func roleMigrate(ctx context.Context, path string) error {
	fmt.Println("ready")
	if err := sign(); err != nil {
		return err
	}
	st, err := sqlite.Open(ctx, path, sqlite.WithoutMigrations())
	if err != nil {
		return err
	}
	applied, err := st.Migrate(ctx)
	if err != nil {
		return err
	}
	if err := st.Check(ctx); err != nil {
		return err
	}
	fmt.Println("applied", len(applied))
	return st.Close()
}

// roleNotify writes at a sign.
func roleNotify(ctx context.Context, path string) error {
	st, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for i := 0; sign() == nil; i++ {
		if _, err := st.Start(ctx, []store.New{workflow(strconv.Itoa(i))}); err != nil {
			return err
		}
	}
	return st.Close()
}

func workflow(id string) store.New {
	return store.New{
		ID: id, Definition: store.Def{Name: "order", Version: 1},
		Place: store.Place{Status: store.Pending, State: "S", Wake: store.Wake{Kind: store.WakeAfter}},
	}
}

// TestSecondProcessHoldsTheLock: 16 callers wait for another process that
// holds a write transaction for 3 seconds, and then go on; readers do not wait.
func TestSecondProcessHoldsTheLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "shared.db")
	st := openAt(t, path)
	p := spawn(t, "hold", path)
	p.expect("holding")

	_, err := st.Get(ctx, "0")
	require.ErrorIs(t, err, store.ErrNotFound, "a reader does not wait")
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() { _, errs[i] = st.Start(ctx, []store.New{workflow(strconv.Itoa(i))}) })
	}
	p.expect("released")
	all.Wait()
	for i, err := range errs {
		require.NoError(t, err)
		_, err := st.Get(ctx, strconv.Itoa(i))
		require.NoError(t, err)
	}
}

// TestSecondProcessIsKilled: what was answered is there, and the file goes on
// at once without repair.
func TestSecondProcessIsKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "shared.db")
	st := openAt(t, path)
	p := spawn(t, "start", path)
	last := ""
	for i := 0; i < 50 && p.lines.Scan(); i++ {
		last = p.lines.Text()
	}
	require.NoError(t, p.cmd.Process.Kill())
	for p.lines.Scan() {
		last = p.lines.Text()
	}
	n, err := strconv.Atoi(last)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 49)
	found, err := st.List(ctx, store.Query{Limit: n + 10})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), n+1, "every answered start is there")
	_, err = st.Start(ctx, []store.New{workflow("next")})
	require.NoError(t, err)
}

// TestProcessesMigrateAtOnce: of ten processes that open an empty file one
// migrates it, and the others find it done, also if one of them is killed.
func TestProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", round))
		ps := make([]*process, 10)
		for i := range ps {
			ps[i] = spawn(t, "migrate", path)
		}
		for _, p := range ps {
			p.expect("ready")
		}
		for _, p := range ps {
			p.say()
		}
		victim := ps[3*round]
		require.NoError(t, victim.cmd.Process.Kill())
		applied := 0
		for _, p := range ps {
			switch {
			case p == victim:
				p.lines.Scan()
			default:
				require.True(t, p.lines.Scan(), "round %d", round)
			}
			switch said := p.lines.Text(); {
			case p == victim && said == "":
			case strings.HasPrefix(said, "applied "):
				n, err := strconv.Atoi(strings.TrimPrefix(said, "applied "))
				require.NoError(t, err)
				applied += min(n, 1)
			default:
				require.Fail(t, "a process failed", said)
			}
		}
		require.LessOrEqual(t, applied, 1)
		st, err := sqlite.Open(context.Background(), path)
		require.NoError(t, err)
		require.NoError(t, st.Check(context.Background()))
		require.NoError(t, st.Close())
	}
}

// TestHearsOtherProcesses: a listener hears when another process has written,
// and what it hears of is then there to be read.
func TestHearsOtherProcesses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	path := filepath.Join(t.TempDir(), "shared.db")
	st := openAt(t, path)
	p := spawn(t, "notify", path)
	p.expect("ready")
	heard := make(chan store.Topic, 100)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- st.Listen(listening, func(t store.Topic) {
			select {
			case heard <- t:
			default:
			}
		})
	}()
	for seen := 0; seen < 2; {
		p.say()
		select {
		case <-heard:
			seen++
		case <-time.After(time.Second): // it was not listening yet
		}
		require.NoError(t, ctx.Err())
	}
	stop()
	require.NoError(t, <-ended)
}

// openAt opens a store on path and closes it at the end of the test.
func openAt(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(context.Background(), path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}
