package engine

import (
	"context"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Orders to workflows whose definition is not known here.

// terminateUnknown stops a workflow whose definition is not known here, or whose
// values cannot be read.
func (e *Engine) terminateUnknown(ctx context.Context, wf store.Workflow, o Order) (store.Transition, Operated, error) {
	if wf.Status.Ended() {
		return store.Transition{}, Operated{}, &RefusedError{wf.ID, o.Verb, "it has ended"}
	}
	cur, err := cursorOf(wf)
	if err != nil {
		cur = statemachine.Cursor{ID: wf.ID, State: statemachine.State(wf.State)} // unreadable, and over
	}
	cur = cur.Terminated(storable("terminated by " + o.by()))
	t := store.Transition{Guard: store.Guard{ID: wf.ID, Revision: wf.Revision}, Place: store.Place{
		Status: store.Terminated, State: wf.State, Cursor: cur.Rest(), Error: cur.Reason, Pivoted: wf.Pivoted,
	}}
	if wf.Mark.Step != "" && wf.Mark.Attempt > 0 {
		t.Steps = []store.StepRecord{{
			Step: wf.Mark.Step, Group: wf.Mark.Group, Item: cur.Item, Status: store.StepUnknown, Attempt: wf.Mark.Attempt, Error: cur.Reason,
		}}
	}
	if wf.Parent != "" && store.BranchOf(wf.ID) == "" {
		data := wf.Data
		if isCoded(data) {
			data = nil // of a child that has failed nobody looks at it
		}
		t.Sends = append(t.Sends, childEndMessage(wf.Parent, wf.ID, childEnd{statemachine.Failed, data, cur.Reason}))
	}
	return t, Operated{
		Before: standsAt(wf.Status, wf.State), After: standsAt(t.Status, t.State),
		Note: unknownNote(wf) + ": what it has done is listed by its steps, and nothing was undone",
	}, nil
}

// terminateBranches ends the branches of a workflow that was terminated without its
// definition: there may be nobody who knows what to tell them. What a worker owns is
// left to it. It is tidying up: a branch tells a root that has ended nothing.
func (e *Engine) terminateBranches(ctx context.Context, root store.Workflow, o Order) {
	if _, err := e.lookup(root.Definition); err == nil {
		return // they were asked to end
	}
	q := store.Query{BranchesOf: root.ID, Statuses: []store.Status{store.Pending, store.Waiting, store.Compensating, store.Held}}
	for {
		page, err := e.store.List(ctx, q)
		if err != nil || len(page) == 0 {
			return
		}
		for _, b := range page {
			q.After = b.ID
			t, done, err := e.terminateUnknown(ctx, b, o)
			if err != nil || !b.Owner.IsZero() {
				continue
			}
			if _, err := e.store.Amend(ctx, t, store.Request{Message: o.message(b.ID), Answer: answerText(done, "")}); err != nil {
				e.log.Warn("cannot terminate a branch", "branch", b.ID, "error", err)
				return
			}
		}
	}
}
