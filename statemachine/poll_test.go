package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// asking asks every minute, three times at most.
func asking(p func(Polling[trip]) Polling[trip]) Definition[trip] {
	ask := step.Call("ask", call[int, int]).With(twice).NoUndo("asking changes nothing")
	poll := Poll(ask, trip.times, (*trip).count, func(n int) bool { return n >= 10 })
	return trips(States[trip]{"start": p(poll).Then("sort")})
}

func everyMinute(p Polling[trip]) Polling[trip] {
	return p.Every(time.Minute).AtMost(3, "lost")
}

func TestPollAsksAgain(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, asking(everyMinute)), `{"to":"good"}`)
	p.at(Running, "start", Mark{Step: "ask", Group: 1, Attempt: 1})
	for group := 2; group <= 3; group++ {
		cmds := p.done("9")
		require.Equal(t, Done, cmds[0].(Record).Outcome)
		require.Equal(t, group-1, cmds[0].(Record).Group)
		require.Equal(t, Wake{After: time.Minute}, cmds[1])
		p.at(Waiting, "start", Mark{Step: "ask", Group: group})
		require.JSONEq(t, `{"to":"good"}`, string(p.c.Data), "an answer that will not do is not merged")
		cmds = p.again()
		require.Equal(t, group, cmds[0].(RunStep).Key.Group(), "each asking has a key of its own")
		p.at(Running, "start", Mark{Step: "ask", Group: group, Attempt: 1})
	}
	p.done("10")
	p.at(Ended, "good", Mark{})
	require.JSONEq(t, `{"to":"good","times":1}`, string(p.c.Data))
	require.Zero(t, p.c.Asked)
}

func TestPollGivesUp(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, asking(everyMinute)), `{"to":"good"}`)
	p.done("1")
	p.again()
	p.done("2")
	p.again()
	cmds := p.done("3")
	require.IsType(t, Record{}, cmds[0])
	p.at(Ended, "lost", Mark{})
}

// A failed asking is tried again within its group, and does not count.
func TestPollFails(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, asking(everyMinute)), `{"to":"good"}`)
	p.done("1")
	p.again()
	p.take(StepFailed{Error: "lost"})
	p.at(Waiting, "start", Mark{Step: "ask", Group: 2, Attempt: 1, Failures: 1})
	require.Equal(t, 1, p.c.Asked)
	p.again()
	p.done("10")
	p.at(Ended, "good", Mark{})
}

// A cancellation between two askings finds nothing under way.
func TestPollIsCancelledBetween(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, asking(everyMinute)), `{"to":"good"}`)
	p.done("1")
	cmds := p.take(CancelAsked{Reason: "enough"})
	wants(t, cmds, Answer{CancelAccepted})
	p.at(Ended, "bad", Mark{})
}

func TestPollThatNeverEnds(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, asking(func(p Polling[trip]) Polling[trip] { return p.Every(time.Second) })), `{"to":"good"}`)
	for range 50 {
		p.done("1")
		p.again()
	}
	p.done("10")
	p.at(Ended, "good", Mark{})
}

func TestPollFaults(t *testing.T) {
	t.Parallel()
	ask := step.Call("ask", call[int, int]).With(twice).NoUndo("asking changes nothing")
	for want, poll := range map[string]Polling[trip]{
		"needs Every":           Poll(ask, trip.times, nil, func(int) bool { return true }),
		"until of step ask":     Poll(ask, trip.times, nil, nil).Every(1),
		"AtMost 0: at least 1":  Poll(ask, trip.times, nil, func(int) bool { return true }).Every(1).AtMost(0, "lost"),
		"AtMost -1: at least 1": Poll(ask, trip.times, nil, func(int) bool { return true }).Every(1).AtMost(-1, "lost"),
		"AtMost leads nowhere":  Poll(ask, trip.times, nil, func(int) bool { return true }).Every(1).AtMost(2, ""),
		"the pivot":             Poll(step.Call("ask", call[int, int]).Pivot(), trip.times, nil, func(int) bool { return true }).Every(1),
		"has an Undo":           Poll(step.Call("ask", call[int, int]).Undo(step.UndoCall("un", undoCall[int, int])), trip.times, nil, func(int) bool { return true }).Every(1),
	} {
		require.ErrorContains(t, trips(States[trip]{"start": poll.Then("sort")}).Validate(), want)
	}
}

// The parts of a Poll can be used twice.
func TestPollIsAValue(t *testing.T) {
	t.Parallel()
	ask := step.Call("ask", call[int, int]).NoUndo("asking changes nothing")
	base := Poll(ask, trip.times, nil, func(int) bool { return true }).Every(time.Second)
	base.Every(time.Hour)
	base.AtMost(1, "lost")
	require.Equal(t, time.Second, base.node.poll.every)
	require.Zero(t, base.node.poll.atMost)
}

func TestPollIsDrawn(t *testing.T) {
	t.Parallel()
	d := asking(everyMinute)
	require.Contains(t, d.Mermaid(), "start: start / poll ask (call)")
	require.Contains(t, d.Mermaid(), "start --> lost: too late")
	m := compile(t, d)
	drawn, err := DrawGraph(m.Graph())
	require.NoError(t, err)
	require.Equal(t, d.Mermaid(), drawn)
	plain := trips(States[trip]{"start": Do(step.Call("ask", call[int, int]).NoUndo("asking changes nothing"), trip.times, (*trip).count).Then("sort")})
	ds, err := Diff(compile(t, plain).Graph(), m.Graph())
	require.NoError(t, err)
	require.Equal(t, NeedsVersion, Worst(ds))
}
