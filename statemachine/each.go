package statemachine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/step"
)

// Items are worked on in lanes: branches that take one item after another. Lane
// l of n takes the items l, l+n, l+2n and so on, and holds the inputs of these
// and no others. So as many run at once as there are lanes, and no transition
// grows with the number of items but the one that starts the lanes.

// DefaultAtMost is how many items of an [Each] run at once, unless
// [EachTask.AtMost] says otherwise.
const DefaultAtMost = 100

// EachTask is a step that is run for many items. It becomes a [Node] by saying
// where it leads.
type EachTask[S any] struct{ node node }

// Each runs st for each of the items that it reads from the workflow's data when
// the state is entered, many at once, and goes on once all of them are done. The
// results are merged then, in the order of the items: merge is given the item's
// index, counted from 0, its input and its result. A nil merge drops them.
//
// Each item is a business intent of its own: its key is
// <workflow id>/<step>/<item>.<group>, with items counted from 1. The first item
// that is refused or fails for good stops the others, as in an [All]; see
// [EachTask.Tolerate].
func Each[S, In, Out any](items func(S) []In, st step.Step[In, Out], merge func(*S, int, In, Out)) EachTask[S] {
	n := node{kind: each, step: st.Spec(), items: lists(items)}
	if merge != nil {
		n.mergeAll = mergesAll(merge)
	}
	return EachTask[S]{n}
}

// AtMost bounds how many items run at once. A workflow that is among its items
// keeps the bound that it began with.
func (t EachTask[S]) AtMost(n int) EachTask[S] { t.node.atMost = n; return t }

// Tolerate lets up to k items be refused or fail for good: they are not merged,
// and the workflow goes on. Should one more fail, or the workflow be rolled back
// later, those that may have had their effect are undone with the others.
func (t EachTask[S]) Tolerate(k int) EachTask[S] { t.node.tolerate = k; return t }

// Then makes the task a node that leads to s.
func (t EachTask[S]) Then(s State) Node[S] {
	t.node.edges = []edge{{to: s}}
	return Node[S](t)
}

// itemResult is what one item has given.
type itemResult struct {
	item    int // from 1
	in, out []byte
}

// lists erases a function that reads a list of inputs from the data.
func lists[S, In any](f func(S) []In) func(data []byte) ([]json.RawMessage, error) {
	if f == nil {
		return nil
	}
	read := reads(f)
	return func(data []byte) (items []json.RawMessage, err error) {
		defer catch(&err)
		list, err := read(data)
		if err != nil {
			return nil, err
		}
		items = make([]json.RawMessage, len(list))
		for i, v := range list {
			if items[i], err = json.Marshal(v); err != nil {
				return nil, fmt.Errorf("encode item %d: %w", i+1, err)
			}
		}
		return items, nil
	}
}

// mergesAll erases a function that merges one result. The data is decoded and
// encoded once for all of them.
func mergesAll[S, In, Out any](f func(*S, int, In, Out)) func(data []byte, results []itemResult) ([]byte, error) {
	return func(data []byte, results []itemResult) (merged []byte, err error) {
		defer catch(&err)
		var s S
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("decode data: %w", err)
		}
		for _, r := range results {
			var in In
			var out Out
			if err := cmp.Or(json.Unmarshal(r.in, &in), json.Unmarshal(r.out, &out)); err != nil {
				return nil, fmt.Errorf("decode item %d: %w", r.item, err)
			}
			f(&s, r.item-1, in, out)
		}
		if merged, err = json.Marshal(s); err != nil {
			return nil, fmt.Errorf("encode data: %w", err)
		}
		return merged, nil
	}
}

// lane is what happens in each of the lanes: the step, again and again.
func (n node) lane() node {
	n.kind, n.edges, n.pages = doStep, nil, nil
	return n
}

// opensLane reports whether path names one of the lanes of this entry of the
// state.
func (t *turn) opensLane(path string) bool {
	number := path[strings.LastIndexByte(path, '/')+1:]
	l, err := strconv.Atoi(number)
	return err == nil && l >= 1 && l <= t.c.Lanes && path == t.lanePath(l)
}

func (t *turn) lanePath(l int) string { return branchPath(t.c.State, t.group(), strconv.Itoa(l)) }

// fanItems starts the lanes.
func (t *turn) fanItems(n node) error {
	if n.pages != nil {
		t.c.Page, t.c.Base, t.c.PageItems = "", 0, 0
		return t.askPage()
	}
	items, err := n.items(t.c.Data)
	if err != nil {
		return t.codeErrorIn(n, "items", err)
	}
	if len(items) == 0 {
		return t.enter(n.next(), Chosen, "")
	}
	return t.deal(n, items, t.newGroup())
}

// deal starts lanes for items, of which there are some.
func (t *turn) deal(n node, items []json.RawMessage, group int) error {
	lanes := n.atMost
	if lanes == 0 {
		lanes = DefaultAtMost
	}
	lanes = min(lanes, len(items))
	t.c.Phase, t.c.Open, t.c.Lanes = Waiting, lanes, lanes
	for l := 1; l <= lanes; l++ {
		var own []json.RawMessage
		for i := l - 1; i < len(items); i += lanes {
			own = append(own, items[i])
		}
		in, err := json.Marshal(own)
		if err != nil {
			return t.codeErrorIn(n, "items", err)
		}
		c := t.branch(strconv.Itoa(l), n.step.Name, group, in)
		c.Item, c.Lanes = l, lanes
		t.do(StartBranch{c})
	}
	return nil
}

// hasItems reports whether there is anything to do in the state.
func (t *turn) hasItems(n node) (bool, error) {
	if n.pages != nil {
		return true, nil // there may be
	}
	items, err := n.items(t.c.Data)
	if err != nil {
		return false, t.codeErrorIn(n, "items", err)
	}
	return len(items) > 0, nil
}

// laneItems are the inputs of a lane.
func (t *turn) laneItems() (items []json.RawMessage, err error) {
	if err := json.Unmarshal(t.c.Data, &items); err != nil {
		return nil, t.codeError("items", err)
	}
	return items, nil
}

// laneInput is the input of the item that a lane is at.
func (t *turn) laneInput() ([]byte, error) {
	items, err := t.laneItems()
	if err != nil {
		return nil, err
	}
	k := (t.c.Item - 1) / t.c.Lanes
	if k >= len(items) {
		return nil, fmt.Errorf("%w: lane %s has no item %d", ErrUnexpected, t.c.Branch, t.c.Item)
	}
	return items[k], nil
}

// nextItem goes on to the lane's next item, or ends the lane.
func (t *turn) nextItem() error {
	items, err := t.laneItems()
	if err != nil {
		return err
	}
	if (t.c.Item-1)/t.c.Lanes+1 >= len(items) {
		return t.endBranch("", t.c.Reason)
	}
	t.c.Item += t.c.Lanes
	t.c.Phase, t.c.Mark = Running, Mark{Step: t.c.Mark.Step, Group: t.c.Mark.Group, Attempt: 1}
	return t.run()
}

// tolerates reports whether the lane may lose the item that it is at. Whether
// all lanes together have lost too many is for the root to say.
func (t *turn) tolerates() bool { return t.c.Lanes > 0 && t.c.Failures < t.node().tolerate }

// loses goes on after an item that has failed for good.
func (t *turn) loses(cause Cause, reason string) error {
	goesOn := t.tolerates()
	t.c.Failures++
	if !goesOn {
		return t.endBranch(cause, reason)
	}
	t.c.Reason = reason
	return t.nextItem()
}

// joinItems merges the results of the items in their order.
func (t *turn) joinItems(n node) error {
	if n.mergeAll == nil {
		return nil
	}
	past := t.c.Past
	switch {
	case n.pages != nil:
		var err error
		if past, err = t.pageResults(); err != nil {
			return err
		}
	case !t.c.PastKnown:
		return ErrNeedsPast
	}
	var results []itemResult
	for _, p := range past {
		if p.Step == n.step.Name && p.Group == t.group() && p.Outcome == Done {
			results = append(results, itemResult{p.Item + t.c.Base, p.In, p.Out})
		}
	}
	slices.SortFunc(results, func(a, b itemResult) int { return a.item - b.item })
	data, err := n.mergeAll(t.c.Data, results)
	if err != nil {
		return t.codeErrorIn(n, "merge", err)
	}
	t.c.Data = data
	t.c.Results, t.c.ResultsKnown = nil, false
	return nil
}
