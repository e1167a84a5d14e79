package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is this program in a process of its own.
type program struct {
	cmd    *exec.Cmd
	lines  chan string   // of its standard output; closed at its end
	family chan struct{} // closed when neither it nor any child of its is left
}

// startProgram starts the program. All processes that it starts inherit its
// standard error, so that pipe ends when the last of them is gone.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 1000), family: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envMain+"=1")
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	ours, theirs, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stderr = theirs
	require.NoError(t, p.cmd.Start())
	require.NoError(t, theirs.Close())
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	var said bytes.Buffer
	go func() {
		defer close(p.family)
		_, _ = io.Copy(&said, ours)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.awaitFamily(t)
		_ = ours.Close()
		if t.Failed() {
			t.Logf("%v said: %s", args, said.String())
		}
	})
	return p
}

// awaitLine returns the first line from here on that fits.
func (p *program) awaitLine(t *testing.T, pattern string) string {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			require.True(t, ok, "it ended before it said %q", pattern)
			if regexp.MustCompile(pattern).MatchString(line) {
				return line
			}
		case <-timeout:
			require.FailNow(t, "it did not say "+pattern)
		}
	}
}

// awaitFamily waits until the process and all its children are gone.
func (p *program) awaitFamily(t *testing.T) {
	t.Helper()
	select {
	case <-p.family:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "a process is left")
	}
}

func TestTheTourShowsThreeOrders(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		for range 2 { // on one database
			code, stdout, stderr := runMain(t, st.flags()...)
			require.Equal(t, exitOK, code, stdout+stderr)
			f := figures(t, stdout)
			require.Equal(t, map[string]string{
				"orders": "3", "completed": "2", "compensated": "1", "kills": "1", "takeovers": "1", "bank_requests": "5",
				"charges": "3", "double_charges": "0", "lost_orders": "0", "stock_errors": "0", "verdict": "OK",
			}, f, stdout)
			require.Equal(t, 1, strings.Count(stdout, "KILLED"))
			requireSameKey(t, stdout)
			requireUndone(t, stdout)
			require.NotContains(t, stdout, "\x1b", "colours are for terminals")
		}
	})
}

// requireSameKey asserts that the killed order's charge carried the same key
// before and after the kill.
func requireSameKey(t *testing.T, stdout string) {
	t.Helper()
	charges := regexp.MustCompile(`(?m)order-\w+-3 +charge-card +(\S+) .* (order-\S+/charge-card/1)`).FindAllStringSubmatch(stdout, -1)
	require.Len(t, charges, 2, stdout)
	require.Equal(t, []string{"KILLED", "done"}, []string{charges[0][1], charges[1][1]})
	require.Equal(t, charges[0][2], charges[1][2])
	require.Contains(t, stdout, "the bank saw the key "+charges[0][2]+" twice, and charged it once")
}

// requireUndone asserts that the refused order was undone in reverse.
func requireUndone(t *testing.T, stdout string) {
	t.Helper()
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)order-\w+-2 +(\S+) +(done|refused)`).FindAllStringSubmatch(stdout, -1) {
		steps = append(steps, m[1]+" "+m[2])
	}
	require.Equal(t, []string{"reserve-stock done", "charge-card done", "print-label refused", "refund-card done", "release-stock done"}, steps)
}

// smallChaos is a chaos that fits a test.
func smallChaos(st stage, more ...string) []string {
	args := []string{"chaos", "--orders", "40", "--workers", "2", "--kills", "5", "--kill-every", "250ms", "--seed", "7"}
	return append(append(args, st.flags()...), more...)
}

func TestChaosLosesNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		code, stdout, stderr := runMain(t, smallChaos(st)...)
		require.Equal(t, exitOK, code, stdout+stderr)
		f := figures(t, stdout)
		require.Equal(t, "OK", f["verdict"])
		for figure, least := range map[string]int{"orders": 40, "kills": 5, "takeovers": 1, "completed": 1, "compensated": 1} {
			n, err := strconv.Atoi(f[figure])
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, least, stdout)
		}
		require.Contains(t, stdout, "seed 7")

		code, again, _ := runMain(t, append([]string{"audit"}, st.flags()...)...)
		require.Equal(t, exitOK, code, again)
		require.Equal(t, f, figures(t, again), "the audit alone says the same")
	})
}

func TestChaosWithoutIdempotencyIsFoundOut(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		code, stdout, stderr := runMain(t, smallChaos(st, "--no-idempotency")...)
		require.Equal(t, exitFailed, code, stdout+stderr)
		f := figures(t, stdout)
		require.Equal(t, "FAILED", f["verdict"])
		require.NotEqual(t, "0", f["double_charges"])
		require.Regexp(t, `wrong: order-\w+-\d+: charged \d+ times`, stdout)
		require.Empty(t, stderr)

		// The next run on the same database is not its fault.
		code, stdout, stderr = runMain(t, st.flags()...)
		require.Equal(t, exitOK, code, stdout+stderr)
	})
}

func TestChildrenEndWithTheirParent(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*os.Process) error{
		"killed":      (*os.Process).Kill,
		"interrupted": func(p *os.Process) error { return p.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, smallChaos(onSQLite(t), "--kills", "1000")...)
			p.awaitLine(t, `kills +[1-9]`)
			require.NoError(t, end(p.cmd.Process))
			p.awaitFamily(t)
		})
	}
}

// A child that has nothing to say, and so does not notice that nobody listens,
// ends with its standard input.
func TestAnIdleChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	st := onSQLite(t)
	for name, args := range map[string][]string{
		"bank":   {"bank", "--bank-file", st.bankFile},
		"worker": {"worker", "--bank-url", "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := childConfig{env: []string{databaseEnv + "=" + st.databaseURL}, stderr: os.Stderr, hear: func(message) {}}
			c, _, err := startChild(t.Context(), name, cfg, args...)
			require.NoError(t, err)
			t.Cleanup(c.kill)
			require.NoError(t, c.stdin.Close())
			select {
			case <-c.done:
				require.Zero(t, c.cmd.ProcessState.ExitCode())
			case <-time.After(20 * time.Second):
				require.FailNow(t, "it is still there")
			}
		})
	}
}

func TestThePartsInTerminalsOfTheirOwn(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st stage) {
		code, _, stderr := runMain(t, append([]string{"worker"}, st.flags()...)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "no bank is running")

		startProgram(t, append([]string{"bank"}, st.flags()...)...).awaitLine(t, `^bank on http://127\.0\.0\.1:`)
		worker := startProgram(t, append([]string{"worker", "--stall-after-charge", "order-9"}, st.flags()...)...)
		worker.awaitLine(t, "^TIME")

		code, stdout, stderr := runMain(t, append([]string{"order", "order-1", "--total", "49.90"}, st.flags()...)...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "order-1 COMPLETED: paid 49.90")
		worker.awaitLine(t, `mail-receipt +done`)

		code, stdout, stderr = runMain(t, append([]string{"order", "order-2", "--total", "49.90", "--address", "nowhere"}, st.flags()...)...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, "order-2 COMPENSATED")

		code, _, stderr = runMain(t, append([]string{"order", "order-1", "--total", "1"}, st.flags()...)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "another input")

		code, _, stderr = runMain(t, append([]string{"order", "order-3", "--total", "2500", "--wait", "1s"}, st.flags()...)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "waiting for signal approval")

		code, stdout, _ = runMain(t, append([]string{"audit"}, st.flags()...)...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stdout, "wrong: order-3: accepted, but WAITING in state approving")
		require.True(t, strings.HasSuffix(stdout, " FAILED\n"))
	})
}
