package statemachine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// tally is data that keeps what has been merged, and how.
type tally struct {
	Merged []string `json:"merged,omitempty"`
}

func (d *tally) merge(i, n int, out string) {
	d.Merged = append(d.Merged, fmt.Sprint(i, ":", n, ":", out))
}

// counting works on numbers, page by page, two at once.
func counting(change func(EachTask[tally]) EachTask[tally]) Definition[tally] {
	pages := step.Func("pages", func(context.Context, string) (Page[int], error) { return Page[int]{}, nil })
	item := step.Call("item", call[int, string]).With(once).Undo(step.UndoCall("void", undoCall[int, string]).With(once))
	task := EachPage(pages, item, (*tally).merge).AtMost(2)
	if change != nil {
		task = change(task)
	}
	return Definition[tally]{
		Name: "counting", Version: 1, Start: "counting", OnFailure: "undone",
		States: States[tally]{"counting": task.Then("counted")},
		Ends:   Ends{"counted": Completed, "undone": RolledBack},
	}
}

// counts begins a workflow that is asking for its first page.
func counts(t testing.TB, d Definition[tally]) *play {
	p := begin(t, compile(t, d), `{}`)
	cmds := p.take(Resumed{})
	require.Equal(t, `""`, string(cmds[0].(RunStep).In))
	p.at(Running, "counting", Mark{Step: "pages", Group: 1, Attempt: 1})
	return p
}

func pageOf(next string, items ...int) string {
	enc, err := json.Marshal(Page[int]{items, next})
	if err != nil {
		panic(err)
	}
	return string(enc)
}

// lanesOf runs the lanes of a page to their ends, and gives their records to the root.
func (p *play) lanesOf(cmds []Command, out string) []Command {
	p.Helper()
	var results []Past
	var ends []BranchEnded
	for _, c := range branches(cmds) {
		lane := &play{p.TB, p.m, c}
		lane.take(Resumed{})
		for lane.c.Phase != Ended {
			cmds := lane.take(StepDone{Out: []byte(out)})
			results = append(results, recordsOf(cmds)...)
		}
		ends = append(ends, BranchEnded{Path: lane.c.Branch})
	}
	for _, e := range ends[:len(ends)-1] {
		p.take(e)
	}
	require.ErrorIs(p, p.refuses(ends[len(ends)-1]), ErrNeedsResults, "those of the page are enough")
	p.c.Results, p.c.ResultsKnown = results, true
	return p.take(ends[len(ends)-1])
}

func TestPageAfterPage(t *testing.T) {
	t.Parallel()
	p := counts(t, counting(nil))
	cmds := p.done(pageOf("b", 10, 20, 30))
	require.Equal(t, Record{Step: "pages", Group: 1, Outcome: Done, Attempt: 1, Out: []byte(pageOf("b", 10, 20, 30))}, cmds[0])
	p.at(Waiting, "counting", Mark{})
	require.Equal(t, 2, p.c.Open)
	require.Equal(t, "counting/1/1", branches(cmds)[0].Branch)

	cmds = p.lanesOf(cmds, `"x"`)
	ask := cmds[len(cmds)-1].(RunStep)
	require.Equal(t, `"b"`, string(ask.In))
	require.Equal(t, step.NewKey("w", "pages", 2), ask.Key)
	p.at(Running, "counting", Mark{Step: "pages", Group: 2, Attempt: 1})
	require.Nil(t, p.c.Results)
	require.False(t, p.c.PastKnown, "what is in memory is one page")

	cmds = p.done(pageOf("c")) // an empty one in between
	require.Equal(t, `"c"`, string(cmds[len(cmds)-1].(RunStep).In))
	cmds = p.done(pageOf("", 40))
	require.Len(t, branches(cmds), 1)
	require.Equal(t, "counting/3/1", branches(cmds)[0].Branch)
	p.lanesOf(cmds, `"y"`)
	p.at(Ended, "counted", Mark{})
	require.JSONEq(t, `{"merged":["0:10:x","1:20:x","2:30:x","3:40:y"]}`, string(p.c.Data))
}

func TestNoPages(t *testing.T) {
	t.Parallel()
	p := counts(t, counting(nil))
	p.done(pageOf(""))
	p.at(Ended, "counted", Mark{})
}

// A page that names itself would be asked for for ever.
func TestAPageBehindItself(t *testing.T) {
	t.Parallel()
	p := counts(t, counting(nil))
	p.done(pageOf("b"))
	require.ErrorContains(t, p.refuses(StepDone{Out: []byte(pageOf("b", 1))}), `the page behind "b" is itself`)
}

// A page that cannot be had fails like any step; what the pages before have done is
// undone.
func TestAPageThatFails(t *testing.T) {
	t.Parallel()
	p := counts(t, counting(nil))
	p.lanesOf(p.done(pageOf("b", 10)), `"x"`)
	p.c.Past, p.c.PastKnown = []Past{{Step: "item", Group: 1, Item: 1, Outcome: Done, In: []byte("10"), Out: []byte(`"x"`)}}, true
	cmds := p.take(StepFailed{Rejected: true, Error: "gone"})
	undo := cmds[len(cmds)-1].(RunStep)
	require.Equal(t, step.NewItemKey("w", "void", 1, 1), undo.Key)
	p.done("null")
	p.at(Ended, "undone", Mark{})
}

func TestPagesAreCancelled(t *testing.T) {
	t.Parallel()
	p := counts(t, counting(nil))
	asking := p.c
	cmds := p.done(pageOf("b", 1, 2))
	lanes := branches(cmds)
	wants(t, p.take(CancelAsked{Reason: "enough"}), Answer{CancelAccepted},
		StopBranch{"counting/1/1", "enough"}, StopBranch{"counting/1/2", "enough"})
	for _, l := range lanes {
		p.c.PastKnown = true
		p.take(BranchEnded{Path: l.Branch, Cause: Cancelled, Reason: "enough"})
	}
	p.at(Ended, "undone", Mark{})
	p.c = asking
	p.c.PastKnown = true
	p.take(CancelAsked{Reason: "enough"})
	p.at(Ended, "undone", Mark{})
}

func TestPagesAreDrawn(t *testing.T) {
	t.Parallel()
	d := counting(nil)
	require.Contains(t, d.Mermaid(), "counting: counting / each item (call, undo void), by pages of pages (func)")
	drawn, err := DrawGraph(compile(t, d).Graph())
	require.NoError(t, err)
	require.Equal(t, d.Mermaid(), drawn)
	bad := EachPage(step.Call("pages", call[string, Page[int]]).Pivot(), step.Func("item", func(context.Context, int) (string, error) { return "", nil }), (*tally).merge)
	d.States["counting"] = bad.Then("counted")
	require.ErrorContains(t, d.Validate(), `the pivot "pages" gives pages`)
}
