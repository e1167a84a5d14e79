package engine

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Get returns a workflow as it stands, or ErrNotFound.
func (e *Engine) Get(ctx context.Context, id string) (Info, error) {
	if err := CheckID(id); err != nil {
		return Info{}, err
	}
	wf, err := e.store.Get(ctx, id)
	if err != nil {
		return Info{}, err
	}
	return infoOf(wf)
}

// List returns workflows in the order of their ids, without their data.
func (e *Engine) List(ctx context.Context, q store.Query) ([]Info, error) {
	rows, err := e.store.List(ctx, q)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(rows))
	for _, wf := range rows {
		info, err := infoOf(wf)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Step is a recorded step of a workflow, or of one of its branches.
type Step struct {
	store.StepRecord
	Key step.Key // the idempotency key that its attempts carried
}

// Steps returns the recorded steps of a workflow and its branches in the order
// of their completion, or ErrNotFound.
func (e *Engine) Steps(ctx context.Context, id string) ([]Step, error) {
	info, err := e.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	recs, err := e.store.History(ctx, id)
	if err != nil {
		return nil, err
	}
	steps := make([]Step, len(recs))
	for i, r := range recs {
		r.Error = shown(r.Error)
		steps[i] = Step{r, info.Key(r.Step, r.Item, r.Group)}
	}
	return steps, nil
}

// Key is the idempotency key of a step or undo of the workflow.
func (i Info) Key(name string, item, group int) step.Key {
	return statemachine.Cursor{ID: i.ID, Origin: i.origin, Kept: i.kept}.Key(name, item, group)
}

// Workers returns the workers that are alive or died within the last hour.
func (e *Engine) Workers(ctx context.Context) ([]store.Worker, error) { return e.store.Workers(ctx) }

func infoOf(wf store.Workflow) (Info, error) {
	var c statemachine.Cursor
	if isCoded(wf.Cursor) {
		wf.Cursor = nil // what it says of the workflow is left out
	}
	if err := c.SetRest(wf.Cursor); err != nil {
		return Info{}, fmt.Errorf("read workflow %q: %w", wf.ID, err)
	}
	return Info{
		ID: wf.ID, Definition: wf.Definition, Status: wf.Status, State: statemachine.State(wf.State), Raw: wf.Data,
		Cause: c.Cause, Reason: shown(wf.Error), Mark: wf.Mark, Item: c.Item, Awaits: wf.Awaits, Open: c.Open, Queue: wf.Queue, QueueKey: wf.Key, Priority: wf.Priority, WakeAt: wf.WakeAt, Owner: wf.Owner,
		origin: c.Origin, kept: c.Kept,
		Revision: wf.Revision, CreatedAt: wf.CreatedAt, UpdatedAt: wf.UpdatedAt, EndedAt: wf.EndedAt,
	}, nil
}
