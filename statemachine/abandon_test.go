package statemachine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

func abandonedInvoice() step.Step[order, order] {
	return Child(invoicing()).NoUndo("an invoice stays").Abandon()
}

// A child that is left to itself is neither cancelled nor waited for.
func TestAnAbandonedChildGoesOn(t *testing.T) {
	t.Parallel()
	p := billed(t, abandonedInvoice())
	p.c.PastKnown, p.c.Past = false, nil
	require.ErrorIs(t, p.refuses(CancelAsked{Reason: "enough"}), ErrNeedsPast, "whether it has ended the records tell")
	p.c.Past, p.c.PastKnown = []Past{{Step: "reserve", Group: 1, Outcome: Done, In: []byte("4990"), Out: []byte(`"s"`)}}, true
	cmds := p.take(CancelAsked{Reason: "enough"})
	require.Equal(t, Answer{CancelAccepted}, cmds[0])
	r := cmds[1].(Record)
	require.Equal(t, []any{"invoicing", NoEffect, "left to go on by itself: enough"}, []any{r.Step, r.Outcome, r.Error})
	require.Equal(t, "release", cmds[2].(RunStep).Spec.Name, "the rollback has begun")
	require.Len(t, cmds, 3)
}

// One that has ended counts as it ended.
func TestAnAbandonedChildThatHasEnded(t *testing.T) {
	t.Parallel()
	undo := Child(invoicing()).Undo(step.UndoCall("credit", undoCall[order, order]).With(twice)).Abandon()
	p := billed(t, undo)
	p.c.Past, p.c.PastKnown = []Past{{Step: "reserve", Group: 1, Outcome: Done, In: []byte("4990"), Out: []byte(`"s"`)}}, true
	p.take(ChildEnded{ID: invoiceID, End: Completed, Out: []byte(`{}`)})
	p.at(Ended, delivered, Mark{})
}

// Beside others, it is the only one that is not stopped; and its end, when it comes
// after all, means nothing.
func TestAnAbandonedChildBesideOthers(t *testing.T) {
	t.Parallel()
	label := step.Call("label", call[int, string]).With(once).Undo(step.UndoCall("un-label", undoCall[int, string]).With(twice))
	d := Definition[order]{
		Name: "both", Version: 1, Start: charging,
		States: States[order]{charging: All(
			Do(label, order.cents, (*order).labelled),
			Do(abandonedInvoice(), order.itself, (*order).invoiced),
		).Then(delivered)},
		Ends: Ends{delivered: Completed, cancelled: RolledBack}, OnFailure: cancelled,
	}
	require.Contains(t, d.Mermaid(), "invoicing (child, left to itself)")
	m := compile(t, d)
	drawn, err := DrawGraph(m.Graph())
	require.NoError(t, err)
	require.Equal(t, d.Mermaid(), drawn)
	p := begin(t, m, small)
	p.take(Resumed{})
	require.Equal(t, 2, p.c.Open)
	p.c.Past, p.c.PastKnown = nil, true
	cmds := p.take(CancelAsked{Reason: "enough"})
	require.Len(t, cmds, 3)
	require.IsType(t, StopBranch{}, cmds[1])
	require.IsType(t, Record{}, cmds[2])
	require.Equal(t, 1, p.c.Open)
	before := p.c
	require.Empty(t, p.take(ChildEnded{ID: invoiceID, End: Completed, Out: []byte(`{}`)}))
	require.Equal(t, before, p.c)
	p.take(BranchEnded{Path: branchPath(charging, 1, "label"), Cause: Cancelled, Reason: "enough"})
	p.at(Ended, cancelled, Mark{})
}

func TestAbandonIsForChildren(t *testing.T) {
	t.Parallel()
	d := trips(States[trip]{"start": Do(step.Call("ask", call[int, int]).NoUndo("x").Abandon(), trip.times, nil).Then("sort")})
	require.ErrorContains(t, d.Validate(), `step "ask" has an Abandon, but is no child`)
}
