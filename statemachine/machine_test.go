package statemachine

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

func TestMachineAnswersForItsDefinition(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	d.Version = 7
	m := compile(t, d)
	require.Equal(t, "order", m.Name())
	require.Equal(t, 7, m.Version())

	var names []string
	for _, sp := range m.Specs() {
		names = append(names, sp.Name)
		found, ok := m.Spec(sp.Name)
		require.True(t, ok)
		require.Equal(t, sp.Kind, found.Kind)
	}
	require.Equal(t, []string{"charge-card", "refund-card", "mail-receipt", "reserve-stock", "release-stock", "print-label"}, names)
	_, ok := m.Spec("pack")
	require.False(t, ok)

	end, ok := m.End(cancelled)
	require.True(t, ok)
	require.Equal(t, RolledBack, end)
	_, ok = m.End(charging)
	require.False(t, ok)
}

// TestCheckSignal: a sender is told at once, not the workflow much later.
func TestCheckSignal(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	known, err := m.CheckSignal("approval", []byte("true"))
	require.True(t, known)
	require.NoError(t, err)

	known, err = m.CheckSignal("approval", []byte(`"yes"`))
	require.True(t, known)
	var bad *PayloadError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "approval", bad.Signal)
	var cause *json.UnmarshalTypeError
	require.ErrorAs(t, err, &cause, "what is wrong with it")

	known, err = m.CheckSignal("approval", []byte(`true false`))
	require.True(t, known)
	require.ErrorAs(t, err, &bad)

	known, err = m.CheckSignal("weather", []byte("true"))
	require.False(t, known)
	require.NoError(t, err)
}

func TestGraph(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{
  "name": "order",
  "version": 1,
  "start": "reserving",
  "onFailure": "cancelled",
  "states": [
    {"name": "approving", "kind": "await", "signal": "approval", "edges": [
      {"to": "weighing", "label": "approval"}, {"to": "cancelled", "label": "timeout"}]},
    {"name": "charging", "kind": "step",
      "step": {"name": "charge-card", "kind": "call", "undo": {"name": "refund-card", "kind": "call"}},
      "edges": [{"to": "reviewing"}]},
    {"name": "mailing", "kind": "step",
      "step": {"name": "mail-receipt", "kind": "call", "noUndo": "a mail cannot be unsent"},
      "edges": [{"to": "delivered"}]},
    {"name": "reserving", "kind": "step",
      "step": {"name": "reserve-stock", "kind": "in-tx", "undo": {"name": "release-stock", "kind": "in-tx"}},
      "edges": [{"to": "charging"}]},
    {"name": "reviewing", "kind": "choice", "edges": [
      {"to": "approving", "label": "yes"}, {"to": "shipping", "label": "no"}]},
    {"name": "shipping", "kind": "step", "step": {"name": "print-label", "kind": "call", "pivot": true}, "edges": [{"to": "mailing"}]},
    {"name": "weighing", "kind": "choice", "edges": [
      {"to": "shipping", "label": "yes"}, {"to": "cancelled", "label": "no"}]}
  ],
  "ends": [{"name": "cancelled", "end": "rolled back"}, {"name": "delivered", "end": "completed"}]
}`, string(compile(t, orderSaga()).Graph()))
}

// TestFingerprint: it changes with the graph, and with nothing else.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := compile(t, orderSaga()).Fingerprint()
	require.Regexp(t, "^[0-9a-f]{64}$", base)

	charge := step.Call("charge-card", call[int, string])
	refund := step.UndoCall("refund-card", undoCall[int, string])
	same := map[string]func(*Definition[order]){
		"nothing": func(*Definition[order]) {},
		"a policy": func(d *Definition[order]) {
			d.States[charging] = Do(charge.With(step.Policy{Attempts: 99}).Undo(refund), order.cents, nil).Then(reviewing)
		},
		"a timeout": func(d *Definition[order]) {
			d.States[approving] = Await(approval, (*order).decided).Within(time.Second, cancelled).Then(weighing)
		},
	}
	other := map[string]func(*Definition[order]){
		"the version": func(d *Definition[order]) { d.Version = 2 },
		"the name":    func(d *Definition[order]) { d.Name = "order-2" },
		"an edge":     func(d *Definition[order]) { d.States[weighing] = If(order.approved, cancelled, shipping) },
		"a signal": func(d *Definition[order]) {
			d.States[approving] = Await(Signal[bool]{"consent"}, (*order).decided).Within(time.Hour, cancelled).Then(weighing)
		},
		"no timeout": func(d *Definition[order]) {
			d.States[approving] = Await(approval, (*order).decided).Then(weighing)
		},
		"a step's name": func(d *Definition[order]) {
			d.States[charging] = Do(charge.As("charge").Undo(refund), order.cents, nil).Then(reviewing)
		},
		"no undo": func(d *Definition[order]) {
			d.States[charging] = Do(charge.NoUndo("free"), order.cents, nil).Then(reviewing)
		},
		"an end": func(d *Definition[order]) { d.Ends[cancelled] = Failed },
	}
	for name, change := range same {
		d := orderSaga()
		change(&d)
		require.Equal(t, base, compile(t, d).Fingerprint(), name)
	}
	for name, change := range other {
		d := orderSaga()
		change(&d)
		require.NotEqual(t, base, compile(t, d).Fingerprint(), name)
	}
}

func TestEndsAndPhasesHaveNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "completed", Completed.String())
	require.Equal(t, "rolled back", RolledBack.String())
	require.Equal(t, "failed", Failed.String())
	require.Equal(t, "end 9", End(9).String())
	require.Equal(t, "rolling back", RollingBack.String())
	require.Equal(t, "phase 0", Phase(0).String())
	require.Equal(t, "phase 9", Phase(9).String())
	for p := Running; p <= Ended; p++ {
		enc, err := json.Marshal(p)
		require.NoError(t, err)
		var back Phase
		require.NoError(t, json.Unmarshal(enc, &back))
		require.Equal(t, p, back)
	}
}
