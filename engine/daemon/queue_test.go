package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue from its creation on, by the commands alone.
func TestQueueCommands(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.Equal(t, "set payments: limits: 2 at once, 1 a key, 5 in 1m0s (burst 5); 0 run, 0 wait\n",
		p.must("queue", "set", "payments", "--concurrency", "2", "--per-key", "1", "--rate", "5", "--period", "1m"))
	require.Regexp(t, `^paused payments: `, p.must("queue", "pause", "payments", "--reason", "provider down"))
	p.must("workflow", "start", "parcel", "a", "--input", `{"to":"Rome"}`, "--queue", "payments", "--queue-key", "rome", "--priority", "7")
	p.must("workflow", "start", "parcel", "b", "--input", `{"to":"Rome"}`, "--queue", "payments", "--delay", "1h")
	p.worker()

	out := p.must("queue", "list")
	require.Regexp(t, `(?m)^QUEUE +RUNNING +WAITING +LATER +OLDEST +LIMITS +PAUSED$`, out)
	require.Regexp(t, `(?m)^payments +0 +1 +1 +\d+ s ago +2 at once, 1 a key, 5 in 1m0s \(burst 5\) +\d+ s ago by .*: provider down$`, out)
	require.Regexp(t, `^queue payments is paused by .*: provider down\n$`, p.must("workflow", "why", "a"))
	require.Regexp(t, `^begins at .* \(in 60 min\)\n$`, p.must("workflow", "why", "b"))
	require.Regexp(t, `(?m)^queue +payments, key rome, priority 7$`, p.must("workflow", "show", "a"))
	q := p.mustJSON("workflow", "show", "a")["workflow"].(map[string]any)["queue"].(map[string]any)
	require.Equal(t, map[string]any{"name": "payments", "key": "rome", "priority": 7.0}, q)

	require.Regexp(t, `^resumed payments: `, p.must("queue", "resume", "payments"))
	p.eventually("COMPLETED", "workflow", "show", "a")
	require.Equal(t, "set payments: limits: none; 0 run, 0 wait\n", p.must("queue", "set", "payments"))
	require.EqualValues(t, 1, p.mustJSON("queue", "list")["queues"].([]any)[0].(map[string]any)["later"])
}

func TestQueueRefusals(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("migrate", "up")
	require.Contains(t, p.must("queue", "list"), "no queues yet.")
	for text, c := range map[string]struct {
		code int
		args []string
	}{
		"no such queue; list what is there: workerd queue list": {3, []string{"queue", "pause", "nope"}},
		"concurrency -1: 0 to 1000000":                          {2, []string{"queue", "set", "q", "--concurrency", "-1"}},
		`queue "a b"`:                                           {2, []string{"queue", "set", "a b"}},
		"name one with InQueue":                                 {2, []string{"workflow", "start", "parcel", "x", "--input", "{}", "--priority", "1"}},
	} {
		r := p.run(c.args...)
		require.Equal(t, c.code, r.code, text)
		require.Contains(t, r.err, text)
	}
}
