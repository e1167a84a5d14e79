package statemachine

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// The order saga: the definition that most tests of this package use.

type order struct {
	Cents    int    `json:"cents"`
	Approved bool   `json:"approved,omitempty"`
	Stock    string `json:"stock,omitempty"`
	Payment  string `json:"payment,omitempty"`
	Label    string `json:"label,omitempty"`
}

func (o order) cents() int          { return o.Cents }
func (o *order) reserved(id string) { o.Stock = id }
func (o *order) charged(id string)  { o.Payment = id }
func (o *order) labelled(id string) { o.Label = id }
func (o order) big() bool           { return o.Cents > 100_000 }
func (o *order) decided(yes bool)   { o.Approved = yes }
func (o order) approved() bool      { return o.Approved }

const (
	reserving State = "reserving"
	charging  State = "charging"
	reviewing State = "reviewing"
	approving State = "approving"
	weighing  State = "weighing"
	shipping  State = "shipping"
	mailing   State = "mailing"
	delivered State = "delivered"
	cancelled State = "cancelled"
)

const (
	small = `{"cents":4990}`
	big   = `{"cents":499000}`
)

var approval = Signal[bool]{Name: "approval"}

type tx struct{}

// twice fails for good at the second failure, and pauses for 1 s, then 2 s.
var twice = step.Policy{Attempts: 2, Backoff: step.Backoff{First: time.Second, Jitter: -1}}

func orderSaga() Definition[order] {
	var (
		reserve = step.InTx("reserve-stock", inTx[int, string]).With(twice).
			Undo(step.UndoInTx("release-stock", undoInTx[int, string]).With(twice))
		charge = step.Call("charge-card", call[int, string]).With(twice).
			Undo(step.UndoCall("refund-card", undoCall[int, string]).With(twice))
		label   = step.Call("print-label", call[int, string]).With(twice).Pivot()
		receipt = step.Call("mail-receipt", call[int, step.None]).With(twice).NoUndo("a mail cannot be unsent")
	)
	return Definition[order]{
		Name:    "order",
		Version: 1,
		Start:   reserving,
		States: States[order]{
			reserving: Do(reserve, order.cents, (*order).reserved).Then(charging),
			charging:  Do(charge, order.cents, (*order).charged).Then(reviewing),
			reviewing: If(order.big, approving, shipping),
			approving: Await(approval, (*order).decided).Within(48*time.Hour, cancelled).Then(weighing),
			weighing:  If(order.approved, shipping, cancelled),
			shipping:  Do(label, order.cents, (*order).labelled).Then(mailing),
			mailing:   Do(receipt, order.cents, nil).Then(delivered),
		},
		Ends:      Ends{delivered: Completed, cancelled: RolledBack},
		OnFailure: cancelled,
	}
}

// Bodies: the machine hands them on and never calls them.

func inTx[In, Out any](context.Context, tx, In) (out Out, err error)            { return }
func call[In, Out any](context.Context, step.Key, In) (out Out, err error)      { return }
func fn[In, Out any](context.Context, In) (out Out, err error)                  { return }
func undoInTx[In, Out any](context.Context, tx, step.Done[In, Out]) error       { return nil }
func undoCall[In, Out any](context.Context, step.Key, step.Done[In, Out]) error { return nil }

func compile[S any](t testing.TB, d Definition[S]) *Machine {
	t.Helper()
	m, err := d.Compile()
	require.NoError(t, err)
	return m
}

// play is a workflow that a test leads through its events by hand.
type play struct {
	testing.TB
	m *Machine
	c Cursor
}

// begin starts workflow "w" with that data.
func begin(t testing.TB, m *Machine, data string) *play {
	t.Helper()
	p := &play{TB: t, m: m, c: Cursor{ID: "w", Data: []byte(data), PastKnown: true}}
	p.take(Started{})
	return p
}

// take gives the workflow its next event and returns the commands.
func (p *play) take(e Event) []Command {
	p.Helper()
	c, cmds, err := next(p, p.m, p.c, e)
	require.NoError(p, err)
	p.c = c
	return cmds
}

// done ends the marked steps one after the other, with these results.
func (p *play) done(outs ...string) []Command {
	p.Helper()
	var cmds []Command
	for _, out := range outs {
		cmds = p.take(StepDone{Out: []byte(out)})
	}
	return cmds
}

// refuses gives the workflow an event that it must not take.
func (p *play) refuses(e Event) error {
	p.Helper()
	c, cmds, err := next(p, p.m, p.c, e)
	require.Error(p, err)
	require.Equal(p, p.c, c, "an error leaves the cursor as it was")
	require.Empty(p, cmds)
	return err
}

// passesOver gives the workflow an event that is not meant for where it stands.
func (p *play) passesOver(e Event) {
	p.Helper()
	before := p.c
	require.Empty(p, p.take(e))
	require.Equal(p, before, p.c)
}

// at tells where the workflow stands, as far as its columns go.
func (p *play) at(phase Phase, state State, mark Mark) {
	p.Helper()
	require.Equal(p, phase, p.c.Phase, "phase")
	require.Equal(p, state, p.c.State, "state")
	require.Equal(p, mark, p.c.Mark, "mark")
}

// next calls Next twice and proves that it is a function: equal answers, and
// nothing that the given cursor refers to is changed.
func next(t testing.TB, m *Machine, c Cursor, e Event) (Cursor, []Command, error) {
	before := text(c)
	c1, cmds, err := m.Next(c, e)
	c2, again, err2 := m.Next(c, e)
	require.Equal(t, before, text(c), "the given cursor was changed")
	require.Equal(t, text(c1), text(c2), "two answers to one question")
	require.Equal(t, plain(cmds), plain(again), "two answers to one question")
	require.Equal(t, err == nil, err2 == nil, "two answers to one question")
	return c1, cmds, err
}

// text is all of a cursor, spare room behind its slices included.
func text(c Cursor) string {
	c.Past = c.Past[:cap(c.Past)]
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// plain takes the functions out of commands, so that they can be compared.
func plain(cmds []Command) []Command {
	cmds = slices.Clone(cmds)
	for i, cmd := range cmds {
		if run, ok := cmd.(RunStep); ok {
			run.Spec = step.Spec{Name: run.Spec.Name}
			cmds[i] = run
		}
	}
	return cmds
}

// runs is the command to run the first step of a workflow "w" of that name.
func runs(name, in string) RunStep {
	return RunStep{Spec: step.Spec{Name: name}, Key: step.NewKey("w", name, 1), In: []byte(in)}
}

// undoes is the command to run the undo of a step that is known to be done.
func undoes(undo, name, in, out string) RunStep {
	return RunStep{
		Spec:   step.Spec{Name: undo},
		Key:    step.NewKey("w", undo, 1),
		Undoes: step.Undoes{Key: step.NewKey("w", name, 1), In: []byte(in), Out: []byte(out), Known: true},
	}
}

// undoesUnknown is the command to run the undo of a step that may be done.
func undoesUnknown(undo, name, in string) RunStep {
	run := undoes(undo, name, in, "")
	run.Undoes.Out, run.Undoes.Known = nil, false
	return run
}

// first is the mark of a step's first attempt.
func first(name string) Mark { return Mark{Step: name, Group: 1, Attempt: 1} }

// wants compares commands, in order.
func wants(t testing.TB, got []Command, want ...Command) {
	t.Helper()
	require.Equal(t, want, plain(got))
}
