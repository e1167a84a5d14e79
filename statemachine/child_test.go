package statemachine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// invoicing is a workflow that others start; it ends as data says.
func invoicing() Definition[order] {
	label := step.Call("print-invoice", call[int, string]).With(once).Undo(step.UndoCall("void-invoice", undoCall[int, string]))
	return Definition[order]{
		Name: "invoicing", Version: 3, Start: charging,
		States:    States[order]{charging: Do(label, order.cents, (*order).labelled).Then(delivered)},
		Ends:      Ends{delivered: Completed, cancelled: RolledBack},
		OnFailure: cancelled,
	}
}

func (o order) itself() order       { return o }
func (o *order) invoiced(i order)   { o.Payment = i.Label }
func (o *order) remember(id string) { o.Stock = id }

// billing reserves, and then has an invoice made.
func billing(invoice step.Step[order, order]) Definition[order] {
	reserve := step.Call("reserve", call[int, string]).With(once).Undo(step.UndoCall("release", undoCall[int, string]))
	return Definition[order]{
		Name: "billing", Version: 1, Start: reserving,
		States: States[order]{
			reserving: Do(reserve, order.cents, (*order).remember).Then(charging),
			charging:  Do(invoice, order.itself, (*order).invoiced).Then(delivered),
		},
		Ends:      Ends{delivered: Completed, cancelled: RolledBack},
		OnFailure: cancelled,
	}
}

func undoableInvoice() step.Step[order, order] {
	return Child(invoicing()).Undo(step.UndoCall("credit", undoCall[order, order]).With(twice))
}

const invoiceID = "w/invoicing/1"

// billed leads a workflow to its child.
func billed(t testing.TB, invoice step.Step[order, order]) *play {
	p := begin(t, compile(t, billing(invoice)), small)
	p.done(`"s"`)
	p.at(Waiting, charging, Mark{})
	return p
}

func TestChildIsStarted(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, billing(undoableInvoice())), small)
	cmds := p.done(`"s"`)
	start := cmds[len(cmds)-1].(StartChild)
	require.Equal(t, invoiceID, start.ID)
	require.Equal(t, "invoicing", start.Machine.Name())
	require.Equal(t, 3, start.Machine.Version())
	require.JSONEq(t, `{"cents":4990,"stock":"s"}`, string(start.Data))
	require.Equal(t, 1, p.c.Open)
}

func TestChildCompletes(t *testing.T) {
	t.Parallel()
	p := billed(t, undoableInvoice())
	out := []byte(`{"cents":4990,"label":"i"}`)
	require.ErrorIs(t, p.refuses(ChildEnded{ID: invoiceID, End: Completed, Out: out}), ErrNeedsPast)
	p.c.PastKnown = true
	wants(t, p.take(ChildEnded{ID: invoiceID, End: Completed, Out: out}), Record{
		Step: "invoicing", Group: 1, Outcome: Done, Attempt: 1, In: []byte(`{"cents":4990,"stock":"s"}`), Out: out,
	})
	p.at(Ended, delivered, Mark{})
	require.JSONEq(t, `{"cents":4990,"stock":"s","payment":"i"}`, string(p.c.Data))
}

// TestChildFails: one that was rolled back has had no effect, one that has
// failed may have had.
func TestChildFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end     End
		outcome Outcome
		cause   Cause
		undo    string
	}{
		{RolledBack, NoEffect, Refused, "release"},
		{Failed, Unknown, Exhausted, "credit"},
	} {
		p := billed(t, undoableInvoice())
		p.c.Past, p.c.PastKnown = []Past{{Step: "reserve", Group: 1, Outcome: Done}}, true
		cmds := p.take(ChildEnded{ID: invoiceID, End: c.end, Out: []byte(`{}`), Reason: "no paper"})
		require.Equal(t, c.outcome, recordsOf(cmds)[0].Outcome)
		p.at(RollingBack, charging, first(c.undo))
		require.Equal(t, c.cause, p.c.Cause)
		require.Equal(t, "child w/invoicing/1 has ended "+c.end.String()+": no paper", p.c.Reason)
	}
}

// TestCancelWaitsForTheChild, and undoes what it has completed all the same.
func TestCancelWaitsForTheChild(t *testing.T) {
	t.Parallel()
	p := billed(t, undoableInvoice())
	wants(t, p.take(CancelAsked{Reason: "changed my mind"}), Answer{CancelAccepted}, StopChild{invoiceID, "changed my mind"})
	p.at(Waiting, charging, Mark{})
	p.c.PastKnown = true
	p.take(ChildEnded{ID: invoiceID, End: Completed, Out: []byte(`{"cents":1}`)})
	p.at(RollingBack, charging, first("credit"))
	require.Equal(t, Cancelled, p.c.Cause)
}

func TestChildBesideABranch(t *testing.T) {
	t.Parallel()
	d := billing(undoableInvoice())
	mail := step.Call("mail", call[int, string]).With(once).NoUndo("it is only a notice")
	d.States[charging] = All(Do(mail, order.cents, nil), Do(undoableInvoice(), order.itself, (*order).invoiced)).Then(delivered)
	p := billed2(t, d)
	require.Equal(t, 2, p.c.Open)
	wants(t, p.take(BranchEnded{Path: "charging/1/mail", Cause: Refused, Reason: "no"}),
		StopBranch{"charging/1/mail", "no"}, StopChild{invoiceID, "no"})
	p.c.PastKnown = true
	p.take(ChildEnded{ID: invoiceID, End: RolledBack})
	p.at(Ended, cancelled, Mark{})
	require.Equal(t, "no", p.c.Reason)
}

func billed2(t testing.TB, d Definition[order]) *play {
	p := begin(t, compile(t, d), small)
	p.done(`"s"`)
	return p
}

// TestChildBehindThePivot: there is only forward, so its failure needs a person.
func TestChildBehindThePivot(t *testing.T) {
	t.Parallel()
	d := billing(Child(invoicing()).NoUndo("an invoice stays"))
	d.States[reserving] = Do(step.Call("print", call[int, string]).Pivot(), order.cents, nil).Then(charging)
	p := billed2(t, d)
	p.take(ChildEnded{ID: invoiceID, End: RolledBack, Reason: "no paper"})
	p.at(Held, charging, Mark{})
	require.Equal(t, "child w/invoicing/1 has ended rolled back: no paper", p.c.Reason)
}

func TestUnknownChild(t *testing.T) {
	t.Parallel()
	p := billed(t, undoableInvoice())
	for _, e := range []Event{ChildEnded{ID: "w/invoicing/2"}, ChildEnded{ID: "w"}, BranchEnded{Path: "charging/1/invoicing"}} {
		p.passesOver(e)
	}
	require.ErrorIs(t, p.refuses(StepDone{}), ErrUnexpected)
}

// TestChildIDs are ones that a caller may use, however long the parent's is.
func TestChildIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxChildID)
	require.Equal(t, "a/b/1", childID("a", "b", 1))
	require.LessOrEqual(t, len(childID(long, strings.Repeat("s", 64), 1)), maxChildID)
	require.NotEqual(t, childID(long, "s", 1), childID(long[1:]+"y", "s", 1))
}

func TestFaultsOfAChild(t *testing.T) {
	t.Parallel()
	broken := invoicing()
	broken.OnFailure = "nowhere"
	for _, c := range []struct {
		child step.Step[order, order]
		fault string
	}{
		{Child(invoicing()), `step "invoicing" has an effect, so it needs one of Undo, Pivot and NoUndo`},
		{Child(invoicing()).Pivot(), `the child "invoicing" is a pivot`},
		{Child(broken).NoUndo("it stays"), `definition "invoicing": OnFailure "nowhere" is not an end`},
		{Child(invoicing()).As("reserve").NoUndo("it stays"), `uses the step name "reserve"`},
	} {
		require.ErrorContains(t, billing(c.child).Validate(), c.fault)
	}
}

func TestChildIsStoredByName(t *testing.T) {
	t.Parallel()
	m := compile(t, billing(undoableInvoice()))
	require.Contains(t, string(m.Graph()), `"step":{"name":"invoicing","kind":"child","child":{"name":"invoicing","version":3},"undo":`)
	require.Equal(t, "invoicing", m.Children()["invoicing"].Name())
	_, err := m.Encode([]byte(`{"cents":1,"other":2}`))
	require.ErrorContains(t, err, "other")
}
