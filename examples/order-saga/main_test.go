package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// envMain makes this test binary the program itself, so that tests can run it
// in processes that may be killed. Child processes inherit it.
const envMain = "ORDER_SAGA_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	if err := os.Setenv(envMain, "1"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// onEachStore runs a test on SQLite and on PostgreSQL, with a bank's file of
// its own.
func onEachStore(t *testing.T, test func(t *testing.T, st stage)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, stage{databaseURL: pgtest.URL(t), bankFile: filepath.Join(t.TempDir(), "bank.db")})
	})
}

func onSQLite(t *testing.T) stage {
	t.Helper()
	dir := t.TempDir()
	return stage{databaseURL: "sqlite:" + filepath.Join(dir, "orders.db"), bankFile: filepath.Join(dir, "bank.db")}
}

// flags are the flags that say where everything is.
func (s stage) flags() []string {
	return []string{"--database-url", s.databaseURL, "--bank-file", s.bankFile}
}

// runMain runs the program and returns its exit code and what it printed.
func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut locked
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// locked is a buffer that several processes may write to.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// figures reads the last line of an output, which must be the audit's.
func figures(t *testing.T, stdout string) map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	last := lines[len(lines)-1]
	require.Regexp(t, `^AUDIT orders=\d+ completed=\d+ compensated=\d+ kills=\d+ takeovers=\d+ bank_requests=\d+ `+
		`charges=\d+ double_charges=\d+ lost_orders=\d+ stock_errors=\d+ (OK|FAILED)$`, last, stdout)
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)=(\d+)`).FindAllStringSubmatch(last, -1) {
		found[m[1]] = m[2]
	}
	found["verdict"] = last[strings.LastIndexByte(last, ' ')+1:]
	return found
}

func TestWrongCallsAreUsageErrors(t *testing.T) {
	t.Parallel()
	sqlite := "sqlite:" + filepath.Join(t.TempDir(), "orders.db")
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown command":   {[]string{"dance"}, `unknown command "dance"`},
		"unknown flag":      {[]string{"--dance"}, "unknown flag: --dance"},
		"no id":             {[]string{"order", "--total", "1"}, "accepts 1 arg"},
		"no total":          {[]string{"order", "a", "--database-url", sqlite}, "--total is missing"},
		"bad total":         {[]string{"order", "a", "--total", "1.234", "--database-url", sqlite}, `"1.234"`},
		"unknown database":  {[]string{"audit", "--database-url", "mysql://ann:secret@host/x"}, "sqlite:PATH or postgres://"},
		"no orders":         {[]string{"chaos", "--orders", "0", "--database-url", sqlite}, "--orders 0"},
		"no workers":        {[]string{"chaos", "--workers", "0", "--database-url", sqlite}, "--workers 0"},
		"negative kills":    {[]string{"chaos", "--kills", "-1", "--database-url", sqlite}, "--kills -1"},
		"kills without end": {[]string{"chaos", "--kill-every", "1ns", "--database-url", sqlite}, "--kill-every 1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runMain(t, tc.args...)
			require.Equal(t, exitUsage, code, stderr)
			require.Contains(t, stderr, tc.says)
			require.NotContains(t, stderr, "secret")
			require.Equal(t, 1, strings.Count(stderr, "\n"), "errors are one line")
			require.Empty(t, stdout)
		})
	}
}

func TestAnAuditOfNothingMakesNoFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	code, _, stderr := runMain(t, "audit", "--database-url", "sqlite:"+path)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no database file")
	require.NoFileExists(t, path)
}

func TestEachCommandHasHelp(t *testing.T) {
	t.Parallel()
	for _, cmd := range []string{"bank", "worker", "order", "audit", "chaos"} {
		code, stdout, _ := runMain(t, cmd, "--help")
		require.Equal(t, exitOK, code)
		require.Contains(t, stdout, "--database-url")
		require.NotContains(t, stdout, "--child", "that one is for this program's own children")
	}
}

func TestTheBanksFileLiesBesideTheOrders(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"sqlite:./order-saga.db":    "./order-saga-bank.db",
		"sqlite:///tmp/orders":      "/tmp/orders-bank.db",
		"postgres://host/order_dev": "order-saga-bank.db",
	} {
		require.Equal(t, want, (&settings{databaseURL: url}).bankPath())
	}
	require.Equal(t, "x", (&settings{databaseURL: "sqlite:y", bankFile: "x"}).bankPath())
}

func TestADatabaseIsDescribedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	require.Equal(t, "postgres://host:5432/shop", describe("postgres://ann:secret@host:5432/shop?password=secret"))
	require.Equal(t, "sqlite:./order-saga.db", describe("sqlite:./order-saga.db"))
}

func TestTheSchemaIsTakenOutOfAURL(t *testing.T) {
	t.Parallel()
	plain, schema := withoutSchema("postgres://host/shop?schema=saga&sslmode=disable")
	require.Equal(t, "postgres://host/shop?sslmode=disable", plain)
	require.Equal(t, "saga", schema)
	plain, schema = withoutSchema("postgres://host/shop")
	require.Equal(t, "postgres://host/shop", plain)
	require.Equal(t, "pawl", schema)
}
