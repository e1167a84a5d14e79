package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// racing is parallel() with a race in place of the fan.
func racing() Definition[order] {
	d := parallel()
	d.Name = "racing"
	n := d.States[reserving].node
	n.kind = anyOf
	d.States[reserving] = Node[order]{n}
	return d
}

// raced leads a workflow to its two branches.
func raced(t testing.TB) (root *play, reserve, label *play) {
	m := compile(t, racing())
	root = begin(t, m, small)
	cs := branches(root.done(`"p"`))
	require.Len(t, cs, 2)
	return root, &play{t, m, cs[0]}, &play{t, m, cs[1]}
}

func TestTheFirstOfARaceWins(t *testing.T) {
	t.Parallel()
	root, reserve, label := raced(t)
	won := recordsOf(label.done(`"L"`))
	cmds := root.take(BranchEnded{Path: label.c.Branch})
	require.Len(t, cmds, 2, "both are asked to end; one that has ended does not see it")
	require.Equal(t, "label was first", cmds[0].(StopBranch).Reason)
	root.at(Waiting, reserving, Mark{})
	lost := recordsOf(reserve.take(CancelAsked{Begun: true}))
	require.Equal(t, Unknown, lost[0].Outcome)

	require.ErrorIs(t, root.refuses(BranchEnded{Path: reserve.c.Branch, Cause: Cancelled}), ErrNeedsPast)
	root.c.Past, root.c.PastKnown = append([]Past{{Step: "charge", Group: 1, Outcome: Done, In: []byte("1"), Out: []byte(`"p"`)}}, append(won, lost...)...), true
	cmds = root.take(BranchEnded{Path: reserve.c.Branch, Cause: Cancelled})
	require.Equal(t, "un-reserve", cmds[0].(RunStep).Spec.Name, "the loser may have had its effect")
	root.at(RollingBack, reserving, first("un-reserve"))
	wants(t, root.take(CancelAsked{}), Answer{CancelDeferred})
	root.done("null")
	root.at(Running, mailing, first("mail"))
	require.Contains(t, string(root.c.Data), `"label":"L"`, "the winner's result is merged")
	require.Empty(t, root.c.Won)

	root.take(CancelAsked{})
	root.at(RollingBack, mailing, first("un-label"))
}

func TestALoserWithoutEffectIsNotUndone(t *testing.T) {
	t.Parallel()
	root, reserve, label := raced(t)
	root.c.Past, root.c.PastKnown = recordsOf(label.done(`"L"`), reserve.take(StepFailed{Error: "no", Rejected: true})), true
	root.take(BranchEnded{Path: reserve.c.Branch, Cause: Refused, Reason: "no"})
	root.at(Waiting, reserving, Mark{})
	root.take(BranchEnded{Path: label.c.Branch})
	root.at(Running, mailing, first("mail"))
}

func TestARaceThatNobodyWins(t *testing.T) {
	t.Parallel()
	root, reserve, label := raced(t)
	root.c.PastKnown = true
	root.take(BranchEnded{Path: reserve.c.Branch, Cause: Refused, Reason: "first no"})
	root.take(BranchEnded{Path: label.c.Branch, Cause: Exhausted, Reason: "second no"})
	root.at(Ended, cancelled, Mark{})
	require.Equal(t, "first no", root.c.Reason)
}

func TestARaceIsCancelled(t *testing.T) {
	t.Parallel()
	root, reserve, label := raced(t)
	root.take(BranchEnded{Path: label.c.Branch})
	root.take(CancelAsked{Reason: "enough"})
	root.c.Past, root.c.PastKnown = recordsOf(label.done(`"L"`)), true
	cmds := root.take(BranchEnded{Path: reserve.c.Branch, Cause: Cancelled})
	require.Equal(t, "un-label", cmds[0].(RunStep).Spec.Name, "the winner's too")
	root.done("null")
	root.at(Ended, cancelled, Mark{})
	require.Equal(t, Cancelled, root.c.Cause)
}

// TestAHeldLoser: an undo of a loser that fails for good is held, and freed like
// another; then the workflow goes on.
func TestAHeldLoser(t *testing.T) {
	t.Parallel()
	root, reserve, label := raced(t)
	root.c.Past, root.c.PastKnown = recordsOf(label.done(`"L"`), reserve.done(`"s"`)), true
	root.take(BranchEnded{Path: label.c.Branch})
	root.take(BranchEnded{Path: reserve.c.Branch})
	root.take(StepFailed{Error: "no", Rejected: true})
	root.at(Held, reserving, Mark{Step: "un-reserve", Group: 1, Attempt: 1, Failures: 1})
	root.asks(Skip)
	root.at(Running, mailing, first("mail"))
}

func TestElseGoesOn(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	d.States[charging] = Do(step.Call("charge-card", call[int, string]).With(once).Undo(step.UndoCall("refund-card", undoCall[int, string])),
		order.cents, (*order).charged).Then(reviewing).Else(shipping)
	for _, failed := range []StepFailed{{Error: "no", Rejected: true}, {Error: "down"}} {
		p := begin(t, compile(t, d), small)
		p.done(`"s"`)
		cmds := p.take(failed)
		require.IsType(t, Record{}, cmds[0])
		p.at(Running, shipping, first("print-label"))
		require.Empty(t, p.c.Cause)
		p.take(StepFailed{Error: "no", Rejected: true})
		if failed.Rejected {
			p.at(RollingBack, shipping, first("release-stock"))
		} else {
			p.at(RollingBack, shipping, first("refund-card")) // it may have had its effect
		}
	}
	require.Contains(t, d.Mermaid(), "charging --> shipping: else\n")

	p := begin(t, compile(t, d), small)
	p.done(`"s"`)
	p.take(CancelAsked{})
	p.at(RollingBack, charging, first("release-stock"))

	d.States[reviewing] = If(order.big, approving, shipping).Else(shipping)
	require.ErrorContains(t, d.Validate(), "has an Else, but no step that could fail")
}

func TestElseOfAFan(t *testing.T) {
	t.Parallel()
	d := parallel()
	n := Node[order]{d.States[reserving].node}
	d.States[reserving] = n.Else(mailing)
	m := compile(t, d)
	root := begin(t, m, small)
	cs := branches(root.done(`"p"`))
	root.take(BranchEnded{Path: cs[0].Branch, Cause: Refused, Reason: "no"})
	root.take(BranchEnded{Path: cs[1].Branch, Cause: Cancelled})
	root.at(Running, mailing, first("mail"))
	require.Empty(t, root.c.Cause)
}

// TestElseBehindThePivot: it spares a person.
func TestElseBehindThePivot(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	d.States[mailing] = Do(step.Call("mail-receipt", call[int, step.None]).With(once).NoUndo("a mail cannot be unsent"), order.cents, nil).
		Then(delivered).Else(delivered)
	p := begin(t, compile(t, d), small)
	p.done(`"s"`, `"p"`, `"l"`)
	p.take(StepFailed{Error: "no"})
	p.at(Ended, delivered, Mark{})
}

func TestADeadlineIsACancellationByTheClock(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	d.Deadline = time.Hour
	m := compile(t, d)
	require.Equal(t, time.Hour, m.Deadline())
	p := begin(t, m, big)
	p.done(`"s"`)
	cmds := p.take(DeadlinePassed{Begun: true})
	require.Equal(t, Unknown, cmds[0].(Record).Outcome)
	p.at(RollingBack, charging, first("refund-card"))
	require.Equal(t, Overdue, p.c.Cause)
	require.Equal(t, "not done within 1h", p.c.Reason)
	require.True(t, p.c.Late)
	require.Empty(t, p.take(DeadlinePassed{}), "once")

	p = begin(t, m, big)
	p.done(`"s"`, `"p"`)
	p.take(DeadlinePassed{}) // while it waits for a signal
	p.at(RollingBack, approving, first("refund-card"))

	pivot := begin(t, m, small)
	pivot.done(`"s"`, `"p"`)
	require.Empty(t, pivot.take(DeadlinePassed{Begun: true}), "the pivot's outcome is awaited")
	require.False(t, pivot.c.Late)
	pivot.done(`"l"`)
	pivot.take(DeadlinePassed{})
	pivot.at(Held, mailing, Mark{Step: "mail-receipt", Group: 1})
	require.Equal(t, "not done within 1h, and behind the point of no return", pivot.c.Reason)
	pivot.asks(Retry)
	pivot.at(Running, mailing, first("mail-receipt"))
	pivot.done("null")
	pivot.at(Ended, delivered, Mark{})

	d.Deadline = -1
	require.ErrorContains(t, d.Validate(), "Deadline -1ns is no time to take")
	require.Equal(t, compile(t, orderSaga()).Fingerprint(), m.Fingerprint(), "it may be changed")
}

func TestAwaitAny(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	note := Signal[string]{"note"}
	d.States[approving] = AwaitAny(
		On(approval, (*order).decided, weighing),
		On(note, func(o *order, text string) { o.Label = text }, shipping),
	).WithinFunc(func(o order) time.Duration { return time.Duration(o.Cents) }, cancelled).Node()
	m := compile(t, d)
	p := begin(t, m, big)
	cmds := p.done(`"s"`, `"p"`)
	require.IsType(t, Wake{}, cmds[len(cmds)-1])
	require.Positive(t, cmds[len(cmds)-1].(Wake).After)
	require.Equal(t, "approval|note", p.c.Awaits)
	p.refuses2(Signalled{Name: "other", Payload: []byte("1")})
	late := &play{t, m, p.c}
	p.take(Signalled{Name: "note", Payload: []byte(`"n"`)})
	p.at(Running, shipping, first("print-label"))
	late.take(TimerFired{})
	late.at(RollingBack, approving, first("refund-card"))
	require.Equal(t, TimedOut, late.c.Cause)
	require.Equal(t, `no signal "approval" or "note" in time`, late.c.Reason)
	require.Contains(t, d.Mermaid(), "approving: approving / await approval or note\n")
	require.Contains(t, d.Mermaid(), "approving --> cancelled: in time no more\n")
	known, err := m.CheckSignal("note", []byte(`7`))
	require.True(t, known)
	require.Error(t, err)

	d.States[approving] = AwaitAny[order]().Node()
	require.ErrorContains(t, d.Validate(), "AwaitAny waits for nothing")
	d.States[approving] = AwaitAny(On(note, func(*order, string) {}, shipping), On(note, func(*order, string) {}, weighing)).Node()
	require.ErrorContains(t, d.Validate(), `waits for signal "note" twice`)
}

// refuses2 is refuses for an event whose error says nothing more.
func (p *play) refuses2(e Event) {
	p.Helper()
	require.ErrorIs(p, p.refuses(e), ErrUnexpected)
}
