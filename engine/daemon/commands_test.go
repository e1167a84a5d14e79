package daemon_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The way of a workflow from its start to its end, by the commands alone.
func TestWorkflowFromStartToEnd(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	out := p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`)
	require.Equal(t, "started p-1; see: workerd workflow show p-1\n", out)
	require.Equal(t, "no live worker knows parcel v4: no worker is alive\n", p.must("workflow", "why", "p-1"))

	p.worker()
	p.eventually("waiting for signal nod since", "workflow", "why", "p-1")
	require.Contains(t, p.must("workflow", "why", "p-1"), "times out in 47 h")
	require.Equal(t, "sent nod to p-1; see: workerd workflow why p-1\n", p.must("workflow", "signal", "p-1", "nod", "--input", "true"))

	out = p.must("workflow", "start", "parcel", "p-1", "--input", `{ "grams": 2000, "to": "Rome" }`, "--wait")
	require.Regexp(t, `^p-1 COMPLETED in state delivered: ended COMPLETED \d+ s ago\n$`, out)
	out = p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`)
	require.Equal(t, "p-1 was there already and is COMPLETED; see: workerd workflow show p-1\n", out)

	out = p.must("workflow", "show", "p-1")
	require.Regexp(t, `(?m)^workflow    p-1$`, out)
	require.Regexp(t, `(?m)^definition  parcel v4$`, out)
	require.Regexp(t, `(?m)^STEP  GROUP  STATUS  ATTEMPT  TOOK\s+KEY$`, out)
	require.Regexp(t, `(?m)^pack  1      DONE    1        \S+\s+p-1/pack/1$`, out)
	require.NotContains(t, out, "Rome", "payloads are shown only when asked for")
	require.Contains(t, p.must("workflow", "show", "p-1", "--payload"), `data        {"to":"Rome","grams":2000,"label":"label of p-1/pack/1"}`)
	require.Regexp(t, `(?m)^pack  .*  \{"to":"Rome","grams":2000\}  "label of p-1/pack/1"$`, p.must("workflow", "steps", "p-1", "--payload"))
}

func TestCancelRollsBack(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`)
	p.worker()
	p.eventually("waiting for signal", "workflow", "why", "p-1")
	require.Equal(t, "asked for the rollback of p-1; see: workerd workflow why p-1\n", p.must("workflow", "cancel", "p-1", "--reason", "changed my mind"))
	r := p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`, "--wait")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^p-1 COMPENSATED in state returned: ended COMPENSATED \d+ s ago \(cancelled: changed my mind\)\n$`, r.out)
	require.Equal(t, "workerd: workflow \"p-1\" ended COMPENSATED; see why: workerd workflow why p-1\n", r.err)
	require.Regexp(t, `(?m)^unpack  1      DONE `, p.must("workflow", "steps", "p-1"))
}

// A workflow that needs a person has not ended, but nobody should wait for it.
func TestWaitStopsAtHeld(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	r := p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"Mars","fail":"unpack"}`, "--wait", "--timeout", "60s")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^p-1 HELD in state sending: held: undo unpack was refused: it is glued\n$`, r.out)
	require.Contains(t, r.err, `workflow "p-1" is HELD; see why: workerd workflow why p-1`)
}

func TestWhyKnowsTheAttemptsOfARegisteredDefinition(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","fail":"pack"}`)
	p.eventually("waiting for retry (attempt 2 of 3, in 60 min; last error: no more boxes)", "workflow", "why", "p-1")
	require.Regexp(t, `(?m)^pack  1      PENDING  1        -     p-1/pack/1$`, p.must("workflow", "steps", "p-1"))
	require.Regexp(t, `(?m)^p-1  parcel v4   WAITING  packing  pack  \d+ s ago$`, p.must("workflow", "list"))
}

func TestFollowEndsWithTheWorkflow(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome","grams":2000}`)
	followed := make(chan result, 2)
	go func() { followed <- p.run("workflow", "show", "p-1", "--follow") }()
	go func() { followed <- p.run("workflow", "show", "p-1", "--follow", "-o", "json") }()
	p.worker()
	p.eventually("waiting for signal", "workflow", "why", "p-1")
	p.must("workflow", "signal", "p-1", "nod", "--input", "true")
	for range 2 {
		r := <-followed
		require.Zero(t, r.code, r.err)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if strings.HasPrefix(r.out, "{") {
			for _, line := range lines {
				require.True(t, json.Valid([]byte(line)), line)
			}
			require.Contains(t, lines[len(lines)-1], `"status":"COMPLETED"`)
			continue
		}
		require.Regexp(t, `(?m)^\d\d:\d\d:\d\d  DONE  send  attempt 1  \S+  p-1/send/1$`, r.out)
		require.Regexp(t, `^\d\d:\d\d:\d\d  COMPLETED  delivered  ended COMPLETED \d+ s ago$`, lines[len(lines)-1])
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, id := range []string{"a", "b", "it's c"} {
		p.must("workflow", "start", "parcel", id, "--input", `{"to":"Rome"}`)
	}
	out := p.must("workflow", "list", "--limit", "2")
	require.Regexp(t, `^ID  DEFINITION  STATUS   STATE    STEP  UPDATED\na   parcel v4   PENDING  packing  pack  \d+ s ago\nb .*\n\nmore: --after b\n$`, out)
	page := p.mustJSON("workflow", "list", "--limit", "2")
	require.Equal(t, "b", page["next"])
	page = p.mustJSON("workflow", "list", "--limit", "2", "--after", "b")
	require.Nil(t, page["next"])
	require.Len(t, page["workflows"], 1)
	require.Len(t, p.mustJSON("workflow", "list", "--status", "pending,HELD", "--definition", "parcel")["workflows"], 3)
	require.Empty(t, p.mustJSON("workflow", "list", "--status", "HELD")["workflows"])
	require.Equal(t, 3, strings.Count(p.must("workflow", "list", "-o", "jsonl"), "\n"))
}

// An empty list says what to try.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("migrate", "up")
	require.Equal(t, "no workflows yet. Start one, and a worker that runs it:\n"+
		"  workerd workflow start parcel parcel-1 --input '{}'\n  workerd run\n", p.must("workflow", "list"))
	require.Equal(t, "no workflow matches. List all:\n  workerd workflow list\n", p.must("workflow", "list", "--status", "HELD"))
	require.Equal(t, "no worker is alive, and none was within the last hour. Start one:\n  workerd run\n", p.must("worker", "list"))
	require.Equal(t, map[string]any{"workers": []any{}}, p.mustJSON("worker", "list"))
	require.Empty(t, p.must("worker", "list", "-o", "jsonl"))
}

func TestWorkerListAndBlock(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	block := p.worker("--concurrency", "7", "--lease", "3s").String()
	require.Regexp(t, `(?m)^workerd      \S+, go1`, block)
	require.Regexp(t, `(?m)^store        sqlite:/.*test\.db$`, block)
	require.Regexp(t, `(?m)^worker       host \S+, pid \d+, concurrency 7$`, block)
	require.Regexp(t, `(?m)^definitions  parcel v4, pawl-bulk v1$`, block)
	require.Regexp(t, `(?m)^timing       lease 3s, poll 20ms, drain timeout 25s$`, block)
	require.Regexp(t, `(?m)^\S+-\S+  \S+ +\d+ +alive  parcel v4, pawl-bulk v1  \d s ago  in \d s$`, p.must("worker", "list"))
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.Contains(t, p.fails(1, "migrate", "status"), "there is no database file")
	require.Regexp(t, `^applied 1 \w+\n`, p.must("migrate", "up"))
	require.Equal(t, "nothing to do: the schema is up to date\n", p.must("migrate", "up"))
	require.Regexp(t, `(?m)^1\s+\w+\s+\d+ s ago$`, p.must("migrate", "status"))
	status := p.mustJSON("migrate", "status")
	require.Zero(t, status["pending"])
}

// A file that holds no schema is told apart from one that is up to date.
func TestMigrateStatusOfAnEmptyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "empty.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	p := programOn(t, "sqlite:"+path)
	out := p.must("migrate", "status")
	require.Regexp(t, `(?m)^1\s+\w+\s+pending$`, out)
	require.Contains(t, out, "to apply: workerd migrate up\n")
}

// A mistyped path is an error, not an empty list.
func TestReadersDoNotCreateAFile(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for _, args := range [][]string{
		{"workflow", "list"}, {"workflow", "show", "x"}, {"workflow", "steps", "x"}, {"workflow", "why", "x"},
		{"workflow", "cancel", "x"}, {"workflow", "signal", "x", "nod", "--input", "true"}, {"worker", "list"}, {"migrate", "status"},
	} {
		text := p.fails(1, args...)
		require.Regexp(t, `^workerd: there is no database file ".*test\.db"; create it: workerd migrate up$`, text)
	}
	_, err := os.Stat(strings.TrimPrefix(p.env["PAWL_DATABASE_URL"], "sqlite:"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestInputComesFromWhereItSays(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	path := filepath.Join(t.TempDir(), "input.json")
	require.NoError(t, os.WriteFile(path, []byte("{\"to\":\"Rome\"}\n"), 0o600))
	p.must("workflow", "start", "parcel", "p-1", "--input", "@"+path)
	r := p.runWith(`{"to":"Rome"}`, "workflow", "start", "parcel", "p-1", "--input", "-", "-o", "json")
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, `{"id":"p-1","created":false,"status":"PENDING","workflow":null}`, r.out)
}

// Numbers are shown as they are stored, and nothing is escaped for HTML.
func TestPayloadsAreShownAsStored(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"<Rome> & \u0007é","grams":9007199254740993}`)
	require.Contains(t, p.must("workflow", "show", "p-1", "--payload", "-o", "jsonl"), `"grams":9007199254740993`)
	require.NotContains(t, p.must("workflow", "show", "p-1", "-o", "json"), `"data"`)
	p.must("workflow", "start", "parcel", "<2> & 3", "--input", `{"to":"Rome"}`)
	require.Contains(t, p.must("workflow", "why", "<2> & 3", "-o", "json"), `"id": "<2> & 3"`)
	require.NotContains(t, p.must("workflow", "show", "p-1", "--payload"), "\a")
}

// The keys of the JSON output are a promise.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	applied := p.mustJSON("migrate", "up")
	block := p.worker("-o", "json")
	started := p.mustJSON("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`, "--wait")
	p.must("workflow", "start", "parcel", "p-2", "--input", `{"to":"Rome","fail":"pack"}`)
	p.eventually("waiting for retry", "workflow", "why", "p-2")
	p.must("workflow", "start", "parcel", "p-3", "--input", `{"to":"Rome","grams":2000}`)
	show := p.mustJSON("workflow", "show", "p-1")
	payload := p.mustJSON("workflow", "show", "p-1", "--payload")
	waiting := p.mustJSON("workflow", "show", "p-2")
	list := p.mustJSON("workflow", "list")
	workers := p.mustJSON("worker", "list")
	var blockJSON map[string]any
	require.NoError(t, json.Unmarshal([]byte(block.String()), &blockJSON))

	workflow := "awaits cause created_at definition ended_at id owner reason revision state status step updated_at version wake_at"
	steps := "attempt ended_at error group key revision status step took_seconds"
	for name, c := range map[string]struct {
		value any
		keys  string
	}{
		"start":            {started, "created id status workflow"},
		"workflow":         {started["workflow"], workflow},
		"show":             {show, "steps why workflow"},
		"shown":            {show["workflow"], workflow},
		"payload":          {payload["workflow"], "awaits cause created_at data definition ended_at id owner reason revision state status step updated_at version wake_at"},
		"step":             {at(show["steps"], 0), steps},
		"step and payload": {at(payload["steps"], 0), "attempt ended_at error group input key output revision status step took_seconds"},
		"mark":             {waiting["workflow"].(map[string]any)["step"], "attempt crashes failures group key name"},
		"list":             {list, "next workflows"},
		"listed":           {at(list["workflows"], 0), workflow},
		"steps":            {p.mustJSON("workflow", "steps", "p-1"), "steps"},
		"why":              {p.mustJSON("workflow", "why", "p-1"), "id why"},
		"signal":           {p.mustJSON("workflow", "signal", "p-3", "nod", "--input", "true"), "accepted id signal"},
		"cancel":           {p.mustJSON("workflow", "cancel", "p-2"), "accepted id"},
		"workers":          {workers, "workers"},
		"worker":           {at(workers["workers"], 0), "dead_at definitions host id lease_ends_at pid started_at state"},
		"definition":       {at(at(workers["workers"], 0).(map[string]any)["definitions"], 0), "name version"},
		"migrate up":       {applied, "applied"},
		"migration":        {at(applied["applied"], 0), "applied_at name version"},
		"migrate status":   {p.mustJSON("migrate", "status"), "migrations pending"},
		"version":          {p.mustJSON("version"), "go name platform revision version"},
		"run":              {blockJSON, "concurrency definitions drain_timeout_seconds host lease_seconds name pid poll_seconds schema store version"},
	} {
		got := slices.Sorted(maps.Keys(c.value.(map[string]any)))
		require.Equal(t, c.keys, strings.Join(got, " "), name)
	}
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`, show["workflow"].(map[string]any)["created_at"])
	require.Nil(t, show["workflow"].(map[string]any)["wake_at"])
}

func at(list any, i int) any { return list.([]any)[i] }
