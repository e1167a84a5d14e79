package statemachine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

func TestStepDoneIsRecordedAndMerged(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	wants(t, p.done(`"s"`),
		Record{Step: "reserve-stock", Group: 1, Outcome: Done, Attempt: 1, In: []byte("4990"), Out: []byte(`"s"`)},
		runs("charge-card", "4990"))
	p.at(Running, charging, first("charge-card"))
	require.JSONEq(t, `{"cents":4990,"stock":"s"}`, string(p.c.Data))
	require.Equal(t, []Past{{"reserve-stock", 1, 0, Done, []byte("4990"), []byte(`"s"`)}}, p.c.Past)
}

// TestInputIsKeptOnlyForAnUndo: nobody will ever ask for the others.
func TestInputIsKeptOnlyForAnUndo(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`, `"p"`)
	past := p.c.Past
	cmds := p.done(`"l"`)
	wants(t, cmds[:1], Record{Step: "print-label", Group: 1, Outcome: Done, Attempt: 1, Out: []byte(`"l"`)})
	require.True(t, p.c.Pivoted)
	require.Equal(t, past, p.c.Past)
}

func TestADroppedResultLeavesTheDataAsItIs(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`, `"p"`, `"l"`)
	data := p.c.Data
	p.done("not even JSON")
	p.at(Ended, delivered, Mark{})
	require.Same(t, &data[0], &p.c.Data[0], "the same bytes, so that the engine need not write them")
}

// TestAnUnknownPastStaysUnknown: half of the records would be worse than none.
func TestAnUnknownPastStaysUnknown(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.c.PastKnown = false
	p.done(`"s"`)
	require.Nil(t, p.c.Past)
	require.False(t, p.c.PastKnown)
}

func TestFailureIsTriedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.done(`"s"`)
	p.c.Mark.Crashes = 3
	wants(t, p.take(StepFailed{Error: "lost"}), Wake{After: time.Second})
	p.at(Waiting, charging, Mark{Step: "charge-card", Group: 1, Attempt: 1, Failures: 1})
	require.Equal(t, "lost", p.c.Reason)

	p.c.Mark.Attempt = 2 // the claim counts
	wants(t, p.take(Resumed{}), runs("charge-card", "4990"))
	p.at(Running, charging, Mark{Step: "charge-card", Group: 1, Attempt: 2, Failures: 1})
	require.Equal(t, "lost", p.c.Reason, "it tells why there is a second attempt")

	cmds := p.done(`"p"`)
	require.Equal(t, 2, cmds[0].(Record).Attempt)
	require.Empty(t, p.c.Reason)
}

func TestThePauseIsOverWithTheTimerToo(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.take(StepFailed{Error: "lost"})
	wants(t, p.take(TimerFired{}), runs("reserve-stock", "4990"))
	p.at(Running, reserving, Mark{Step: "reserve-stock", Group: 1, Attempt: 1, Failures: 1})
}

func TestHowLongThePauseIs(t *testing.T) {
	t.Parallel()
	policy := step.Policy{Backoff: step.Backoff{First: 10 * time.Second, Factor: 3, Jitter: 0.5}}
	m := compile(t, trips(States[trip]{
		"start": Do(step.Func("work", fn[int, int]).With(policy), trip.times, nil).Then("sort"),
	}))
	pause := func(d time.Duration) *time.Duration { return &d }
	for _, tt := range []struct {
		failures int
		event    StepFailed
		want     time.Duration
	}{
		{0, StepFailed{}, 10 * time.Second},
		{1, StepFailed{}, 30 * time.Second},
		{0, StepFailed{Chance: 0.5}, 7500 * time.Millisecond},
		{0, StepFailed{Pause: pause(time.Hour)}, time.Hour},
		{0, StepFailed{Pause: pause(0)}, 0},
		{0, StepFailed{Pause: pause(-time.Hour)}, 0},
	} {
		p := begin(t, m, "{}")
		p.c.Mark.Failures = tt.failures
		wants(t, p.take(tt.event), Wake{After: tt.want})
	}
}

// TestHowAStepFailsForGood is the table of PROTOCOL: what is recorded of a step
// that failed, and what becomes of the workflow.
func TestHowAStepFailsForGood(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	const (
		refundUnknown  = "refund-card"
		releaseCertain = "release-stock"
	)
	for _, tt := range []struct {
		name     string
		steps    int // done before
		failures int // before
		event    StepFailed
		record   *Record // nil if it is held
		cause    Cause
		reason   string
		undo     string // the first one
	}{
		{
			name: "the first step is refused", event: StepFailed{Error: "sold out", Rejected: true},
			record: &Record{Step: "reserve-stock", Outcome: NoEffect, Error: "sold out"},
			cause:  Refused, reason: "step reserve-stock was refused: sold out",
		},
		{
			name: "a later step is refused", steps: 1, event: StepFailed{Error: "no", Rejected: true},
			record: &Record{Step: "charge-card", Outcome: NoEffect, Error: "no"},
			cause:  Refused, reason: "step charge-card was refused: no", undo: releaseCertain,
		},
		{
			name: "refused at a later attempt", steps: 1, failures: 1, event: StepFailed{Error: "no", Rejected: true},
			record: &Record{Step: "charge-card", Outcome: NoEffect, Error: "no"},
			cause:  Refused, reason: "step charge-card was refused: no", undo: releaseCertain,
		},
		{
			name: "a Call is exhausted", steps: 1, failures: 1, event: StepFailed{Error: "lost"},
			record: &Record{Step: "charge-card", Outcome: Unknown, In: []byte("4990"), Error: "lost"},
			cause:  Exhausted, reason: "step charge-card failed 2 times: lost", undo: refundUnknown,
		},
		{
			name: "a Call fails for good at once", steps: 1, event: StepFailed{Error: "no JSON", Final: true},
			record: &Record{Step: "charge-card", Outcome: Unknown, In: []byte("4990"), Error: "no JSON"},
			cause:  Exhausted, reason: "step charge-card failed once: no JSON", undo: refundUnknown,
		},
		{
			name: "a Call certainly had no effect", steps: 1, failures: 1, event: StepFailed{Error: "gone", NoEffect: true},
			record: &Record{Step: "charge-card", Outcome: NoEffect, Error: "gone"},
			cause:  Exhausted, reason: "step charge-card failed 2 times: gone", undo: releaseCertain,
		},
		{
			name: "an InTx is exhausted", failures: 1, event: StepFailed{Error: "gone"},
			record: &Record{Step: "reserve-stock", Outcome: NoEffect, Error: "gone"},
			cause:  Exhausted, reason: "step reserve-stock failed 2 times: gone",
		},
		{
			name: "the pivot is refused", steps: 2, event: StepFailed{Error: "no", Rejected: true},
			record: &Record{Step: "print-label", Outcome: NoEffect, Error: "no"},
			cause:  Refused, reason: "step print-label was refused: no", undo: refundUnknown,
		},
		{
			name: "the pivot is exhausted", steps: 2, failures: 1, event: StepFailed{Error: "lost"},
			reason: "step print-label failed 2 times: lost",
		},
		{
			name: "the pivot fails for good at once", steps: 2, event: StepFailed{Error: "no JSON", Final: true},
			reason: "step print-label failed once: no JSON",
		},
		{
			name: "refused behind the pivot", steps: 3, event: StepFailed{Error: "no", Rejected: true},
			reason: "step mail-receipt was refused: no",
		},
		{
			name: "exhausted behind the pivot", steps: 3, failures: 1, event: StepFailed{Error: "lost"},
			reason: "step mail-receipt failed 2 times: lost",
		},
		{
			name: "no effect behind the pivot", steps: 3, failures: 1, event: StepFailed{Error: "gone", NoEffect: true},
			reason: "step mail-receipt failed 2 times: gone",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, m, small)
			p.done([]string{`"s"`, `"p"`, `"l"`}[:tt.steps]...)
			p.c.Mark.Failures = tt.failures
			before := p.c
			cmds := p.take(tt.event)
			require.Equal(t, tt.reason, p.c.Reason)
			if tt.record == nil {
				require.Empty(t, cmds, "nothing is recorded: a person may let it go on")
				before.Mark.Failures++
				requireHeld(t, before, p.c)
				return
			}
			tt.record.Group, tt.record.Attempt = 1, 1
			wants(t, cmds[:1], *tt.record)
			require.Equal(t, tt.cause, p.c.Cause)
			require.Equal(t, cancelled, p.c.End)
			require.Equal(t, tt.undo, p.c.Mark.Step)
			if tt.undo == "" {
				p.at(Ended, cancelled, Mark{})
			} else {
				p.at(RollingBack, before.State, first(tt.undo))
			}
		})
	}
}

// requireHeld proves that a workflow is held with all that it was.
func requireHeld(t testing.TB, before, c Cursor) {
	t.Helper()
	require.NotEmpty(t, c.Reason)
	before.From, before.Phase, before.Reason = before.Phase, Held, c.Reason
	require.Equal(t, before, c)
}

func TestAFuncThatFailsHasNoEffect(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start": Do(step.Func("work", fn[int, int]).With(step.Policy{Attempts: 1}), trip.times, nil).Then("sort"),
	}))
	p := begin(t, m, "{}")
	wants(t, p.take(StepFailed{Error: "lost"}), Record{Step: "work", Group: 1, Outcome: NoEffect, Attempt: 1, Error: "lost"})
	p.at(Ended, "bad", Mark{})
}

// TestAnUnknownOutcomeIsRecordedEvenWithoutAnUndo: what it was asked is kept
// for the person who wants to know.
func TestAnUnknownOutcomeIsRecordedEvenWithoutAnUndo(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start": Do(step.Call("work", call[int, int]).With(step.Policy{Attempts: 1}).NoUndo("harmless"), trip.times, nil).Then("sort"),
	}))
	p := begin(t, m, `{"times":7}`)
	wants(t, p.take(StepFailed{Error: "lost"}), Record{Step: "work", Group: 1, Outcome: Unknown, Attempt: 1, In: []byte("7"), Error: "lost"})
	p.at(Ended, "bad", Mark{})
}

func TestAStepThatKeepsKillingItsWorkerIsHeld(t *testing.T) {
	t.Parallel()
	for _, phase := range []Phase{Running, Waiting} {
		p := begin(t, compile(t, orderSaga()), small)
		p.c.Phase = phase
		p.c.Mark.Crashes = MaxCrashes - 1
		before := p.c
		wants(t, p.take(Resumed{}), runs("reserve-stock", "4990"))

		p.c = before
		p.c.Mark.Crashes = MaxCrashes
		before = p.c
		require.Empty(t, p.take(Resumed{}))
		require.Equal(t, "step reserve-stock crashed its worker 5 times", p.c.Reason)
		requireHeld(t, before, p.c)
	}
}

func TestProgressForgetsCrashes(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.c.Mark.Crashes = 4
	p.done(`"s"`)
	require.Zero(t, p.c.Mark.Crashes)
}

func TestInterruptedIsNoFailure(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	p.c.Mark.Crashes, p.c.Mark.Failures = 2, 1
	wants(t, p.take(Interrupted{}), runs("reserve-stock", "4990"))
	p.at(Running, reserving, Mark{Step: "reserve-stock", Group: 1, Attempt: 2, Failures: 1, Crashes: 2})
}

func TestHeldAndEndedTakeNothingUp(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	held, ended := begin(t, m, small), begin(t, m, small)
	held.take(Unstorable{Error: "too deep"})
	ended.take(CancelAsked{})
	for _, p := range []*play{held, ended} {
		before := p.c
		require.Empty(t, p.take(Resumed{}))
		require.Equal(t, before, p.c)
		for _, e := range []Event{StepDone{}, StepFailed{}, Interrupted{}, Signalled{Name: "approval"}, Started{}} {
			require.ErrorIs(t, p.refuses(e), ErrUnexpected, "%T", e)
		}
	}
}

func TestUnstorable(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	running, awaits := begin(t, m, small), begin(t, m, big)
	awaits.done(`"s"`, `"p"`)
	pauses, undoes := begin(t, m, small), begin(t, m, small)
	pauses.take(StepFailed{})
	undoes.done(`"s"`)
	undoes.take(StepFailed{Rejected: true})
	for _, p := range []*play{running, awaits, pauses, undoes} {
		before := p.c
		require.Empty(t, p.take(Unstorable{Error: "too deep"}))
		require.Equal(t, "too deep", p.c.Reason)
		requireHeld(t, before, p.c)

		from := p.c.From
		p.take(Unstorable{Error: "again"})
		require.Equal(t, from, p.c.From, "what it was doing when it was first held")
		require.Equal(t, "again", p.c.Reason)
	}
	ended := begin(t, m, small)
	ended.take(CancelAsked{})
	require.ErrorIs(t, ended.refuses(Unstorable{}), ErrUnexpected)
}

// TestEventsThatDoNotFit: an outcome needs an attempt under way.
func TestEventsThatDoNotFit(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	outcomes := []Event{StepDone{Out: []byte(`"s"`)}, StepFailed{}, Interrupted{}, nil, fmtEvent{}}
	cursors := map[string]Cursor{
		"not started":         {},
		"a pause":             {State: charging, Phase: Waiting, Mark: first("charge-card")},
		"a wait":              {State: approving, Phase: Waiting, Awaits: "approval"},
		"a mark in a wait":    {State: approving, Phase: Waiting, Awaits: "approval", Mark: first("charge-card")},
		"another state":       {State: reserving, Phase: Running, Mark: first("charge-card")},
		"an unknown state":    {State: "packing", Phase: Running, Mark: first("pack")},
		"an undo, not begun":  {State: charging, Phase: RollingBack, End: cancelled},
		"a step as an undo":   {State: charging, Phase: RollingBack, End: cancelled, Mark: first("charge-card")},
		"an undo as a step":   {State: charging, Phase: Running, Mark: first("refund-card")},
		"a step in no phase":  {State: charging, Mark: first("charge-card")},
		"a phase from beyond": {State: charging, Phase: 77, Mark: first("charge-card")},
	}
	for name, c := range cursors {
		p := &play{TB: t, m: m, c: c}
		for _, e := range outcomes {
			require.ErrorIs(t, p.refuses(e), ErrUnexpected, "%T in %s", e, name)
		}
	}
	for _, name := range []string{"not started", "a mark in a wait", "another state", "an unknown state", "a step as an undo", "an undo as a step", "a phase from beyond"} {
		p := &play{TB: t, m: m, c: cursors[name]}
		require.ErrorIs(t, p.refuses(Resumed{}), ErrUnexpected, name)
	}
}

// fmtEvent is an event that the package does not know.
type fmtEvent struct{ fmt.Stringer }

func (fmtEvent) event() {}
