package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A fork by the commands: what would come of it, then the copy, once.
func TestForkFromTheCommandLine(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.worker()
	p.must("workflow", "start", "parcel", "a", "--input", `{"to":"Rome"}`, "--wait", "--timeout", "60s")
	fork := []string{"workflow", "fork", "a", "b", "--from-step", "pack", "--input", `{"to":"Rome"}`, "--request-id", "r"}
	require.Regexp(t, `^would fork a: b begins in packing; asks again with the keys a/pack/1.*; see: workerd workflow why b\n$`, p.must(append(fork, "--dry-run")...))
	require.Equal(t, 3, p.run("workflow", "show", "b").code)
	require.Regexp(t, `^forked a: b begins in packing`, p.must(fork...))
	p.eventually("COMPLETED", "workflow", "show", "b")
	require.Regexp(t, `(?m)^pack .* a/pack/1$`, p.must("workflow", "steps", "b"))
	require.Regexp(t, `^did fork before: a: b begins`, p.must(fork...))
	out := p.mustJSON(append(fork, "-o", "json")...)
	require.Equal(t, true, out["repeated"])
	require.Contains(t, out["keeps"], "a/pack/1")
	require.Regexp(t, `fork +\S+ `, p.must("workflow", "audit", "a"))

	for text, args := range map[string][]string{
		"--from-step names the step": {"workflow", "fork", "a", "c"},
		"its input is needed":        {"workflow", "fork", "a", "c", "--from-step", "pack"},
		"is taken":                   {"workflow", "fork", "a", "b", "--from-step", "pack", "--input", `{"to":"Rome"}`},
	} {
		r := p.run(args...)
		require.NotZero(t, r.code)
		require.Contains(t, r.err, text)
	}
}
