package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// trip is data for small definitions that go where the test says.
type trip struct {
	To    State         `json:"to,omitempty"`
	Pause time.Duration `json:"pause,omitempty"`
	Times int           `json:"times,omitempty"`
}

func (d trip) to() State            { return d.To }
func (d trip) pause() time.Duration { return d.Pause }
func (d trip) times() int           { return d.Times }
func (d trip) twice() bool          { return d.Times >= 2 }
func (d *trip) count(int)           { d.Times++ }
func (d *trip) went(s State)        { d.To = s }

var direction = Signal[State]{Name: "direction"}

// trips builds a definition with the ends good, bad (RolledBack) and lost
// (Failed), all of which can be reached.
func trips(states States[trip]) Definition[trip] {
	if _, ok := states["sort"]; !ok {
		states["sort"] = Switch(trip.to, "good", "bad", "lost", "start")
	}
	return Definition[trip]{
		Name: "trip", Version: 1, Start: "start", States: states, OnFailure: "bad",
		Ends: Ends{"good": Completed, "bad": RolledBack, "lost": Failed},
	}
}

func TestStartRunsTheFirstStep(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	c, cmds, err := next(t, m, Cursor{ID: "w", Data: []byte(small)}, Started{})
	require.NoError(t, err)
	require.Equal(t, Cursor{ID: "w", State: reserving, Phase: Running, Data: []byte(small), Mark: first("reserve-stock")}, c)
	wants(t, cmds, runs("reserve-stock", "4990"))
}

func TestStartHappensOnce(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), small)
	require.ErrorIs(t, p.refuses(Started{}), ErrUnexpected)
}

func TestChoicesArePassedAtOnce(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]State{small: shipping, big: approving} {
		p := begin(t, compile(t, orderSaga()), data)
		p.done(`"s"`, `"p"`)
		require.Equal(t, want, p.c.State)
	}
}

func TestAChoiceMayLeadToAnEndAtTheStart(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start": If(trip.twice, "sort", "sort"),
		"sort":  Switch(trip.to, "good", "bad", "lost"),
	}))
	for end, cause := range map[State]Cause{"good": "", "bad": Chosen, "lost": Chosen} {
		p := begin(t, m, `{"to":"`+string(end)+`"}`)
		require.Equal(t, Cursor{ID: "w", State: end, Phase: Ended, Data: p.c.Data, End: end, Cause: cause, PastKnown: true}, p.c)
	}
}

func TestSwitchMustKeepToItsTargets(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{"start": Switch(trip.to, "sort", "good"), "sort": Switch(trip.to, "good", "bad", "lost")}))
	for _, to := range []string{"bad", "start", "nowhere", ""} {
		c := Cursor{Data: []byte(`{"to":"` + to + `"}`)}
		_, _, err := next(t, m, c, Started{})
		var code *CodeError
		require.ErrorAs(t, err, &code, to)
		require.Equal(t, State("start"), code.State)
		require.Equal(t, "pick", code.What)
		require.ErrorContains(t, err, `"`+to+`", which is none of its targets`)
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{"start": Sleep(trip.pause).Then("sort")}))
	for pause, want := range map[string]time.Duration{"60000000000": time.Minute, "0": 0, "-5": 0} {
		p := &play{TB: t, m: m, c: Cursor{Data: []byte(`{"to":"good","pause":` + pause + `}`)}}
		wants(t, p.take(Started{}), Wake{After: want})
		p.at(Waiting, "start", Mark{})
		require.Empty(t, p.take(Resumed{}), "nothing to take up before it is time")
		p.at(Waiting, "start", Mark{})
		p.take(TimerFired{})
		p.at(Ended, "good", Mark{})
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	cmds := p.done(`"s"`, `"p"`)
	p.at(Waiting, approving, Mark{})
	require.Equal(t, "approval", p.c.Awaits)
	wants(t, cmds[1:], Wake{After: 48 * time.Hour})
	require.Empty(t, p.take(Resumed{}), "nothing to take up before the signal")
	p.at(Waiting, approving, Mark{})

	cmds = p.take(Signalled{Name: "approval", Payload: []byte("true")})
	p.at(Running, shipping, first("print-label"))
	require.Empty(t, p.c.Awaits)
	require.JSONEq(t, `{"cents":499000,"approved":true,"stock":"s","payment":"p"}`, string(p.c.Data))
	wants(t, cmds, runs("print-label", "499000"))
}

func TestAwaitWithoutWithinHasNoEnd(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{"start": Await(direction, (*trip).went).Then("sort")}))
	p := &play{TB: t, m: m, c: Cursor{Data: []byte("{}")}}
	require.Empty(t, p.take(Started{}))
	require.Empty(t, p.take(TimerFired{}))
	p.at(Waiting, "start", Mark{})
	p.take(Signalled{Name: "direction", Payload: []byte(`"good"`)})
	p.at(Ended, "good", Mark{})
}

func TestSignalThatDoesNotFit(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	require.ErrorIs(t, p.refuses(Signalled{Name: "approval", Payload: []byte("true")}), ErrUnexpected, "before the wait")
	p.done(`"s"`, `"p"`)
	require.ErrorIs(t, p.refuses(Signalled{Name: "weather", Payload: []byte("true")}), ErrUnexpected, "another signal")
	for _, payload := range []string{`"yes"`, "", "tru", "true false"} {
		err := p.refuses(Signalled{Name: "approval", Payload: []byte(payload)})
		var bad *PayloadError
		require.ErrorAs(t, err, &bad, payload)
		require.Equal(t, "approval", bad.Signal)
		require.ErrorContains(t, err, `signal "approval"`)
	}
	p.take(Signalled{Name: "approval", Payload: []byte("true")})
	require.ErrorIs(t, p.refuses(Signalled{Name: "approval", Payload: []byte("true")}), ErrUnexpected, "after the wait")
}

// TestSignalMustBeTheOneOfTheStateAndOfTheCursor: they disagree only if the
// cursor is another definition's.
func TestSignalMustBeTheOneOfTheStateAndOfTheCursor(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	p.done(`"s"`, `"p"`)
	p.c.Awaits = "consent"
	for _, name := range []string{"approval", "consent"} {
		require.ErrorIs(t, p.refuses(Signalled{Name: name, Payload: []byte("true")}), ErrUnexpected, name)
	}
}

// TestTimeout: the late edge may lead to a rollback, whose cause it is, or to
// further work.
func TestTimeout(t *testing.T) {
	t.Parallel()
	late := func(to State) *Machine {
		return compile(t, trips(States[trip]{
			"start":  Await(direction, (*trip).went).Within(time.Minute, to).Then("sort"),
			"nap":    Sleep(trip.pause).Then(to),
			"sort":   If(trip.twice, "nap", "choose"),
			"choose": Switch(trip.to, "good", "bad", "lost", "nap"),
		}))
	}
	for _, tt := range []struct {
		late, state State
		phase       Phase
		cause       Cause
		reason      string
	}{
		{"bad", "bad", Ended, TimedOut, `no signal "direction" within 1m`},
		{"lost", "lost", Ended, TimedOut, `no signal "direction" within 1m`},
		{"good", "good", Ended, "", ""},
		{"choose", "bad", Ended, Chosen, `no signal "direction" within 1m`},
	} {
		p := begin(t, late(tt.late), `{"to":"bad"}`)
		p.take(TimerFired{})
		p.at(tt.phase, tt.state, Mark{})
		require.Equal(t, tt.cause, p.c.Cause, tt.late)
		require.Equal(t, tt.reason, p.c.Reason, tt.late)
	}
}

func TestTimeoutMayLeadToFurtherWork(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start": Await(direction, (*trip).went).Within(time.Minute, "nap").Then("sort"),
		"nap":   Sleep(trip.pause).Then("sort"),
	}))
	p := begin(t, m, `{"pause":7}`)
	wants(t, p.take(TimerFired{}), Wake{After: 7})
	p.at(Waiting, "nap", Mark{})
	require.Empty(t, p.c.Awaits)
	require.Empty(t, p.c.Reason)
}

func TestLateTimerMeansNothing(t *testing.T) {
	t.Parallel()
	m := compile(t, orderSaga())
	held := begin(t, m, small)
	held.take(Unstorable{Error: "too deep"})
	ended := begin(t, m, small)
	ended.take(CancelAsked{})
	for _, p := range []*play{held, ended, {TB: t, m: m}} {
		before := p.c
		require.Empty(t, p.take(TimerFired{}))
		require.Equal(t, before, p.c)
	}
}

// TestGroups: each entry into a state on a cycle is a new intent, elsewhere
// the group stays 1 and the cursor does not grow.
func TestGroups(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start":  Do(step.Func("prepare", fn[int, int]), trip.times, nil).Then("work"),
		"work":   Do(step.Call("work", call[int, int]).Undo(step.UndoCall("unwork", undoCall[int, int])), trip.times, (*trip).count).Then("enough"),
		"enough": If(trip.twice, "tidy", "work"),
		"tidy":   Do(step.Func("tidy", fn[int, int]), trip.times, nil).Then("sort"),
		"sort":   Switch(trip.to, "good", "bad", "lost"),
	}))
	p := begin(t, m, `{"to":"bad"}`)
	p.at(Running, "start", first("prepare"))
	require.Nil(t, p.c.Groups)

	p.done("0")
	p.at(Running, "work", first("work"))
	cmds := p.done("0")
	p.at(Running, "work", Mark{Step: "work", Group: 2, Attempt: 1})
	require.Equal(t, step.NewKey("w", "work", 2), cmds[1].(RunStep).Key)
	require.Equal(t, map[State]int{"work": 2}, p.c.Groups)

	p.done("0")
	p.at(Running, "tidy", first("tidy"))

	cmds = p.done("0")
	run := cmds[1].(RunStep)
	require.Equal(t, step.NewKey("w", "unwork", 2), run.Key, "the newest first")
	require.Equal(t, step.NewKey("w", "work", 2), run.Undoes.Key)
	cmds = p.take(StepDone{})
	require.Equal(t, step.NewKey("w", "unwork", 1), cmds[1].(RunStep).Key)
	require.Equal(t, "0", string(cmds[1].(RunStep).Undoes.In))
	p.take(StepDone{})
	p.at(Ended, "bad", Mark{})
}

func TestAStateThatLeadsToItselfIsACycle(t *testing.T) {
	t.Parallel()
	m := compile(t, trips(States[trip]{
		"start": Do(step.Func("work", fn[int, int]), trip.times, nil).Then("sort"),
	}))
	p := begin(t, m, `{"to":"start"}`)
	p.done("0")
	p.at(Running, "start", Mark{Step: "work", Group: 2, Attempt: 1})
}
