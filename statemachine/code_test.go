package statemachine

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// brittle is data whose functions panic where Break says.
type brittle struct {
	Break string
	Value any `json:",omitempty"`
}

func (b brittle) breaks(where string) {
	if b.Break == where {
		panic(io.ErrUnexpectedEOF)
	}
}

func (b brittle) in() any              { b.breaks("in"); return b.Value }
func (b *brittle) out(v any)           { b.breaks("out"); b.Value = v }
func (b brittle) cond() bool           { b.breaks("cond"); return true }
func (b brittle) pick() State          { b.breaks("pick"); return "nap" }
func (b brittle) nap() time.Duration   { b.breaks("duration"); return 0 }
func (b *brittle) merge(v json.Number) { b.breaks("merge"); b.Value = v }

// TestPanics: a function of the definition that panics is blamed by name, and
// the workflow stays where it was.
func TestPanics(t *testing.T) {
	t.Parallel()
	m := compile(t, brittleSaga())
	for _, tt := range []struct {
		what  string
		state State
		step  string
		lead  []Event
		event Event
	}{
		{"cond", "start", "", nil, Started{}},
		{"in", "work", "work", nil, Started{}},
		{"out", "work", "work", []Event{Started{}}, StepDone{Out: []byte("1")}},
		{"merge", "ask", "", []Event{Started{}, StepDone{Out: []byte("1")}, TimerFired{}}, Signalled{"answer", []byte("1")}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			p := &play{TB: t, m: m, c: Cursor{ID: "w", Data: []byte(`{"Break":"` + tt.what + `"}`), PastKnown: true}}
			for _, e := range tt.lead {
				p.take(e)
			}
			err := p.refuses(tt.event)
			var code *CodeError
			require.ErrorAs(t, err, &code)
			require.Equal(t, CodeError{State: tt.state, Step: tt.step, What: tt.what, Err: code.Err, Stack: code.Stack}, *code)
			require.Contains(t, string(code.Stack), "brittle")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the panic's own value")
			require.ErrorContains(t, err, "panicked: unexpected EOF")
			require.ErrorContains(t, err, `state "`+string(tt.state)+`"`)
			require.ErrorContains(t, err, tt.step)
		})
	}
}

// TestPanicsBehindAStep: the step is recorded, and the workflow is held where it
// cannot go on.
func TestPanicsBehindAStep(t *testing.T) {
	t.Parallel()
	m := compile(t, brittleSaga())
	for what, state := range map[string]State{"pick": "sort", "duration": "nap"} {
		p := &play{TB: t, m: m, c: Cursor{ID: "w", Data: []byte(`{"Break":"` + what + `"}`), PastKnown: true}}
		p.take(Started{})
		require.IsType(t, Record{}, p.done("1")[0])
		p.at(Held, state, Mark{})
		require.Contains(t, p.c.Reason, what+": panicked: unexpected EOF")
	}
}

func brittleSaga() Definition[brittle] {
	return Definition[brittle]{
		Name: "brittle", Version: 1, Start: "start", OnFailure: "bad",
		States: States[brittle]{
			"start": If(brittle.cond, "work", "good"),
			"work":  Do(step.Call("work", call[any, any]).Undo(step.UndoCall("unwork", undoCall[any, any])), brittle.in, (*brittle).out).Then("sort"),
			"sort":  Switch(brittle.pick, "nap"),
			"nap":   Sleep(brittle.nap).Then("ask"),
			"ask":   Await(Signal[json.Number]{"answer"}, (*brittle).merge).Then("good"),
		},
		Ends: Ends{"good": Completed, "bad": RolledBack},
	}
}

// mute is a value that cannot be encoded, and says so in its own way.
type mute struct{ Loud bool }

func (m mute) MarshalJSON() ([]byte, error) {
	if m.Loud {
		panic("no")
	}
	return nil, errors.New("cannot be written down")
}

type album struct {
	Loud  bool
	Spoil bool  `json:",omitempty"`
	Song  *mute `json:",omitempty"`
}

// TestWhatCannotBeEncodedOrDecoded is the definition's fault as well.
func TestWhatCannotBeEncodedOrDecoded(t *testing.T) {
	t.Parallel()
	m := compile(t, Definition[album]{
		Name: "album", Version: 1, Start: "start", OnFailure: "bad",
		States: States[album]{
			"start": If(func(a album) bool { return a.Spoil }, "spoil", "sing"),
			"spoil": Do(step.Func("spoil", fn[int, int]), func(album) int { return 0 }, func(a *album, _ int) { a.Song = &mute{a.Loud} }).Then("good"),
			"sing":  Do(step.Func("sing", fn[mute, int]), func(a album) mute { return mute{a.Loud} }, nil).Then("good"),
		},
		Ends: Ends{"good": Completed, "bad": RolledBack},
	})
	for data, want := range map[string]string{
		`{`:                           `state "start": cond: decode data: unexpected end of JSON input`,
		`{"Loud":7}`:                  `state "start": cond: decode data: json: cannot unmarshal number`,
		`{"Loud":false}`:              `state "sing": in of step "sing": encode: json: error calling MarshalJSON`,
		`{"Loud":true}`:               `state "sing": in of step "sing": panicked: no`,
		`{"Loud":false,"Spoil":true}`: `state "spoil": out of step "spoil": encode data: json: error calling MarshalJSON`,
		`{"Loud":true,"Spoil":true}`:  `state "spoil": out of step "spoil": panicked: no`,
	} {
		p := &play{TB: t, m: m, c: Cursor{Data: []byte(data)}}
		_, _, err := m.Next(p.c, Started{})
		if err == nil {
			p.take(Started{})
			err = p.refuses(StepDone{Out: []byte("0")})
		}
		var code *CodeError
		require.ErrorAs(t, err, &code, data)
		require.ErrorContains(t, err, want)
	}
}

func TestAResultThatDoesNotFitItsType(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	for _, out := range []string{"", "7", `"s`} {
		err := p.refuses(StepDone{Out: []byte(out)})
		var code *CodeError
		require.ErrorAs(t, err, &code)
		require.Equal(t, "out", code.What)
	}
}

// TestAnUnknownOutcomeNeedsItsInput: without it nobody could undo the step.
func TestAnUnknownOutcomeNeedsItsInput(t *testing.T) {
	t.Parallel()
	m := compile(t, brittleSaga())
	p := begin(t, m, `{"Break":""}`)
	p.c.Data = []byte(`{"Break":"in"}`)
	for _, e := range []Event{StepDone{Out: []byte("1")}, StepFailed{Final: true}, CancelAsked{Begun: true}, Resumed{}} {
		var code *CodeError
		require.ErrorAs(t, p.refuses(e), &code, "%T", e)
		require.Equal(t, "in", code.What)
	}
}

func TestAHeldWorkflowKeepsWhatACodeErrorFound(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, brittleSaga()), `{"Break":"out"}`)
	err := p.refuses(StepDone{Out: []byte("1")})
	before := p.c
	p.take(Unstorable{Error: err.Error()})
	requireHeld(t, before, p.c)
	require.Contains(t, p.c.Reason, "out of step")
}
