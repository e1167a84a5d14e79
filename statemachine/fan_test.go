package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// once fails for good at the first failure.
var once = step.Policy{Attempts: 1}

// parallel reserves and labels at the same time, between a charge and a mail.
func parallel() Definition[order] {
	called := func(name string) step.Step[int, string] {
		return step.Call(name, call[int, string]).With(once).Undo(step.UndoCall("un-"+name, undoCall[int, string]).With(twice))
	}
	mail := step.Call("mail", call[int, step.None]).With(once).NoUndo("a mail cannot be unsent")
	return Definition[order]{
		Name: "parallel", Version: 1, Start: charging,
		States: States[order]{
			charging: Do(called("charge"), order.cents, (*order).charged).Then(reserving),
			reserving: All(
				Do(called("reserve"), order.cents, (*order).reserved),
				Do(called("label"), order.cents, func(o *order, id string) { o.Label = o.Stock + id }),
			).Then(mailing),
			mailing: Do(mail, order.cents, nil).Then(delivered),
		},
		Ends:      Ends{delivered: Completed, cancelled: RolledBack},
		OnFailure: cancelled,
	}
}

// branches returns the cursors of the branches that were started.
func branches(cmds []Command) (cs []Cursor) {
	for _, cmd := range cmds {
		if b, ok := cmd.(StartBranch); ok {
			cs = append(cs, b.Cursor)
		}
	}
	return cs
}

// fanned leads a workflow to its two branches.
func fanned(t testing.TB) (root *play, reserve, label *play) {
	m := compile(t, parallel())
	root = begin(t, m, small)
	cs := branches(root.done(`"p"`))
	require.Len(t, cs, 2)
	return root, &play{t, m, cs[0]}, &play{t, m, cs[1]}
}

// recordsOf is what the root finds in the database when it asks for its past.
func recordsOf(cmds ...[]Command) (p []Past) {
	for _, list := range cmds {
		for _, cmd := range list {
			if r, ok := cmd.(Record); ok {
				p = append(p, past([]Record{r})...)
			}
		}
	}
	return p
}

func TestAllStartsABranchForEachTask(t *testing.T) {
	t.Parallel()
	root, reserve, label := fanned(t)
	root.at(Waiting, reserving, Mark{})
	require.Equal(t, 2, root.c.Open)
	require.False(t, root.c.PastKnown, "what the branches record it has not seen")
	require.Equal(t, Cursor{
		ID: "w", Branch: "reserving/1/reserve", State: reserving, Phase: Running, Data: []byte("4990"), Mark: first("reserve"),
	}, reserve.c)
	require.Equal(t, "reserving/1/label", label.c.Branch)
	wants(t, label.take(Resumed{}), runs("label", "4990"))
}

func TestBranchEndsWithItsStep(t *testing.T) {
	t.Parallel()
	_, reserve, _ := fanned(t)
	wants(t, reserve.take(StepDone{Out: []byte(`"s"`)}),
		Record{Step: "reserve", Group: 1, Outcome: Done, Attempt: 1, In: []byte("4990"), Out: []byte(`"s"`)},
		EndBranch{BranchEnded{Path: "reserving/1/reserve"}})
	reserve.at(Ended, reserving, Mark{})
	require.Empty(t, reserve.c.Cause)
	require.ErrorIs(t, reserve.refuses(StepDone{}), ErrUnexpected)
}

func TestBranchFailsWithoutARollback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event   Event
		outcome Outcome
		cause   Cause
		reason  string
	}{
		{StepFailed{Error: "no", Rejected: true}, NoEffect, Refused, "step reserve was refused: no"},
		{StepFailed{Error: "lost"}, Unknown, Exhausted, "step reserve failed once: lost"},
		{CancelAsked{Reason: "enough", Begun: true}, Unknown, Cancelled, "enough"},
	} {
		_, reserve, _ := fanned(t)
		cmds := reserve.take(c.event)
		require.Contains(t, cmds, EndBranch{BranchEnded{Path: "reserving/1/reserve", Cause: c.cause, Reason: c.reason}})
		require.Equal(t, c.outcome, recordsOf(cmds)[0].Outcome)
		reserve.at(Ended, reserving, Mark{})
		require.Equal(t, c.cause, reserve.c.Cause)
	}
}

// TestBranchThatHasNotBegun has nothing to record when it is stopped.
func TestBranchThatHasNotBegun(t *testing.T) {
	t.Parallel()
	_, reserve, _ := fanned(t)
	wants(t, reserve.take(CancelAsked{Reason: "enough"}), Answer{CancelAccepted},
		EndBranch{BranchEnded{Path: "reserving/1/reserve", Cause: Cancelled, Reason: "enough"}})
	wants(t, reserve.take(CancelAsked{Reason: "enough"}), Answer{CancelTooLate})
}

// TestJoinMergesInTheOrderOfTheTasks, not in that of their ends.
func TestJoinMergesInTheOrderOfTheTasks(t *testing.T) {
	t.Parallel()
	root, reserve, label := fanned(t)
	second := label.take(StepDone{Out: []byte(`"l"`)})
	require.Empty(t, root.take(BranchEnded{Path: label.c.Branch}))
	root.at(Waiting, reserving, Mark{})
	first1 := reserve.take(StepDone{Out: []byte(`"s"`)})
	require.ErrorIs(t, root.refuses(BranchEnded{Path: reserve.c.Branch}), ErrNeedsPast)
	root.c.Past, root.c.PastKnown = recordsOf(second, first1), true
	wants(t, root.take(BranchEnded{Path: reserve.c.Branch}), runs("mail", "4990"))
	require.JSONEq(t, `{"cents":4990,"stock":"s","payment":"p","label":"sl"}`, string(root.c.Data))
	require.Zero(t, root.c.Open)
}

func TestFirstFailureStopsTheOthers(t *testing.T) {
	t.Parallel()
	root, reserve, label := fanned(t)
	wants(t, root.take(BranchEnded{Path: reserve.c.Branch, Cause: Refused, Reason: "no"}),
		StopBranch{reserve.c.Branch, "no"}, StopBranch{label.c.Branch, "no"})
	root.at(Waiting, reserving, Mark{})
	require.Equal(t, Refused, root.c.Cause)
	wants(t, root.take(CancelAsked{}), Answer{CancelTooLate})
	root.c.Past, root.c.PastKnown = []Past{{Step: "charge", Group: 1, Outcome: Done}}, true
	root.take(BranchEnded{Path: label.c.Branch, Cause: Cancelled, Reason: "no"})
	root.at(RollingBack, reserving, first("un-charge"))
	require.Equal(t, Refused, root.c.Cause, "the first failure is why")
	require.Equal(t, "no", root.c.Reason)
}

func TestCancelStopsTheBranchesFirst(t *testing.T) {
	t.Parallel()
	root, reserve, label := fanned(t)
	wants(t, root.take(CancelAsked{Reason: "changed my mind"}), Answer{CancelAccepted},
		StopBranch{reserve.c.Branch, "changed my mind"}, StopBranch{label.c.Branch, "changed my mind"})
	root.at(Waiting, reserving, Mark{})
	root.take(BranchEnded{Path: label.c.Branch}) // it was done before it could be stopped
	root.c.Past, root.c.PastKnown = []Past{{Step: "label", Group: 1, Outcome: Done, In: []byte("4990")}}, true
	root.take(BranchEnded{Path: reserve.c.Branch, Cause: Cancelled, Reason: ""})
	root.at(RollingBack, reserving, first("un-label"))
	require.Equal(t, Cancelled, root.c.Cause)
	require.Equal(t, "changed my mind", root.c.Reason)
}

// TestHeldAtTheJoin: what a person holds there can still be cancelled.
func TestHeldAtTheJoin(t *testing.T) {
	t.Parallel()
	root, reserve, label := fanned(t)
	root.take(BranchEnded{Path: label.c.Branch})
	root.take(Unstorable{Error: "too deep"})
	require.ErrorIs(t, root.refuses(BranchEnded{Path: reserve.c.Branch}), ErrUnexpected)
	root.take(CancelAsked{Reason: "give up"})
	root.at(Waiting, reserving, Mark{})
	root.c.PastKnown = true
	root.take(BranchEnded{Path: reserve.c.Branch})
	root.at(Ended, cancelled, Mark{})
}

func TestUnknownBranch(t *testing.T) {
	t.Parallel()
	root, reserve, _ := fanned(t)
	for _, path := range []string{"", "reserve", "reserving/2/reserve", "charging/1/reserve", "reserving/1/mail"} {
		root.passesOver(BranchEnded{Path: path})
	}
	require.ErrorIs(t, reserve.refuses(BranchEnded{Path: reserve.c.Branch}), ErrUnexpected, "a branch has none")
}

// TestBehindThePivotABranchIsHeld: it must not end, since there is only forward.
func TestBehindThePivotABranchIsHeld(t *testing.T) {
	t.Parallel()
	d := parallel()
	label := step.Call("print", call[int, string]).Pivot()
	tell := step.Call("tell", call[int, step.None]).With(once).NoUndo("it is only a notice")
	d.States = States[order]{
		charging: Do(label, order.cents, (*order).labelled).Then(mailing),
		mailing:  All(Do(tell, order.cents, nil), Do(tell.As("tell-more"), order.cents, nil)).Then(delivered),
	}
	m := compile(t, d)
	root := begin(t, m, small)
	b := &play{t, m, branches(root.done(`"l"`))[0]}
	b.take(StepFailed{Error: "no", Rejected: true})
	b.at(Held, mailing, Mark{Step: "tell", Group: 1, Attempt: 1, Failures: 1})
	wants(t, root.take(CancelAsked{}), Answer{CancelPastPivot})
}

// TestAFirstStateOfBranches is entered in two transitions: a start inserts one
// row.
func TestAFirstStateOfBranches(t *testing.T) {
	t.Parallel()
	d := parallel()
	d.Start, d.States = reserving, States[order]{reserving: d.States[reserving], mailing: d.States[mailing]}
	p := &play{TB: t, m: compile(t, d), c: Cursor{ID: "w", Data: []byte(small), PastKnown: true}}
	wants(t, p.take(Started{}), Wake{})
	p.at(Running, reserving, Mark{})
	require.Len(t, branches(p.take(Resumed{})), 2)
	p.at(Waiting, reserving, Mark{})

	p = &play{TB: t, m: p.m, c: Cursor{ID: "w", Data: []byte(small), PastKnown: true}}
	p.take(Started{})
	p.take(CancelAsked{})
	p.at(Ended, cancelled, Mark{})
}

// TestEachEntryHasBranchesOfItsOwn: a loop begins a new group.
func TestEachEntryHasBranchesOfItsOwn(t *testing.T) {
	t.Parallel()
	d := parallel()
	d.States[charging] = Sleep(func(order) time.Duration { return time.Second }).Then(reserving)
	d.States[mailing] = If(order.big, charging, delivered)
	m := compile(t, d)
	root := begin(t, m, big)
	for _, path := range []string{"reserving/1/reserve", "reserving/2/reserve"} {
		cs := branches(root.take(TimerFired{}))
		require.Equal(t, path, cs[0].Branch)
		var records []Past
		for _, c := range cs {
			b := &play{t, m, c}
			records = append(records, recordsOf(b.take(StepDone{Out: []byte(`"x"`)}))...)
		}
		root.take(BranchEnded{Path: cs[0].Branch})
		root.c.Past, root.c.PastKnown = records, true
		root.take(BranchEnded{Path: cs[1].Branch})
		root.at(Waiting, charging, Mark{})
	}
}

func TestFaultyInputOfATask(t *testing.T) {
	t.Parallel()
	d := parallel()
	label := step.Call("label", call[int, string]).NoUndo("it is paper")
	d.States[reserving] = All(Do(label, func(order) int { panic("no") }, nil)).Then(mailing)
	root := begin(t, compile(t, d), small)
	require.Len(t, root.done(`"p"`), 1, "the charge is recorded, and nothing is started")
	root.at(Held, reserving, Mark{})
	require.Equal(t, `state "reserving": in of step "label": panicked: no`, root.c.Reason)
}

func TestFaultsOfAll(t *testing.T) {
	t.Parallel()
	pivot := step.Call("print", call[int, string]).Pivot()
	mail := step.Call("mail", call[int, string]).NoUndo("")
	for _, c := range []struct {
		node  Node[order]
		fault string
	}{
		{All[order]().Then(delivered), `All has no tasks`},
		{All(Sleep(func(order) time.Duration { return 0 })).Then(delivered), `task 1 of All is none: it takes Do, not sleep`},
		{All(All(Do(pivot, order.cents, nil))).Then(delivered), `task 1 of All is none: it takes Do, not all`},
		{All(Do(pivot, order.cents, nil)).Then(delivered), `the pivot "print" is a task of All: make it a state of its own`},
		{All(Do(mail, order.cents, nil)).Then(delivered), `step "mail" has a NoUndo without a reason`},
		{All(Do[order, int, string](mail.NoUndo("gone"), nil, nil)).Then(delivered), `in of step mail is nil`},
		{All(Do(mail.NoUndo("gone"), order.cents, nil), Do(mail.NoUndo("gone"), order.cents, nil)).Then(delivered), `uses the step name "mail" twice`},
	} {
		d := parallel()
		d.Start, d.States = mailing, States[order]{mailing: c.node}
		require.ErrorContains(t, d.Validate(), c.fault)
	}
}

// TestNoUndoInBranchesBehindThePivot: the rule looks into All.
func TestNoUndoInBranchesBehindThePivot(t *testing.T) {
	t.Parallel()
	d := parallel()
	pivot := step.Call("print", call[int, string]).Pivot()
	d.States[charging] = Do(pivot, order.cents, nil).Then(reserving)
	require.ErrorContains(t, d.Validate(), `step "label" has an Undo, but lies behind the pivot "print"`)
}

func TestAllIsDrawnAndStored(t *testing.T) {
	t.Parallel()
	d := parallel()
	require.Contains(t, d.Mermaid(), "reserving: reserving / all of reserve (call, undo un-reserve), label (call, undo un-label)\n")
	require.Contains(t, string(compile(t, d).Graph()),
		`{"name":"reserving","kind":"all","tasks":[{"kind":"step","step":{"name":"reserve","kind":"call","undo":{"name":"un-reserve","kind":"call"}}},`)
}
