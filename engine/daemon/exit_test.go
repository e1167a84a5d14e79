package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// What is refused says in one line what was wrong, with its exit code. Nothing
// of it is written.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "there", "--input", `{"to":"Rome"}`)
	long := strings.Repeat("x", 64<<10)
	start := func(id, input string) []string {
		return []string{"workflow", "start", "parcel", id, "--input", input}
	}
	for name, c := range map[string]struct {
		code int
		text string
		args []string
	}{
		"conflict":             {4, `workflow "there" exists with another input; see it: workerd workflow show there`, start("there", `{"to":"Oslo"}`)},
		"unknown definition":   {2, `definition is not registered: "letter"; this program knows parcel v4`, []string{"workflow", "start", "letter", "x", "--input", "{}"}},
		"empty id":             {2, `bad id: it is empty; an id is 1 to 200 bytes`, start("", "{}")},
		"blank id":             {2, `it begins or ends with space`, start(" ", "{}")},
		"64 KiB id":            {2, `65536 bytes, at most 200`, start(long, "{}")},
		"id with a NUL":        {2, `it holds a control character`, start("a\x00b", "{}")},
		"id, bad UTF-8":        {2, `it is not valid UTF-8`, start("a\xff", "{}")},
		"input of another":     {2, `bad input: json: unknown field "too"`, start("x", `{"too":"Rome"}`)},
		"input, other type":    {2, `bad input: json: cannot unmarshal number`, start("x", `{"to":1}`)},
		"input, not JSON":      {2, `--input: bad input: `, start("x", `{to:1}`)},
		"input, half":          {2, `--input: bad input: unexpected end of JSON input`, start("x", `{`)},
		"input, twice":         {2, `--input: bad input: `, start("x", `{} {}`)},
		"input, missing":       {2, `no input: pass --input`, []string{"workflow", "start", "parcel", "x"}},
		"input, no file":       {2, `no such file`, start("x", "@/nowhere/at/all")},
		"input, a directory":   {2, `--input: read /`, start("x", "@/")},
		"input, too large":     {2, `payload too large`, start("x", `{"to":"`+strings.Repeat("x", 2<<20)+`"}`)},
		"show, not found":      {3, `get workflow "x": not found; list what is there: workerd workflow list`, []string{"workflow", "show", "x"}},
		"follow, not found":    {3, `not found`, []string{"workflow", "show", "x", "--follow"}},
		"steps, not found":     {3, `not found`, []string{"workflow", "steps", "x"}},
		"why, not found":       {3, `not found`, []string{"workflow", "why", "x"}},
		"cancel, not found":    {3, `not found`, []string{"workflow", "cancel", "x"}},
		"signal, not found":    {3, `not found`, []string{"workflow", "signal", "x", "nod", "--input", "true"}},
		"why, bad id":          {2, `bad id`, []string{"workflow", "why", "\n"}},
		"unknown signal":       {2, `definition has no such signal: parcel does not wait for "wink"; see what it waits for: workerd workflow why there`, []string{"workflow", "signal", "there", "wink", "--input", "true"}},
		"signal, bad name":     {2, `bad signal name "\n"`, []string{"workflow", "signal", "there", "\n", "--input", "true"}},
		"signal, bad value":    {2, `bad input: signal "nod": decode value`, []string{"workflow", "signal", "there", "nod", "--input", `"yes"`}},
		"signal, no input":     {2, `no input`, []string{"workflow", "signal", "there", "nod"}},
		"bad message id":       {2, `bad id`, []string{"workflow", "cancel", "there", "--message-id", " "}},
		"too few arguments":    {2, `workerd workflow start takes DEFINITION and ID, not 1 arguments; see: workerd workflow start --help`, []string{"workflow", "start", "parcel"}},
		"too many arguments":   {2, `workerd run takes no arguments, not 1 arguments`, []string{"run", "now"}},
		"unknown command":      {2, `workerd has no command "wrokflow"; did you mean: workerd workflow`, []string{"wrokflow"}},
		"unknown subcommand":   {2, `workerd workflow has no command "frobnicate"; see: workerd workflow --help`, []string{"workflow", "frobnicate"}},
		"unknown flag":         {2, `unknown flag: --nope; see: workerd workflow list --help`, []string{"workflow", "list", "--nope"}},
		"flag without a value": {2, `flag needs an argument`, []string{"workflow", "list", "--limit"}},
		"output":               {2, `--output "xml": it is one of text, json, jsonl`, []string{"workflow", "list", "-o", "xml"}},
		"time format":          {2, `--time-format`, []string{"workflow", "list", "--time-format", "unix"}},
		"color":                {2, `--color`, []string{"workflow", "list", "--color", "red"}},
		"log level":            {2, `--log-level`, []string{"run", "--log-level", "loud"}},
		"log format":           {2, `--log-format`, []string{"run", "--log-format", "xml"}},
		"timeout":              {2, `--timeout -1s: it cannot be negative`, []string{"workflow", "list", "--timeout", "-1s"}},
		"limit 0":              {2, `--limit 0: it is 1 to 10000`, []string{"workflow", "list", "--limit", "0"}},
		"limit, not a number":  {2, `invalid argument "many" for "--limit"`, []string{"workflow", "list", "--limit", "many"}},
		"status":               {2, `--status "DONE": it is one of PENDING WAITING`, []string{"workflow", "list", "--status", "HELD,DONE"}},
		"after":                {2, `--after: bad id`, []string{"workflow", "list", "--after", " "}},
		"concurrency":          {2, `--concurrency 0: it is 1 to`, []string{"run", "--concurrency", "0"}},
		"lease":                {2, `--lease 1ms: it is at least`, []string{"run", "--lease", "1ms"}},
		"poll":                 {2, `--poll 0s: it is at least`, []string{"run", "--poll", "0"}},
		"drain timeout":        {2, `--drain-timeout -1s: it cannot be negative`, []string{"run", "--drain-timeout", "-1s"}},
		"schema on SQLite":     {2, `SQLite has no schemas`, []string{"workflow", "list", "--schema", "shop"}},
		"database URL":         {2, `bad database URL`, []string{"workflow", "list", "--database-url", "mysql://h/db"}},
		"no such folder":       {2, `there is no directory "/nowhere"`, []string{"workflow", "start", "parcel", "x", "--input", "{}", "--database-url", "sqlite:/nowhere/x.db"}},
		"not a database":       {2, `it is not a SQLite database`, []string{"workflow", "list", "--database-url", "sqlite:" + textFile(t)}},
		"timed out":            {5, `timed out after 50ms`, append(start("there", `{"to":"Rome"}`), "--wait", "--timeout", "50ms")},
		"timed out at once":    {5, `timed out after 1ns`, []string{"workflow", "list", "--timeout", "1ns"}},
		"timed out, migrating": {5, `timed out after 1ns`, []string{"migrate", "up", "--timeout", "1ns"}},
		"timed out, following": {5, `timed out after 50ms`, []string{"workflow", "show", "there", "--follow", "--timeout", "50ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &program{t, p.env}
			if strings.HasPrefix(name, "timed out") {
				r := q.run(c.args...)
				require.Equal(t, c.code, r.code)
				require.Contains(t, r.err, c.text)
				return
			}
			require.Contains(t, q.fails(c.code, c.args...), c.text)
		})
	}
	t.Cleanup(func() {
		p := &program{t, p.env}
		var out buffer
		code := daemon.Run(context.Background(), []string{"workflow", "list"}, nil, &out, &out, register, daemon.WithEnv(p.env))
		require.Zero(t, code)
		require.Equal(t, 2, strings.Count(out.String(), "\n"), "only the first workflow was written: %s", out.String())
	})
}

func textFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("these are no pages\n", 500)), 0o600))
	return path
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	p := &program{t, nil}
	require.Equal(t, "workerd: no database: pass --database-url or set PAWL_DATABASE_URL to sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		p.fails(2, "workflow", "list"))
}

// The flag beats PAWL_DATABASE_URL, which beats DATABASE_URL.
func TestFlagBeatsEnvironment(t *testing.T) {
	t.Parallel()
	p := &program{t, map[string]string{"DATABASE_URL": "sqlite:/nowhere/1"}}
	require.Contains(t, p.fails(1, "worker", "list"), `"/nowhere/1"`)
	p.env["PAWL_DATABASE_URL"] = "sqlite:/nowhere/2"
	require.Contains(t, p.fails(1, "worker", "list"), `"/nowhere/2"`)
	require.Equal(t, `workerd: there is no database file "/nowhere/3"; create it: workerd migrate up --database-url sqlite:/nowhere/3`,
		p.fails(1, "worker", "list", "--database-url", "sqlite:/nowhere/3"))
}

// Errors that take a whole system to come about have their codes too.
func TestExitCodesOfErrors(t *testing.T) {
	t.Parallel()
	for code, errs := range map[int][]error{
		1: {errors.New("boom"), store.ErrSchemaMissing, store.ErrSchemaBehind, store.ErrSchemaAhead, store.ErrUnsure, store.ErrFull, store.ErrBusy, store.ErrRetry, context.Canceled},
		2: {engine.ErrBadID, engine.ErrBadInput, engine.ErrTooLarge, engine.ErrUnknownDefinition, engine.ErrUnknownSignal, engine.ErrDuplicateDefinition, engine.ErrWrongTx, store.ErrBadURL, store.ErrBadSchemaName, statemachine.ErrInvalid},
		3: {store.ErrNotFound, engine.ErrNotFound},
		4: {engine.ErrConflict, &engine.ConflictError{}, engine.ErrExpired, engine.ErrEnded, engine.ErrPastPivot, store.ErrGraphChanged},
		5: {context.DeadlineExceeded},
	} {
		for _, err := range errs {
			var out buffer
			require.Equal(t, code, daemon.Finish("workerd", fmt.Errorf("do it: %w", err), &out), err)
			require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		}
	}
	require.Zero(t, daemon.Finish("workerd", nil, new(buffer)))
}

// Ended and past-pivot workflows take no more messages.
func TestConflictsWithWhatHasHappened(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`, "--wait")
	require.Contains(t, p.fails(4, "workflow", "cancel", "p-1"), `cancel workflow "p-1": workflow has ended; see how: workerd workflow show p-1`)
	require.Contains(t, p.fails(4, "workflow", "signal", "p-1", "nod", "--input", "true"), `workflow has ended`)
}

// Every fault of a definition is told, in one line.
func TestFaultyDefinition(t *testing.T) {
	t.Parallel()
	faulty := parcels()
	faulty.Version, faulty.Start, faulty.OnFailure = 0, "nowhere", "nothing"
	faulty.States["lost"] = statemachine.If(parcel.heavy, "gone", "away")
	bad := func(e *engine.Engine) error { _, err := engine.Register(e, faulty); return err }
	p := newProgram(t)
	p.must("migrate", "up")
	for _, args := range [][]string{{"run"}, {"workflow", "start", "parcel", "x", "--input", "{}"}} {
		var out, errs buffer
		require.Equal(t, 2, daemon.Run(t.Context(), args, nil, &out, &errs, bad, daemon.WithName("workerd"), daemon.WithEnv(p.env)))
		require.Empty(t, out.String())
		require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		for _, text := range []string{"version", `"nowhere"`, `"nothing"`, `"gone"`, `"away"`, "mend the definition"} {
			require.Contains(t, errs.String(), text)
		}
	}
	require.Contains(t, p.must("workflow", "list"), "no workflows yet")
}

// A graph that changed without a new version stops a worker and a start, but
// nobody who only looks.
func TestGraphChanged(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`)
	other := parcels()
	other.States["weighing"] = statemachine.If(parcel.heavy, "sending", "nodding")
	changed := func(e *engine.Engine) error { _, err := engine.Register(e, other); return err }
	run := func(args ...string) (int, string) {
		var out, errs buffer
		code := daemon.Run(t.Context(), args, nil, &out, &errs, changed, daemon.WithName("workerd"), daemon.WithEnv(p.env))
		return code, out.String() + errs.String()
	}
	code, text := run("run")
	require.Equal(t, 4, code, text)
	require.Contains(t, text, "give the changed graph a new version")
	code, text = run("workflow", "why", "p-1")
	require.Zero(t, code)
	require.Contains(t, text, "no worker is alive")
	require.Contains(t, text, "definitions are not registered")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"--help"}} {
		var errs buffer
		require.Equal(t, 1, daemon.Run(t.Context(), args, nil, fullDisk{}, &errs, register, daemon.WithName("workerd")), args)
		require.Equal(t, "workerd: write output: no space left\n", errs.String())
	}
}

// A command that is stopped from outside gives up.
func TestContextEndsAClient(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var out, errs buffer
	code := daemon.Run(ctx, []string{"workflow", "start", "parcel", "x", "--input", `{"to":"Rome"}`, "--wait"}, nil, &out, &errs, register, daemon.WithEnv(p.env))
	require.Equal(t, 5, code, errs.String())
}
