package engine

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

func TestWhySaysOneSentence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)
	order := store.Def{Name: "order", Version: 4}
	me, other := store.WorkerID{1}, store.WorkerID{2}
	alive := store.Worker{ID: me, Host: "a", PID: 311, Definitions: []store.Def{order}, ExpiresAt: now.Add(8 * time.Second)}
	expired, buried, stranger, second := alive, alive, alive, alive
	expired.ExpiresAt = now.Add(-time.Second)
	buried.DeadAt = now.Add(-time.Second)
	stranger.ID, stranger.Definitions = other, []store.Def{{Name: "order", Version: 3}}
	second.ID = other
	mark := store.Mark{Step: "charge-card", Group: 1, Attempt: 2, Failures: 2}

	for name, c := range map[string]struct {
		s    situation
		want string
	}{
		"retry": {
			situation{Info: Info{Status: store.Waiting, Mark: mark, WakeAt: now.Add(42 * time.Second), Reason: "bank is closed\nstack"}, attempts: 10},
			"waiting for retry (attempt 3 of 10, in 42 s; last error: bank is closed …)"},
		"retry without a limit": {
			situation{Info: Info{Status: store.Waiting, Mark: mark, WakeAt: now.Add(3 * time.Minute), Reason: "no"}, attempts: step.Forever},
			"waiting for retry (attempt 3, no limit, in 3 min; last error: no)"},
		"retry of an unknown definition": {
			situation{Info: Info{Status: store.Waiting, Mark: mark, WakeAt: now.Add(time.Second), Reason: "no"}},
			"waiting for retry (attempt 3, in 1 s; last error: no)"},
		"retry after crashes too": {
			situation{Info: Info{Status: store.Waiting, Mark: store.Mark{Step: "charge-card", Attempt: 4, Failures: 2}, WakeAt: now.Add(time.Second), Reason: "no"}, attempts: 10},
			"waiting for retry (attempt 5, 2 of 10 failures, in 1 s; last error: no)"},
		"pause after crashes": {
			situation{Info: Info{Status: store.Pending, Mark: store.Mark{Step: "charge-card", Attempt: 2, Crashes: 2}, WakeAt: now.Add(4 * time.Second)}},
			"waiting to run step charge-card again (attempt 3, in 4 s; its worker died 2 times in a row)"},
		"signal": {
			situation{Info: Info{Status: store.Waiting, Awaits: "approval", UpdatedAt: now.Add(-58 * time.Minute), WakeAt: now.Add(47 * time.Hour)}},
			"waiting for signal approval since 14:02 UTC, times out in 47 h"},
		"signal of another day, no limit": {
			situation{Info: Info{Status: store.Waiting, Awaits: "approval", UpdatedAt: now.Add(-48 * time.Hour)}},
			"waiting for signal approval since 2026-03-02 15:00 UTC, without a time limit"},
		"signal that has come": {
			situation{Info: Info{Status: store.Waiting, Awaits: "approval"}, mail: true, workers: []store.Worker{alive}},
			"ready, waiting for a free worker (1 live worker knows order v4)"},
		"signal whose time is over": {
			situation{Info: Info{Status: store.Waiting, Awaits: "approval", WakeAt: now}, workers: []store.Worker{stranger}},
			"no live worker knows order v4"},
		"sleep": {
			situation{Info: Info{Status: store.Waiting, WakeAt: now.Add(3 * time.Hour)}},
			"sleeping until 18:00 UTC (in 3 h)"},
		"long sleep": {
			situation{Info: Info{Status: store.Waiting, WakeAt: now.Add(30 * 24 * time.Hour)}},
			"sleeping until 2026-04-03 15:00 UTC (in 30 days)"},
		"running": {
			situation{Info: Info{Status: store.Pending, Mark: mark, Owner: me}, workers: []store.Worker{alive}},
			"running step charge-card, attempt 2, on worker 01000000-0000-0000-0000-000000000000 (host a, pid 311), lease ends in 8 s"},
		"owned without a step": {
			situation{Info: Info{Status: store.Waiting, Owner: me}, workers: []store.Worker{alive}},
			"being looked at on worker 01000000-0000-0000-0000-000000000000 (host a, pid 311), lease ends in 8 s"},
		"its worker's lease is over": {
			situation{Info: Info{Status: store.Pending, Mark: mark, Owner: me}, workers: []store.Worker{expired, second}, poll: 4 * time.Second},
			"its worker is dead; will be taken over within 4 s"},
		"its worker is buried": {
			situation{Info: Info{Status: store.Pending, Mark: mark, Owner: me}, workers: []store.Worker{buried, second}, poll: time.Millisecond},
			"its worker is dead; will be taken over within 1 s"},
		"its worker is forgotten, another does not know it": {
			situation{Info: Info{Status: store.Pending, Mark: mark, Owner: me}, workers: []store.Worker{stranger}},
			"its worker is dead; no live worker knows order v4"},
		"its worker is dead, alone": {
			situation{Info: Info{Status: store.Pending, Mark: mark, Owner: me}, workers: []store.Worker{expired}},
			"its worker is dead; no live worker knows order v4: no worker is alive"},
		"nobody knows it": {
			situation{Info: Info{Status: store.Pending, Mark: mark, WakeAt: now}, workers: []store.Worker{stranger}},
			"no live worker knows order v4"},
		"nobody is there": {
			situation{Info: Info{Status: store.Pending, Mark: mark, WakeAt: now}},
			"no live worker knows order v4: no worker is alive"},
		"ready": {
			situation{Info: Info{Status: store.Pending, Mark: mark, WakeAt: now.Add(-time.Second)}, workers: []store.Worker{alive, second, expired, buried, stranger}},
			"ready, waiting for a free worker (2 live workers know order v4)"},
		"held": {
			situation{Info: Info{Status: store.Held, Mark: mark, Reason: "undo refund-card failed 5 times: no"}},
			"held: undo refund-card failed 5 times: no"},
		"completed": {
			situation{Info: Info{Status: store.Completed, EndedAt: now.Add(-3 * time.Minute)}},
			"ended COMPLETED 3 min ago"},
		"compensated": {
			situation{Info: Info{Status: store.Compensated, Cause: statemachine.Cancelled, Reason: "changed my mind", EndedAt: now.Add(-2 * time.Second)}},
			"ended COMPENSATED 2 s ago (cancelled: changed my mind)"},
		"compensated by the graph": {
			situation{Info: Info{Status: store.Compensated, Cause: statemachine.Chosen, EndedAt: now}},
			"ended COMPENSATED 0 s ago (chosen)"},
		"expired": {
			situation{Info: Info{Status: store.Expired}},
			"expired: only its id is left"},
		"undoing": {
			situation{Info: Info{Status: store.Compensating, Cause: statemachine.Refused, Mark: store.Mark{Step: "refund-card", Attempt: 1}, Owner: me}, workers: []store.Worker{alive}},
			"compensating (refused): running undo refund-card, attempt 1, on worker 01000000-0000-0000-0000-000000000000 (host a, pid 311), lease ends in 8 s"},
		"undo pauses": {
			situation{Info: Info{Status: store.Compensating, Cause: statemachine.Exhausted, Mark: store.Mark{Step: "refund-card", Attempt: 1, Failures: 1}, WakeAt: now.Add(time.Minute), Reason: "no"}, attempts: 5},
			"compensating (exhausted): waiting for retry of undo refund-card (attempt 2 of 5, in 60 s; last error: no)"},
		"undo waits for a worker": {
			situation{Info: Info{Status: store.Compensating, Mark: store.Mark{Step: "refund-card"}}, workers: []store.Worker{alive}},
			"compensating: ready, waiting for a free worker (1 live worker knows order v4)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.s.Definition, c.s.now = order, now
			require.Equal(t, c.want, c.s.why())
		})
	}
}

func TestSpanIsOneNumber(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", time.Nanosecond: "1 s", time.Minute: "60 s", 2 * time.Minute: "120 s",
		2*time.Minute + 1: "3 min", 2 * time.Hour: "120 min", 3 * time.Hour: "3 h", 72 * time.Hour: "72 h", 72*time.Hour + 1: "4 days",
	} {
		require.Equal(t, want, span(d), d.String())
	}
}

// A text of any length stays a sentence, cut between characters.
func TestOneLineCutsLongErrors(t *testing.T) {
	t.Parallel()
	long := ""
	for range 200 {
		long += "é"
	}
	got := oneLine(long)
	require.LessOrEqual(t, len(got), oneLineBytes+len(" …"))
	require.Equal(t, "short", oneLine(" short \n"))
}

func TestWhyReadsTheStore(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "why.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	eng, err := New(st, Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	door := statemachine.Signal[bool]{Name: "knock"}
	doors, err := Register(eng, statemachine.Definition[int]{
		Name: "door", Version: 1, Start: "waiting",
		States: statemachine.States[int]{
			"waiting": statemachine.Await(door, func(n *int, _ bool) { *n++ }).Then("open"),
		},
		Ends: statemachine.Ends{"open": statemachine.Completed, "shut": statemachine.RolledBack}, OnFailure: "shut",
	})
	require.NoError(t, err)

	_, err = eng.Why(t.Context(), "door-1")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = eng.Why(t.Context(), " ")
	require.ErrorIs(t, err, ErrBadID)

	_, err = doors.Start(t.Context(), "door-1", 0)
	require.NoError(t, err)
	why, err := eng.Why(t.Context(), "door-1")
	require.NoError(t, err)
	require.Regexp(t, `^waiting for signal knock since \d\d:\d\d UTC, without a time limit$`, why)

	require.NoError(t, Signal(t.Context(), eng, "door-1", door, true))
	why, err = eng.Why(t.Context(), "door-1")
	require.NoError(t, err)
	require.Equal(t, "no live worker knows door v1: no worker is alive", why)
}

// How many attempts a step has comes from the definition that is registered.
func TestWhyKnowsThePolicy(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "policy.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	eng, err := New(st, Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ring := step.Call("ring", func(context.Context, step.Key, int) (step.None, error) { return step.None{}, nil })
	m, err := statemachine.Definition[int]{
		Name: "call", Version: 1, Start: "calling",
		States: statemachine.States[int]{
			"calling": statemachine.Do(ring.With(step.Policy{Attempts: 3}).NoUndo("a ring fades"), func(n int) int { return n }, nil).Then("rung"),
		},
		Ends: statemachine.Ends{"rung": statemachine.Completed, "silent": statemachine.RolledBack}, OnFailure: "silent",
	}.Compile()
	require.NoError(t, err)
	def := store.Def{Name: "call", Version: 1}
	eng.defs[def] = &registered{def: def, machine: m}

	require.Equal(t, 3, eng.attemptsOf(Info{Definition: def, Mark: store.Mark{Step: "ring"}}))
	require.Zero(t, eng.attemptsOf(Info{Definition: def}))
	require.Zero(t, eng.attemptsOf(Info{Definition: store.Def{Name: "call", Version: 2}, Mark: store.Mark{Step: "ring"}}))
}
