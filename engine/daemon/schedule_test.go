package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The way of a schedule from its creation to its end, by the commands alone.
func TestScheduleCommands(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	create := []string{"schedule", "create", "parcel", "nightly", "--cron", "30 2 * * *", "--zone", "America/New_York", "--input", `{"to":"Rome"}`}
	require.Equal(t, "created nightly: every day at 02:30 (America/New_York); see: workerd schedule show nightly\n", p.must(create...))
	require.Contains(t, p.must(create...), "was there already: nightly")
	p.worker()

	out := p.must("schedule", "list")
	require.Regexp(t, `(?m)^NAME     DEFINITION  WHEN +NEXT +LAST +STATE$`, out)
	require.Regexp(t, `(?m)^nightly  parcel      every day at 02:30 \(America/New_York\)  in \d+ \S+ +- +active$`, out)

	out = p.must("schedule", "trigger", "nightly")
	require.Regexp(t, `^started nightly/\S+Z; see: workerd workflow show nightly/\S+Z\n$`, out)
	id := strings.TrimSuffix(strings.Fields(out)[1], ";")
	p.eventually("COMPLETED", "workflow", "show", id)
	require.Regexp(t, `started [67] workflows of nightly`, p.must("schedule", "backfill", "nightly", "--from", "2025-03-07T00:00:00Z", "--to", "2025-03-13T12:00:00Z"))
	require.Contains(t, p.must("schedule", "backfill", "nightly", "--from", "2025-03-07T00:00:00Z", "--to", "2025-03-13T12:00:00Z"), "started 0 workflows")

	out = p.must("schedule", "show", "nightly", "--payload")
	require.Regexp(t, `(?m)^when +every day at 02:30 \(America/New_York\)$`, out)
	require.Regexp(t, `(?m)^data +\{"to":"Rome"\}$`, out)
	require.Regexp(t, `(?m)^2025-03-09T07:00:00Z +FIRED +backfill .* nightly/2025-03-09T07:00:00Z$`, out)
	require.Regexp(t, `FIRED +trigger`, out)
	require.NotContains(t, p.must("schedule", "show", "nightly"), "Rome", "payloads are shown only when asked for")

	require.Equal(t, "paused nightly; see: workerd schedule resume nightly\n", p.must("schedule", "pause", "nightly", "--reason", "holidays"))
	require.Regexp(t, `(?m)^paused +\d+ s ago: holidays$`, p.must("schedule", "show", "nightly"))
	require.Regexp(t, `paused\n$`, p.must("schedule", "list"))
	require.Equal(t, "resumed nightly; see: workerd schedule show nightly\n", p.must("schedule", "resume", "nightly"))

	info := p.mustJSON("schedule", "show", "nightly")["schedule"].(map[string]any)
	require.Equal(t, "active", info["state"])
	require.Len(t, info["next"], 5)
	require.Nil(t, info["paused_at"])
	require.Equal(t, "deleted nightly\n", p.must("schedule", "delete", "nightly"))
	require.Contains(t, p.must("schedule", "list"), "no schedules. Create one:")
}

func TestScheduleRefusals(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	create := func(args ...string) []string {
		return append([]string{"schedule", "create", "parcel", "s", "--input", "{}"}, args...)
	}
	p.must(create("--every", "1h")...)
	for text, c := range map[string]struct {
		code int
		args []string
	}{
		"cron: it never fires: there is no such date; see what there is to say": {2, create("--cron", "0 0 30 2 *")},
		"it names a zone":             {2, create("--cron", "CRON_TZ=UTC")},
		"10240 bytes, at most 256":    {2, create("--cron", strings.Repeat(",", 10<<10))},
		"should be a positive number": {2, create("--cron", "*/0 * * * *")},
		"not in the IANA database":    {2, create("--cron", "@daily", "--zone", "Mars")},
		"no interval either":          {2, create()},
		`overlap: "stop"`:             {2, create("--every", "1h", "--overlap", "stop")},
		"schedule exists with another spec; see it: workerd schedule show s": {4, create("--every", "2h")},
		"no such schedule; list what is there: workerd schedule list":        {3, []string{"schedule", "trigger", "nope"}},
		"--from \"\": it is a time":                                          {2, []string{"schedule", "backfill", "s"}},
		"more than 1000 slots":                                               {2, []string{"schedule", "backfill", "s", "--from", "2020-01-01T00:00:00Z", "--to", "2025-01-01T00:00:00Z"}},
		"bad id":                                                             {2, []string{"schedule", "show", ""}},
	} {
		require.Contains(t, p.fails(c.code, c.args...), text)
	}
}
