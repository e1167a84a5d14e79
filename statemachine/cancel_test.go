package statemachine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// TestCancel is the table of what a request to cancel meets.
func TestCancel(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	at := func(data string, outs ...string) Cursor {
		p := begin(t, m, data)
		p.done(outs...)
		return p.c
	}
	with := func(c Cursor, change func(*Cursor)) Cursor { change(&c); return c }
	held := func(c *Cursor) { c.From, c.Phase, c.Reason = c.Phase, Held, "too deep" }
	again := func(c *Cursor) { c.Mark.Attempt = 2 }
	failed := func(c *Cursor) { c.Mark.Failures = 1 }
	paused := func(c *Cursor) { c.Mark.Failures, c.Phase, c.Reason = 1, Waiting, "lost" }
	crashed := func(c *Cursor) { c.Mark.Crashes = 1 }
	var (
		charge    = at(small, `"s"`)
		approve   = at(big, `"s"`, `"p"`)
		pivot     = at(small, `"s"`, `"p"`)
		late      = at(small, `"s"`, `"p"`, `"l"`)
		completed = at(small, `"s"`, `"p"`, `"l"`, "{}")
		rollback  = begin(t, m, small)
	)
	rollback.done(`"s"`)
	rollback.take(StepFailed{Rejected: true})

	for _, tt := range []struct {
		name    string
		c       Cursor
		begun   bool
		verdict CancelVerdict
		undo    string // the first one
		unknown string // the step that is recorded as Unknown
	}{
		{"nothing has begun", at(small), false, CancelAccepted, "", ""},
		{"the step has not begun", charge, false, CancelAccepted, "release-stock", ""},
		{"the step has begun", charge, true, CancelAccepted, "refund-card", "charge-card"},
		{"a second attempt", with(charge, again), false, CancelAccepted, "refund-card", "charge-card"},
		{"a failed attempt", with(charge, failed), false, CancelAccepted, "refund-card", "charge-card"},
		{"a pause", with(charge, paused), false, CancelAccepted, "refund-card", "charge-card"},
		{"a crashed attempt", with(charge, crashed), false, CancelAccepted, "refund-card", "charge-card"},
		{"a wait", approve, false, CancelAccepted, "refund-card", ""},
		{"the pivot has not begun", pivot, false, CancelAccepted, "refund-card", ""},
		{"the pivot has begun", pivot, true, CancelDeferred, "", ""},
		{"a second attempt of the pivot", with(pivot, again), false, CancelDeferred, "", ""},
		{"a failed attempt of the pivot", with(pivot, paused), false, CancelDeferred, "", ""},
		{"a crashed attempt of the pivot", with(pivot, crashed), false, CancelDeferred, "", ""},
		{"behind the pivot", late, false, CancelPastPivot, "", ""},
		{"behind the pivot, begun", late, true, CancelPastPivot, "", ""},
		{"completed", completed, false, CancelTooLate, "", ""},
		{"a rollback", rollback.c, false, CancelTooLate, "", ""},
		{"a rollback, begun", rollback.c, true, CancelTooLate, "", ""},
		{"held in a step", with(charge, held), false, CancelAccepted, "release-stock", ""},
		{"held in a step that may have run", with(with(charge, crashed), held), false, CancelAccepted, "refund-card", "charge-card"},
		{"held in a wait", with(approve, held), false, CancelAccepted, "refund-card", ""},
		{"held in the pivot", with(with(pivot, failed), held), false, CancelDeferred, "", ""},
		{"held behind the pivot", with(late, held), false, CancelPastPivot, "", ""},
		{"held in a rollback", with(rollback.c, held), false, CancelTooLate, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &play{TB: t, m: m, c: tt.c}
			cmds := p.take(CancelAsked{Reason: "changed my mind", Begun: tt.begun})
			wants(t, cmds[:1], Answer{tt.verdict})
			if tt.verdict != CancelAccepted {
				require.Len(t, cmds, 1)
				require.Equal(t, tt.c, p.c)
				return
			}
			require.Equal(t, Cancelled, p.c.Cause)
			require.Equal(t, "changed my mind", p.c.Reason)
			require.Equal(t, cancelled, p.c.End)
			require.Empty(t, p.c.Awaits)
			require.Zero(t, p.c.From)
			require.Equal(t, tt.undo, p.c.Mark.Step)
			records := cmds[1:]
			if tt.undo != "" {
				records = records[:len(records)-1] // the undo that runs
				require.Equal(t, tt.unknown == "", cmds[len(cmds)-1].(RunStep).Undoes.Known)
			}
			if tt.unknown == "" {
				require.Empty(t, records, "what has not run is not recorded")
				return
			}
			wants(t, records, Record{
				Step: tt.unknown, Group: 1, Outcome: Unknown, Attempt: tt.c.Mark.Attempt, In: []byte("4990"), Error: "changed my mind",
			})
		})
	}
}

// TestCancelOfWhatHasNoEffect: an InTx or a Func that was cut off left nothing.
func TestCancelOfWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	f := compile(t, trips(States[trip]{"start": Do(step.Func("work", fn[int, int]), trip.times, nil).Then("sort")}))
	for _, p := range []*play{begin(t, compile(t, orderSaga()), small), begin(t, f, "{}")} {
		name := p.c.Mark.Step
		wants(t, p.take(CancelAsked{Reason: "enough", Begun: true}),
			Answer{CancelAccepted},
			Record{Step: name, Group: 1, Outcome: NoEffect, Attempt: 1, Error: "enough"})
		require.Equal(t, Ended, p.c.Phase)
	}
}

func TestCancelBeforeTheStartDoesNotFit(t *testing.T) {
	t.Parallel()
	p := &play{TB: t, m: compile(t, orderSaga())}
	require.ErrorIs(t, p.refuses(CancelAsked{}), ErrUnexpected)
}

// TestCancelDoesNotForgetAMarkItDoesNotKnow: the step may have had an effect.
func TestCancelDoesNotForgetAMarkItDoesNotKnow(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.c.Mark.Step = "pack"
	require.ErrorIs(t, p.refuses(CancelAsked{}), ErrUnexpected)
}
