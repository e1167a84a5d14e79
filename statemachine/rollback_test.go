package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// atPivot leads an order to the point of no return.
func atPivot(t testing.TB) *play {
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`, `"p"`)
	p.at(Running, shipping, first("print-label"))
	return p
}

func TestRollbackNewestFirst(t *testing.T) {
	t.Parallel()
	p := atPivot(t)
	wants(t, p.take(StepFailed{Error: "no", Rejected: true}),
		Record{Step: "print-label", Group: 1, Outcome: NoEffect, Attempt: 1, Error: "no"},
		undoes("refund-card", "charge-card", "4990", `"p"`))
	p.at(RollingBack, shipping, first("refund-card"))
	wants(t, p.take(StepDone{}),
		Record{Step: "refund-card", Group: 1, Outcome: Done, Attempt: 1},
		undoes("release-stock", "reserve-stock", "4990", `"s"`))
	p.at(RollingBack, shipping, first("release-stock"))
	wants(t, p.take(StepDone{}), Record{Step: "release-stock", Group: 1, Outcome: Done, Attempt: 1})
	p.at(Ended, cancelled, Mark{})
	require.Equal(t, cancelled, p.c.End)
	require.Equal(t, Refused, p.c.Cause)
	require.Equal(t, "step print-label was refused: no", p.c.Reason)
}

// TestTheRollbackBeginsWithTheFailedStep, since it may have had its effect.
func TestTheRollbackBeginsWithTheFailedStep(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	cmds := p.take(StepFailed{Error: "lost", Final: true})
	wants(t, cmds[1:], undoesUnknown("refund-card", "charge-card", "4990"))
	wants(t, p.take(StepDone{})[1:], undoes("release-stock", "reserve-stock", "4990", `"s"`))
}

func TestRollbackNeedsThePast(t *testing.T) {
	t.Parallel()
	p := atPivot(t)
	past := p.c.Past
	p.c.Past, p.c.PastKnown = nil, false
	for _, e := range []Event{StepFailed{Rejected: true}, CancelAsked{}} {
		require.ErrorIs(t, p.refuses(e), ErrNeedsPast)
	}
	p.c.Past, p.c.PastKnown = past, true
	p.take(CancelAsked{})
	p.at(RollingBack, shipping, first("refund-card"))
	p.c.Past, p.c.PastKnown = nil, false
	for _, e := range []Event{StepDone{}, Interrupted{}, Resumed{}} {
		require.ErrorIs(t, p.refuses(e), ErrNeedsPast)
	}
	wants(t, p.take(StepFailed{}), Wake{After: time.Second}) // a pause needs none
}

func TestWithoutUndosThePastIsNotNeeded(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{"start": Sleep(trip.pause).Then("sort")}))
	p := &play{TB: t, m: m, c: Cursor{Data: []byte("{}")}}
	p.take(Started{})
	p.take(CancelAsked{Reason: "enough"})
	p.at(Ended, "bad", Mark{})
}

// TestWhatIsLeftToUndo follows from the records alone.
func TestWhatIsLeftToUndo(t *testing.T) {
	t.Parallel()
	var (
		reserved = Past{Step: "reserve-stock", Group: 1, Outcome: Done, In: []byte("1"), Out: []byte(`"s"`)}
		charged  = Past{Step: "charge-card", Group: 1, Outcome: Done, In: []byte("2"), Out: []byte(`"p"`)}
		maybe    = Past{Step: "charge-card", Group: 1, Outcome: Unknown, In: []byte("2")}
		refused  = Past{Step: "charge-card", Group: 1, Outcome: NoEffect}
		mailed   = Past{Step: "mail-receipt", Group: 1, Outcome: Done}
		foreign  = Past{Step: "pack", Group: 1, Outcome: Done}
		refunded = Past{Step: "refund-card", Group: 1, Outcome: Done}
		released = Past{Step: "release-stock", Group: 1, Outcome: Done}
		other    = Past{Step: "refund-card", Group: 2, Outcome: Done}
		failed   = Past{Step: "refund-card", Group: 1, Outcome: Unknown}
	)
	for _, tt := range []struct {
		past []Past
		want string
	}{
		{nil, ""},
		{[]Past{reserved}, "release-stock"},
		{[]Past{reserved, charged}, "refund-card"},
		{[]Past{reserved, maybe}, "refund-card"},
		{[]Past{reserved, refused}, "release-stock"},
		{[]Past{reserved, mailed, foreign}, "release-stock"},
		{[]Past{reserved, charged, refunded}, "release-stock"},
		{[]Past{reserved, charged, other}, "refund-card"},
		{[]Past{reserved, charged, failed}, "refund-card"},
		{[]Past{reserved, charged, refunded, released}, ""},
		{[]Past{refunded, charged}, "refund-card"},
	} {
		p := &play{TB: t, m: compile(t, orderSaga()), c: Cursor{
			ID: "w", State: charging, Phase: RollingBack, End: cancelled, Cause: Refused, Past: tt.past, PastKnown: true,
		}}
		p.take(Resumed{})
		require.Equal(t, tt.want, p.c.Mark.Step, "%v", tt.past)
		require.Equal(t, tt.want == "", p.c.Phase == Ended, "%v", tt.past)
	}
}

func TestAnUndoIsTriedAgain(t *testing.T) {
	t.Parallel()
	p := atPivot(t)
	p.take(CancelAsked{Reason: "changed my mind"})
	p.c.Mark.Crashes = 1
	wants(t, p.take(StepFailed{Error: "lost"}), Wake{After: time.Second})
	p.at(RollingBack, shipping, Mark{Step: "refund-card", Group: 1, Attempt: 1, Failures: 1})
	require.Equal(t, "lost", p.c.Reason)

	p.c.Mark.Attempt = 2
	for _, e := range []Event{Resumed{}, TimerFired{}} {
		wants(t, p.take(e), undoes("refund-card", "charge-card", "4990", `"p"`))
	}
	wants(t, p.take(Interrupted{}), undoes("refund-card", "charge-card", "4990", `"p"`))
	p.take(StepFailed{Error: "lost again", Pause: new(time.Duration)})
	require.Equal(t, "undo refund-card failed 2 times: lost again", p.c.Reason)
	p.c.Phase, p.c.From = RollingBack, 0 // a person lets it go on
	cmds := p.take(StepDone{})
	require.Equal(t, 3, cmds[0].(Record).Attempt)
	require.Equal(t, "changed my mind", p.c.Reason, "not the failure that was got over")
	require.Empty(t, p.c.Why)
}

func TestAnUndoThatFailsForGoodIsHeld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failures int
		event    StepFailed
		reason   string
	}{
		{1, StepFailed{Error: "lost"}, "undo refund-card failed 2 times: lost"},
		{0, StepFailed{Error: "no JSON", Final: true}, "undo refund-card failed once: no JSON"},
		{0, StepFailed{Error: "no", Rejected: true}, "undo refund-card was refused: no"},
	} {
		p := atPivot(t)
		p.take(CancelAsked{Reason: "changed my mind"})
		p.c.Mark.Failures = tt.failures
		before := p.c
		require.Empty(t, p.take(tt.event))
		require.Equal(t, tt.reason, p.c.Reason)
		require.Equal(t, "changed my mind", p.c.Why)
		before.Mark.Failures++
		before.Why = p.c.Why
		requireHeld(t, before, p.c)
	}
}

func TestAnUndoThatKeepsKillingItsWorkerIsHeld(t *testing.T) {
	t.Parallel()
	p := atPivot(t)
	p.take(CancelAsked{})
	p.c.Mark.Crashes = MaxCrashes
	before := p.c
	require.Empty(t, p.take(Resumed{}))
	require.Equal(t, "undo refund-card crashed its worker 5 times", p.c.Reason)
	requireHeld(t, before, p.c)
}

func TestAnUndoWithoutItsRecordDoesNotRun(t *testing.T) {
	t.Parallel()
	p := atPivot(t)
	p.take(CancelAsked{})
	p.c.Past = p.c.Past[:1]
	require.ErrorIs(t, p.refuses(Resumed{}), ErrUnexpected)
}

// TestAFailedEndUndoesNothing, on purpose, and tells why it came to that.
func TestAFailedEndUndoesNothing(t *testing.T) {
	t.Parallel()
	d := trips(States[trip]{
		"start": Do(step.Call("work", call[int, int]).Undo(step.UndoCall("unwork", undoCall[int, int])), trip.times, nil).Then("sort"),
	})
	p := begin(t, compile(t, d), `{"to":"lost"}`)
	p.c.PastKnown = false
	p.done("0")
	p.at(Ended, "lost", Mark{})
	require.Equal(t, Chosen, p.c.Cause)

	d.OnFailure = "lost"
	p = begin(t, compile(t, d), "{}")
	p.take(StepFailed{Error: "no", Rejected: true})
	p.at(Ended, "lost", Mark{})
	require.Equal(t, Refused, p.c.Cause)
	require.Equal(t, "step work was refused: no", p.c.Reason)
}

func TestAChosenRollbackSaysWhereItWasChosen(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	p.done(`"s"`, `"p"`)
	p.take(Signalled{Name: "approval", Payload: []byte("false")})
	p.at(RollingBack, weighing, first("refund-card"))
	require.Equal(t, Chosen, p.c.Cause)
	require.Empty(t, p.c.Reason)
}
