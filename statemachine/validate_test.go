package statemachine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// faults lists what Validate says, without the name of the definition.
func faults(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "all faults at once")
	var texts []string
	for _, err := range joined.Unwrap() {
		var f *Fault
		require.ErrorAs(t, err, &f)
		require.ErrorIs(t, err, ErrInvalid)
		text := f.Text
		if f.State != "" {
			text = fmt.Sprintf("%s: %s", f.State, f.Text)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestTheOrderSagaIsValid(t *testing.T) {
	t.Parallel()
	require.NoError(t, orderSaga().Validate())
}

// TestValidate spoils the order saga in one way each.
func TestValidate(t *testing.T) {
	t.Parallel()
	const names = ": a name is 1 to 64 of a-z, 0-9 and '-'"
	var (
		charge  = step.Call("charge-card", call[int, string])
		refund  = step.UndoCall("refund-card", undoCall[int, string])
		receipt = step.Call("mail-receipt", call[int, step.None])
		charges = func(st step.Step[int, string]) func(*Definition[order]) {
			return func(d *Definition[order]) { d.States[charging] = Do(st, order.cents, nil).Then(reviewing) }
		}
		mails = func(st step.Step[int, step.None]) func(*Definition[order]) {
			return func(d *Definition[order]) { d.States[mailing] = Do(st, order.cents, nil).Then(delivered) }
		}
		puts = func(s State, n Node[order]) func(*Definition[order]) {
			return func(d *Definition[order]) { d.States[s] = n }
		}
	)
	for name, tt := range map[string]struct {
		spoil func(*Definition[order])
		want  []string
	}{
		"definition's name":              {func(d *Definition[order]) { d.Name = "Order" }, []string{"bad name" + names}},
		"version 0":                      {func(d *Definition[order]) { d.Version = 0 }, []string{"version 0: versions count from 1"}},
		"no start":                       {func(d *Definition[order]) { d.Start = "" }, []string{"no Start"}},
		"start is an end":                {func(d *Definition[order]) { d.Start = delivered }, []string{`Start "delivered" is an end`}},
		"start is unknown":               {func(d *Definition[order]) { d.Start = "packing" }, []string{`Start "packing" is not defined`}},
		"no OnFailure":                   {func(d *Definition[order]) { d.OnFailure = "" }, []string{"no OnFailure: say where a cancelled workflow ends"}},
		"OnFailure unknown":              {func(d *Definition[order]) { d.OnFailure = "lost" }, []string{`OnFailure "lost" is not an end`}},
		"OnFailure a state":              {func(d *Definition[order]) { d.OnFailure = charging }, []string{`OnFailure "charging" is not an end`}},
		"OnFailure is good":              {func(d *Definition[order]) { d.OnFailure = delivered }, []string{`OnFailure "delivered" is a Completed end`}},
		"an end's meaning":               {func(d *Definition[order]) { d.Ends[delivered] = 0 }, []string{`end "delivered" is none of Completed, RolledBack and Failed`}},
		"a meaning beyond":               {func(d *Definition[order]) { d.Ends[delivered] = 4 }, []string{`end "delivered" is none of Completed, RolledBack and Failed`}},
		"an end as well":                 {func(d *Definition[order]) { d.Ends[mailing] = Completed }, []string{"mailing: is an end as well"}},
		"an end's name":                  {func(d *Definition[order]) { d.Ends["Lost!"] = Failed; d.OnFailure = "Lost!" }, []string{`bad end "Lost!"` + names}},
		"an unreachable end":             {func(d *Definition[order]) { d.Ends["lost"] = Failed }, []string{`end "lost" cannot be reached`}},
		"an end reached only by failure": {func(d *Definition[order]) { d.Ends["lost"] = Failed; d.OnFailure = "lost" }, nil},
		"no ends": {func(d *Definition[order]) { d.Ends = nil }, []string{
			"no Ends", `OnFailure "cancelled" is not an end`,
			`approving: leads to "cancelled", which is not defined`,
			`mailing: leads to "delivered", which is not defined`,
			`weighing: leads to "cancelled", which is not defined`,
		}},

		"a state's name": {func(d *Definition[order]) {
			d.States[reviewing] = If(order.big, approving, "Shipping It")
			d.States["Shipping It"] = Sleep(pauseOf).Then(shipping)
		}, []string{"Shipping It: bad name" + names}},
		"an unreachable state": {puts("packing", Sleep(pauseOf).Then(shipping)), []string{"packing: cannot be reached"}},
		"an unknown target": {puts(reserving, Sleep(pauseOf).Then("packing")), []string{
			`reserving: leads to "packing", which is not defined`,
			"approving: cannot be reached", "charging: cannot be reached", "mailing: cannot be reached",
			"reviewing: cannot be reached", "shipping: cannot be reached", "weighing: cannot be reached",
			`end "delivered" cannot be reached`,
		}},
		"no way to an end": {func(d *Definition[order]) {
			d.States[weighing] = If(order.approved, shipping, "waiting")
			d.States["waiting"] = Sleep(pauseOf).Then("waiting")
		}, []string{"waiting: no end can be reached from it"}},
		"a zero node": {puts(weighing, Node[order]{}), []string{"weighing: nothing happens in it"}},
		"a zero step": {charges(step.Step[int, string]{}), []string{
			`charging: bad step name ""` + names, `charging: step "" has no body`,
		}},
		"choices in a circle": {func(d *Definition[order]) {
			d.States[weighing] = Switch(stateOf, shipping, cancelled, reviewing)
			d.States[reviewing] = If(order.big, weighing, approving)
		}, []string{
			"reviewing: its choices lead back to it without work or a wait between",
			"weighing: its choices lead back to it without work or a wait between",
		}},
		"a circle with a wait in it": {puts(weighing, Switch(stateOf, shipping, cancelled, approving)), nil},
		"Switch without targets":     {puts(weighing, Switch(stateOf)), []string{"weighing: Switch has no targets"}},
		"Within 0":                   {puts(approving, Await(approval, (*order).decided).Within(0, cancelled).Then(weighing)), []string{"approving: Within 0s is no time to wait"}},
		"Within below 0":             {puts(approving, Await(approval, (*order).decided).Within(-time.Second, cancelled).Then(weighing)), []string{"approving: Within -1s is no time to wait"}},
		"a signal's name":            {puts(approving, Await(Signal[bool]{"Approval"}, (*order).decided).Then(weighing)), []string{`approving: bad signal "Approval"` + names}},

		"a signal of two types": {puts(weighing, Await(Signal[int]{"approval"}, func(*order, int) {}).Within(time.Hour, cancelled).Then(shipping)), []string{
			`weighing: signal "approval" carries int here, and bool in state "approving"`,
		}},
		"a signal awaited twice": {puts(weighing, Await(approval, (*order).decided).Within(time.Hour, cancelled).Then(shipping)), nil},

		"in is nil":       {puts(charging, Do(charge.NoUndo("free"), nil, (*order).charged).Then(reviewing)), []string{"charging: in of step charge-card is nil"}},
		"cond is nil":     {puts(reviewing, If[order](nil, approving, shipping)), []string{"reviewing: cond is nil"}},
		"pick is nil":     {puts(reviewing, Switch[order](nil, approving, shipping)), []string{"reviewing: pick is nil"}},
		"merge is nil":    {puts(approving, Await[order](approval, nil).Then(weighing)), []string{"approving: merge of signal approval is nil"}},
		"duration is nil": {puts(reserving, Sleep[order](nil).Then(charging)), []string{"reserving: duration is nil"}},

		"no answer":       {charges(charge), []string{`charging: step "charge-card" has an effect, so it needs one of Undo, Pivot and NoUndo`}},
		"no answer, InTx": {charges(step.InTx("charge-card", inTx[int, string])), []string{`charging: step "charge-card" has an effect, so it needs one of Undo, Pivot and NoUndo`}},
		"two answers":     {charges(charge.Undo(refund).NoUndo("free")), []string{`charging: step "charge-card" has Undo and NoUndo: only one of them can hold`}},
		"an undone Func":  {charges(step.Func("charge-card", fn[int, string]).Undo(refund)), []string{`charging: step "charge-card" is a Func, which has no effect to undo: make it a Call or an InTx`}},
		"a Func as it is": {charges(step.Func("charge-card", fn[int, string])), nil},
		"no names at all": {charges(charge.As("").Undo(refund.As(""))), []string{`charging: bad step name ""` + names, `charging: bad undo name ""` + names}},
		"no body":         {charges(step.Call[int, string]("charge-card", nil).NoUndo("free")), []string{`charging: step "charge-card" has no body`}},
		"an empty reason": {charges(charge.NoUndo("")), []string{`charging: step "charge-card" has a NoUndo without a reason`}},
		"a blank reason":  {charges(charge.NoUndo(" \t")), []string{`charging: step "charge-card" has a NoUndo without a reason`}},
		"three answers": {mails(receipt.Undo(step.UndoCall("unmail", undoCall[int, step.None])).Pivot().NoUndo("gone")), []string{
			`mailing: step "mail-receipt" has Undo and Pivot and NoUndo: only one of them can hold`,
			`mailing: step "mail-receipt" has an Undo, but lies behind the pivot "print-label": say NoUndo`,
		}},
		"a step's name":     {charges(charge.As("Charge").Undo(refund)), []string{`charging: bad step name "Charge"` + names}},
		"an undo's name":    {charges(charge.Undo(step.UndoCall("re/fund", undoCall[int, string]))), []string{`charging: bad undo name "re/fund"` + names}},
		"a zero undo":       {charges(charge.Undo(step.Undo[int, string]{})), []string{`charging: bad undo name ""` + names, `charging: undo "" has no body`}},
		"a name used twice": {charges(charge.As("reserve-stock").Undo(refund)), []string{`reserving: uses the step name "reserve-stock", as state "charging" does`}},
		"an undo's name used twice": {charges(charge.Undo(step.UndoCall("release-stock", undoCall[int, string]))), []string{
			`reserving: uses the step name "release-stock", as state "charging" does`,
		}},
		"a step named as its undo": {charges(charge.Undo(step.UndoCall("charge-card", undoCall[int, string]))), []string{`charging: uses the step name "charge-card" twice`}},
		"a policy": {charges(charge.With(step.Policy{Attempts: -2}).Undo(refund)), []string{
			`charging: policy of step "charge-card": attempts -2: use step.Forever for no limit`,
		}},
		"an undo's policy": {charges(charge.Undo(refund.With(step.Policy{Attempts: -2}))), []string{
			`charging: policy of undo "refund-card": attempts -2: use step.Forever for no limit`,
		}},
		"Hold without a timeout": {charges(charge.With(step.Policy{Timeout: -1}).Undo(refund).Hold()), []string{
			`charging: step "charge-card" declares "hold" for an unknown outcome: it needs a Timeout`,
		}},
		"Probe without a function": {charges(charge.Undo(refund).Probe(nil)), []string{`charging: step "charge-card" has no function to probe with`}},

		"an undo behind the pivot": {mails(receipt.Undo(step.UndoCall("unmail", undoCall[int, step.None]))), []string{
			`mailing: step "mail-receipt" has an Undo, but lies behind the pivot "print-label": say NoUndo`,
		}},
		"a pivot behind the pivot": {mails(receipt.Pivot()), []string{`mailing: step "mail-receipt" is a pivot behind the pivot "print-label": say NoUndo`}},
		"a rollback behind the pivot": {func(d *Definition[order]) {
			d.States[mailing] = Do(receipt.NoUndo("gone"), order.cents, nil).Then("asking")
			d.States["asking"] = If(order.big, delivered, cancelled)
		}, []string{`shipping: the pivot "print-label" leads to "cancelled", which is a RolledBack end`}},
		"a late rollback behind the pivot": {func(d *Definition[order]) {
			d.States[mailing] = Await(Signal[bool]{"arrival"}, (*order).decided).Within(time.Hour, cancelled).Then(delivered)
		}, []string{`shipping: the pivot "print-label" leads to "cancelled", which is a RolledBack end`}},
		"a Failed end behind the pivot": {func(d *Definition[order]) {
			d.Ends["lost"] = Failed
			d.States[mailing] = Await(Signal[bool]{"arrival"}, (*order).decided).Within(time.Hour, "lost").Then(delivered)
		}, nil},
		"a pivot in a loop": {func(d *Definition[order]) {
			d.States[mailing] = If(order.big, shipping, delivered)
		}, []string{`shipping: the pivot "print-label" lies on a cycle: it can be passed only once`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := orderSaga()
			tt.spoil(&d)
			require.Equal(t, tt.want, faults(t, d.Validate()))
			require.NotPanics(t, func() { d.Mermaid() })
			m, err := d.Compile()
			require.Equal(t, tt.want == nil, m != nil)
			require.Equal(t, tt.want, faults(t, err))
		})
	}
}

func pauseOf(order) time.Duration { return time.Second }
func stateOf(order) State         { return shipping }

func TestValidateAnEmptyDefinition(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"bad name: a name is 1 to 64 of a-z, 0-9 and '-'",
		"version 0: versions count from 1",
		"no Start",
		"no Ends",
		"no OnFailure: say where a cancelled workflow ends",
	}, faults(t, Definition[order]{}.Validate()))
	require.NotPanics(t, func() { Definition[order]{}.Mermaid() })
}

// TestFaultsNameWhatIsWrong: each line says which definition and which state.
func TestFaultsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	d.Version = 0
	d.States[weighing] = Node[order]{}
	_, err := d.Compile()
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, strings.Join([]string{
		`definition "order": version 0: versions count from 1`,
		`definition "order": state "weighing": nothing happens in it`,
	}, "\n"), err.Error())
	var f *Fault
	require.True(t, errors.As(err, &f))
	require.Equal(t, "order", f.Definition)
}
