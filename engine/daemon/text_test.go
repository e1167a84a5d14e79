package daemon_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/daemon"
)

const green, plain, off = "\x1b[32m", "\x1b[39m", "\x1b[0m"

// Colours are for terminals, which a test has none of, and for whoever asks.
func TestColours(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`, "--wait")
	for _, env := range []map[string]string{nil, {"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		env := map[string]string{"PAWL_DATABASE_URL": p.env["PAWL_DATABASE_URL"], "NO_COLOR": env["NO_COLOR"], "TERM": env["TERM"]}
		q := &program{t, env}
		require.NotContains(t, q.must("workflow", "list"), "\x1b")
		require.NotContains(t, q.must("workflow", "list", "--color", "never"), "\x1b")
		out := q.must("workflow", "list", "--color", "always")
		require.Contains(t, out, green+"COMPLETED"+off)
		lines := strings.Split(out, "\n")
		require.Equal(t, strings.Index(lines[0], plain), strings.Index(lines[1], green), "the columns are aligned")
		require.Equal(t, strings.Index(lines[0], "STATE"), strings.Index(lines[1], "delivered"), "behind the colours too")
	}
	require.NotContains(t, p.must("workflow", "list", "--color", "always", "-o", "json"), "\x1b")
}

func TestTimeFormat(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`)
	require.Regexp(t, `(?m)^created +\d+ s ago$`, p.must("workflow", "show", "p-1"))
	require.Regexp(t, `(?m)^created +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, p.must("workflow", "show", "p-1", "--time-format", "iso"))
}

// What others have written cannot steer a terminal.
func TestErrorsOfStepsAreShownOnOneLine(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	r := p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"a\u001b[2Jb\nc","fail":"send"}`, "--wait")
	require.Equal(t, 1, r.code)
	require.NotContains(t, r.out, "\x1b")
	require.Equal(t, 1, strings.Count(r.out, "\n"), r.out)
}

func TestHelp(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	out := p.must("--help")
	for _, text := range []string{"Exit codes: 0 done", "--database-url", "workflow", "worker", "migrate", "completion", "run", "version"} {
		require.Contains(t, out, text)
	}
	require.Equal(t, out, p.must())
	out = p.must("run", "--help")
	for _, text := range []string{"(default 128)", "(default 10s)", "(default 500ms)", "(default 25s)", "A second signal leaves at once, with 143 or 130."} {
		require.Contains(t, out, text)
	}
	require.Contains(t, p.must("workflow"), "Start, look at and steer workflows")
	require.Contains(t, p.must("completion", "bash"), "# bash completion")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out buffer
	require.Zero(t, daemon.Run(t.Context(), []string{"version"}, nil, &out, &out, register, daemon.WithName("shop"), daemon.WithVersion("v1.2.3")))
	require.Regexp(t, `^shop v1\.2\.3 (\(\w+\) )?go1\.\S+ \w+/\w+\n$`, out.String())
}

// Flags beat the program's own configuration, which beats the defaults.
func TestConfig(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	var out buffer
	run := func(args ...string) string {
		args = append(args, "--help")
		require.Zero(t, daemon.Run(t.Context(), args, nil, &out, &out, register, daemon.WithEnv(p.env), daemon.WithConfig(engine.Config{Concurrency: 9})))
		return out.String()
	}
	require.Contains(t, run("run"), "(default 9)")
}

// A set-up that fails is the end of run; clients do without it.
func TestSetup(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	setup := daemon.WithSetup(func(ctx context.Context, e *engine.Engine) error {
		if _, err := e.StartJSON(ctx, "parcel", "first", []byte(`{"to":"Rome"}`)); err != nil {
			return err
		}
		return errors.New("the shop is closed")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // drains a worker that should not have begun
	defer cancel()
	var out, errs buffer
	require.Equal(t, 1, daemon.Run(ctx, []string{"run"}, nil, &out, &errs, register, setup, daemon.WithName("workerd"), daemon.WithEnv(p.env)))
	require.Equal(t, "workerd: the shop is closed\n", errs.String())
	require.Empty(t, out.String())
	require.Zero(t, daemon.Run(t.Context(), []string{"workflow", "show", "first"}, nil, &out, &errs, register, setup, daemon.WithEnv(p.env)))
	require.Contains(t, out.String(), "packing")
}
