package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// actVariable makes this test binary act as pgrun.
const actVariable = "PAWL_PGRUN_ACT"

func TestMain(m *testing.M) {
	if os.Getenv(actVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// pgrun prepares a run of pgrun in an environment without a server.
func pgrun(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, pgtest.EnvURL+"=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, actVariable+"=1")
	return cmd
}

// requireGone fails if a server still listens at the URL.
func requireGone(t *testing.T, address string) {
	t.Helper()
	_, err := pgx.Connect(context.Background(), address)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// The command's output is all that is printed, its code is the exit code, and
// the server is gone afterwards.
func TestOutputAndCodePassThrough(t *testing.T) {
	t.Parallel()
	cmd := pgrun(t, "--", "sh", "-c", `echo "$PAWL_TEST_DATABASE_URL"; cat; exit 7`)
	cmd.Stdin = strings.NewReader("typed in")
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.Empty(t, string(exit.Stderr))
	address, rest, _ := strings.Cut(string(out), "\n")
	require.Equal(t, "typed in", rest)
	require.True(t, strings.HasPrefix(address, "postgres://"), address)
	requireGone(t, address)
}

// SIGTERM reaches the command and what it started, and the server goes too.
func TestSignalEndsCommandAndServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script  string
		signals int
		code    int
	}{
		"obeyed":  {`sleep 600 & echo "$PAWL_TEST_DATABASE_URL"; wait`, 1, 128 + 15},
		"ignored": {`trap 'echo again' TERM; echo "$PAWL_TEST_DATABASE_URL"; while :; do sleep 0.1; done`, 2, 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := pgrun(t, "sh", "-c", test.script)
			pipe, end, err := os.Pipe()
			require.NoError(t, err)
			defer pipe.Close()
			require.NoError(t, pipe.SetReadDeadline(time.Now().Add(time.Minute)))
			cmd.Stdout = end
			require.NoError(t, cmd.Start())
			require.NoError(t, end.Close())
			out := bufio.NewReader(pipe)
			address, err := out.ReadString('\n')
			require.NoError(t, err)
			for number := range test.signals {
				require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
				if number < test.signals-1 {
					_, err = out.ReadString('\n')
					require.NoError(t, err, "the command says that it got the signal")
				}
			}
			_, err = io.ReadAll(out)
			require.NoError(t, err, "something that the command started still runs")
			require.Error(t, cmd.Wait())
			require.Equal(t, test.code, cmd.ProcessState.ExitCode())
			requireGone(t, strings.TrimSpace(address))
		})
	}
}

// A server that is named already is used, and none is started.
func TestNamedServerIsUsed(t *testing.T) {
	t.Parallel()
	cmd := pgrun(t, "sh", "-c", `echo "$PAWL_TEST_DATABASE_URL"`)
	cmd.Env = append(cmd.Env, pgtest.EnvURL+"=postgres://elsewhere/db")
	out, err := cmd.Output()
	require.NoError(t, err)
	address, err := url.Parse(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	require.Equal(t, "elsewhere", address.Host)
}

func TestFailuresOfItsOwn(t *testing.T) {
	t.Parallel()
	require.Equal(t, exitUsage, run(nil))
	require.Equal(t, exitUsage, run([]string{"--"}))
	require.Equal(t, exitNoStart, runCommand([]string{"/nowhere/program"}, nil, nil))
}
