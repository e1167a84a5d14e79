package statemachine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// Page is a part of more items than fit the data.
type Page[In any] struct {
	Items []In   `json:"items"`
	Next  string `json:"next,omitempty"` // what the next page is asked for by; "" after the last
}

// ErrNeedsResults asks for Cursor.Results: what the lanes of [Machine.LanePaths] have
// recorded.
var ErrNeedsResults = errors.New("the results of a page are needed")

// EachPage is [Each] for items that neither the data nor a worker's memory is to hold
// at once. Pages is a step that is asked for one page after another, by "" for the
// first; it changes nothing, so say NoUndo if it is a Call. The items of a page are run
// many at once; when all are done their results are merged, in order, and the next page
// is asked for. Merge is given the item's index among all items, so it counts or sums
// up rather than keeps.
//
// Each page is an attempt group, so an item's key is
// <workflow id>/<step>/<item of its page>.<page>. [EachTask.Tolerate] counts over all pages.
func EachPage[S, In, Out any](pages step.Step[string, Page[In]], st step.Step[In, Out], merge func(*S, int, In, Out)) EachTask[S] {
	t := Each(func(S) []In { return nil }, st, merge)
	sp := pages.Spec()
	t.node.pages = &sp
	return t
}

// paging reports whether the workflow is asking for a page.
func (t *turn) paging() bool {
	n := t.m.states[t.c.State]
	return n.pages != nil && t.c.Branch == "" && t.c.Mark.Step == n.pages.Name
}

// asker is what happens while a page is asked for.
func (n node) asker() node {
	return node{kind: doStep, step: *n.pages, edges: n.edges, otherwise: n.otherwise, pages: n.pages}
}

// askPage asks for the next page, as an attempt group of its own.
func (t *turn) askPage() error {
	t.c.Phase, t.c.Open, t.c.Lanes = Running, 0, 0
	t.c.Mark = Mark{Step: t.m.states[t.c.State].pages.Name, Group: t.newGroup(), Attempt: 1}
	return t.run()
}

// pageInput is what a page is asked for by.
func (t *turn) pageInput() ([]byte, error) { return json.Marshal(t.c.Page) }

// paged takes up a page: its items are dealt to lanes, or the next one is asked for.
func (t *turn) paged(out []byte) error {
	var page Page[json.RawMessage]
	if err := json.Unmarshal(out, &page); err != nil {
		return t.codeError("page", err)
	}
	n := t.node()
	if page.Next != "" && page.Next == t.c.Page {
		return t.codeError("page", fmt.Errorf("the page behind %q is itself", page.Next))
	}
	t.record(n.step, Record{Outcome: Done, Out: out})
	t.c.Page, t.c.Mark, t.c.PageItems = page.Next, Mark{}, len(page.Items)
	if len(page.Items) == 0 {
		return t.afterPage()
	}
	t.c.Past, t.c.PastKnown = nil, false
	return t.deal(t.m.states[t.c.State], page.Items, t.group())
}

// afterPage goes on when a page is done.
func (t *turn) afterPage() error {
	t.c.Base, t.c.PageItems = t.c.Base+t.c.PageItems, 0
	if t.c.Page == "" {
		return t.enterOrHold(t.m.states[t.c.State].next())
	}
	return t.askPage()
}

// pageResults are what the lanes of the page have given.
func (t *turn) pageResults() ([]Past, error) {
	if !t.c.ResultsKnown {
		return nil, ErrNeedsResults
	}
	return t.c.Results, nil
}

// LanePaths are the paths of the lanes that a workflow among the items of a page waits
// for.
func (m *Machine) LanePaths(c Cursor) []string {
	t := turn{m: m, c: c}
	paths := make([]string, 0, c.Lanes)
	for l := 1; l <= c.Lanes; l++ {
		paths = append(paths, t.lanePath(l))
	}
	return paths
}

// checkPages checks the step that gives pages.
func (c *checker) checkPages(s State, n node) {
	sp := *n.pages
	c.checkStep(s, sp)
	switch {
	case sp.Kind == step.KindChild:
		c.fault(s, "the child %q gives pages: it takes a Func, a Call or an InTx", sp.Name)
	case sp.Pivot:
		c.fault(s, "the pivot %q gives pages: make it a state of its own", sp.Name)
	case sp.Undo != nil:
		c.fault(s, "step %q gives pages and has an Undo: it must change nothing; say NoUndo", sp.Name)
	}
}
