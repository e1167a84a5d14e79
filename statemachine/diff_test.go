package statemachine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	base := compile(t, orderSaga()).Graph()
	charge := step.Call("charge-card", call[int, string])
	for name, c := range map[string]struct {
		change func(*Definition[order])
		worst  Change
		texts  []string
	}{
		"nothing": {func(*Definition[order]) {}, Same, nil},
		"an edge": {func(d *Definition[order]) { d.States[weighing] = If(order.approved, cancelled, shipping) }, Safe,
			[]string{`state "weighing": leads to cancelled (yes), shipping (no), not to shipping (yes), cancelled (no)`}},
		"a new state": {func(d *Definition[order]) {
			d.States["resting"] = Sleep(func(order) time.Duration { return 0 }).Then(shipping)
			d.States[weighing] = If(order.approved, "resting", cancelled)
		}, Safe, []string{`state "resting": is new`}},
		"a step's undo": {func(d *Definition[order]) {
			d.States[charging] = Do(charge.NoUndo("free"), order.cents, nil).Then(reviewing)
		}, NeedsVersion, []string{
			`state "charging": no longer has step charge-card (call, undo refund-card)`, `state "charging": has step charge-card (call)`,
		}},
		"a state's name": {func(d *Definition[order]) {
			d.States["posting"] = d.States[mailing]
			delete(d.States, mailing)
			d.States[shipping] = Do(step.Call("print-label", call[int, string]).Pivot(), order.cents, (*order).labelled).Then("posting")
		}, NeedsRenamed, []string{`state "mailing": is gone, and "posting" looks like it: if that is its new name, say so in Renamed`, `state "posting": is new`}},
		"a state that is gone": {func(d *Definition[order]) {
			delete(d.States, mailing)
			d.States[shipping] = Do(step.Call("print-label", call[int, string]).Pivot(), order.cents, (*order).labelled).Then(delivered)
		}, NeedsVersion, []string{`state "mailing": is gone`}},
		"a signal": {func(d *Definition[order]) {
			d.States[approving] = Await(Signal[bool]{"consent"}, (*order).decided).Within(1, cancelled).Then(weighing)
		}, NeedsVersion, []string{`state "approving": waits for "consent", not for "approval"`}},
		"an end": {func(d *Definition[order]) { d.Ends[cancelled] = Failed }, NeedsVersion, []string{`end "cancelled" is failed, not rolled back`}},
	} {
		d := orderSaga()
		c.change(&d)
		ds, err := Diff(base, graphOf(t, d))
		require.NoError(t, err, name)
		require.Equal(t, c.worst, Worst(ds), name)
		var texts []string
		for _, diff := range ds {
			texts = append(texts, diff.String())
		}
		require.Subset(t, texts, c.texts, name)
	}
	_, err := Diff(base, []byte("{"))
	require.Error(t, err)
}

// graphOf is the graph of a definition.
func graphOf(t *testing.T, d Definition[order]) []byte {
	t.Helper()
	g, err := d.table().encode()
	require.NoError(t, err)
	return g
}

func TestCanStand(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	require.True(t, m.CanStand(charging, "charge-card"))
	require.True(t, m.CanStand(charging, "release-stock"), "an undo may run in any state")
	require.True(t, m.CanStand(approving, ""))
	require.False(t, m.CanStand(charging, "print-label"))
	require.False(t, m.CanStand("gone", ""))
	require.True(t, compile(t, parallel()).CanStand(reserving, "label"))
}

// TestDrawGraph: what the code draws and what its stored graph draws differ in how
// long a wait is, and in nothing else.
func TestDrawGraph(t *testing.T) {
	t.Parallel()
	for _, d := range []Definition[order]{orderSaga(), parallel(), racing()} {
		drawn, err := DrawGraph(compile(t, d).Graph())
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(d.Mermaid(), ": after 48h", ": timeout"), drawn)
	}
	_, err := DrawGraph([]byte("no"))
	require.Error(t, err)
}
