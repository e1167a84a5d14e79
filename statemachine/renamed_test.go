package statemachine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// route is a definition whose states and ends are called as the test wants.
func route(start, weighing, good, bad State, renamed map[State]State) Definition[trip] {
	go1 := step.Call("go", call[int, int]).With(once).Undo(step.UndoCall("come-back", undoCall[int, int]))
	return Definition[trip]{
		Name: "route", Version: 1, Start: start, OnFailure: bad, Renamed: renamed,
		States: States[trip]{
			start: Do(go1, trip.times, (*trip).count).Then(weighing),
			weighing: Switch(func(d trip) State {
				if d.Times > 1 {
					return good
				}
				return start
			}, good, start),
		},
		Ends: Ends{good: Completed, bad: RolledBack},
	}
}

var newNames = map[State]State{"departing": "start", "choosing": "weighing", "arrived": "good", "returned": "bad"}

// A new name in the code is no change of the graph.
func TestRenamedIsNoChange(t *testing.T) {
	t.Parallel()
	old := compile(t, route("start", "weighing", "good", "bad", nil))
	now := compile(t, route("departing", "choosing", "arrived", "returned", newNames))
	require.Equal(t, old.Fingerprint(), now.Fingerprint())
	require.Equal(t, string(old.Graph()), string(now.Graph()))

	p := begin(t, old, `{}`)
	p.done("1")
	p.m = now // another program goes on with it
	p.at(Running, "start", Mark{Step: "go", Group: 2, Attempt: 1})
	p.done("1")
	p.at(Ended, "good", Mark{})
	require.Equal(t, State("arrived"), now.NameOf(p.c.State))
	require.Equal(t, State("good"), old.NameOf(p.c.State))

	q := begin(t, now, `{}`)
	q.m = old // and back
	q.take(StepFailed{Rejected: true, Error: "no"})
	q.at(Ended, "bad", Mark{})
}

func TestRenamedFaults(t *testing.T) {
	t.Parallel()
	for want, names := range map[string]map[State]State{
		`"nowhere" is no state and no end`:                {"nowhere": "somewhere"},
		"gives a state a first name that another state":   {"start": "weighing"},
		`"start" is its own first name`:                   {"start": "start"},
		"a name is 1 to 64":                               {"start": "Start"},
		`"start" and "weighing" have the same first name`: {"start": "x", "weighing": "x"},
	} {
		err := route("start", "weighing", "good", "bad", names).Validate()
		require.ErrorContains(t, err, want)
	}
}

// A rename that nobody has declared is told from a state that is gone.
func TestDiffFindsARename(t *testing.T) {
	t.Parallel()
	old := compile(t, route("start", "weighing", "good", "bad", nil))
	now := compile(t, route("departing", "weighing", "good", "bad", nil))
	ds, err := Diff(old.Graph(), now.Graph())
	require.NoError(t, err)
	require.Equal(t, NeedsRenamed, Worst(ds))
	require.Equal(t, "needs Renamed", Worst(ds).String())
	require.Contains(t, ds, Difference{NeedsRenamed, "start", `is gone, and "departing" looks like it: if that is its new name, say so in Renamed`})
}
