package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A workflow that is HELD is freed by the commands alone, and it is on record
// who has done it.
func TestVerbsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	r := p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"Mars","fail":"unpack"}`, "--wait", "--timeout", "60s")
	require.Contains(t, r.out, "p-1 HELD")

	require.Equal(t, "would skip p-1: HELD in sending -> COMPENSATED in returned; see: workerd workflow why p-1\n",
		p.must("workflow", "skip", "p-1", "--dry-run"))
	require.Equal(t, "nobody has asked anything of p-1\n", p.must("workflow", "audit", "p-1"))
	r = p.run("workflow", "resolve", "p-1", "--applied", `null`)
	require.Equal(t, 4, r.code)
	require.Equal(t, "workerd: resolve-applied workflow \"p-1\": undo unpack is held, not a step: force it if it has been done, or retry it; see how it stands: workerd workflow why p-1\n", r.err)
	require.Equal(t, 2, p.run("workflow", "resolve", "p-1").code)
	require.Equal(t, 2, p.run("workflow", "terminate", "p-1").code, "not without --force")
	require.Equal(t, 4, p.run("workflow", "delete", "p-1", "--force").code, "not before its end")
	require.Equal(t, 3, p.run("workflow", "retry", "p-2").code)

	skip := []string{"workflow", "skip", "p-1", "--actor", "ann", "--reason", "glued for ever", "--request-id", "r1"}
	require.Equal(t, "skip p-1: HELD in sending -> COMPENSATED in returned; see: workerd workflow why p-1\n", p.must(skip...))
	require.Equal(t, "did skip before p-1: HELD in sending -> COMPENSATED in returned; see: workerd workflow why p-1\n", p.must(skip...))
	require.Regexp(t, `(?m)^unpack  1      FAILED `, p.must("workflow", "steps", "p-1"))
	require.Regexp(t, `(?m)^\d+ s ago  skip  ann    glued for ever  HELD in sending  COMPENSATED in returned  -$`, p.must("workflow", "audit", "p-1"))

	out := p.mustJSON("workflow", "delete", "p-1", "--force", "-o", "json")
	require.Equal(t, "EXPIRED", out["after"])
	require.Contains(t, p.must("workflow", "list"), "EXPIRED")
	require.Equal(t, 4, p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"Mars","fail":"unpack"}`).code)
	audit := p.mustJSON("workflow", "audit", "p-1", "-o", "json")["audit"].([]any)
	require.Len(t, audit, 2)
	require.Equal(t, "glued for ever", audit[0].(map[string]any)["reason"])
}

// SCENARIO 22: what an undo has failed with is told in the same words by the
// engine and by the commands, and it has a code of its own.
func TestAHeldUndoIsToldEverywhere(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	r := p.run("workflow", "start", "parcel", "p-1", "--input", `{"to":"Mars","fail":"unpack"}`, "--wait", "--timeout", "60s")
	require.Equal(t, 1, r.code)
	const reason = "undo unpack was refused: it is glued"
	w := p.mustJSON("workflow", "show", "p-1", "-o", "json")["workflow"].(map[string]any)
	require.Equal(t, "HELD", w["status"])
	require.Equal(t, reason, w["reason"])
	require.Equal(t, "held: "+reason+"\n", p.must("workflow", "why", "p-1"))
}

// An order to all that a query selects is counted first, and then a workflow.
func TestBulkFromTheCommandLine(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	for _, id := range []string{"p-1", "p-2"} {
		p.run("workflow", "start", "parcel", id, "--input", `{"to":"Mars","fail":"unpack"}`, "--wait", "--timeout", "60s")
	}
	const query = "type:parcel status:held since:1h"
	require.Equal(t, "\""+query+"\" selects 2 workflows, such as p-1, p-2\nnothing was done: pass --yes to skip them\n", p.must("workflow", "skip", "-q", query))
	require.Equal(t, 2, p.run("workflow", "skip", "-q", "colour:red").code)
	require.Equal(t, 2, p.run("workflow", "skip", "p-1", "-q", query).code)
	require.Equal(t, "\"status:completed\" selects 0 workflows\n", p.must("workflow", "cancel", "-q", "status:completed", "--yes"))
	out := p.must("workflow", "skip", "-q", query, "--yes", "--request-id", "tidy-up", "--reason", "glued")
	require.Contains(t, out, "started tidy-up, which gives each the order to skip; see: workerd workflow show tidy-up --payload\n")
	p.eventually("COMPLETED", "workflow", "show", "tidy-up")
	require.Contains(t, p.must("workflow", "show", "tidy-up", "--payload"), `"done":2,"refused":0`)
	for _, id := range []string{"p-1", "p-2"} {
		p.eventually("COMPENSATED", "workflow", "show", id)
		require.Contains(t, p.must("workflow", "audit", id), "glued")
	}
}
