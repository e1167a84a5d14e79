package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// BulkDefinition is the name of the definition by which orders are given to many
// workflows: a workflow like any other, which can be looked at, paused and cancelled.
const BulkDefinition = "pawl-bulk"

// bulkPage is how many workflows one step of a bulk goes through.
const bulkPage = 100

// bulkPatience bounds one of its orders.
const bulkPatience = 10 * time.Second

// Bulk is the data of a workflow that gives an order to all that a query selects.
// Progress is in it.
type Bulk struct {
	Query  Query  `json:"query"`
	Verb   Verb   `json:"verb"` // or Cancel
	Actor  string `json:"actor"`
	Reason string `json:"reason,omitempty"`
	Limit  int    `json:"limit,omitempty"` // of workflows that the order is given to; 0 for none

	After   string `json:"after,omitempty"` // it has come this far, in the order of the ids
	Done    int    `json:"done"`            // what a worker has done that died is done, and not counted
	Refused int    `json:"refused"`         // it made no sense where they stood
	Last    string `json:"last_refusal,omitempty"`
	Over    bool   `json:"over,omitempty"`
}

// Cancel asks for the rollback, in bulk: see Engine.Cancel.
const Cancel Verb = "cancel"

func (b Bulk) itself() Bulk       { return b }
func (b *Bulk) advanced(now Bulk) { *b = now }
func (b Bulk) over() bool         { return b.Over }

// RegisterBulk makes bulk orders known to the engine. Register every other definition
// too: an order is decided by the definition of the workflow that it is given to.
func RegisterBulk(e *Engine) (*Workflow[Bulk], error) {
	page := step.Call("page", e.bulkPage).
		With(step.Policy{Attempts: step.Forever, Backoff: step.Exponential(time.Second, time.Minute), Timeout: 5 * time.Minute}).
		NoUndo("each order is on record with its workflow")
	return Register(e, statemachine.Definition[Bulk]{
		Name: BulkDefinition, Version: 1, Start: "paging",
		States: statemachine.States[Bulk]{
			"paging":   statemachine.Do(page, Bulk.itself, (*Bulk).advanced).Then("weighing"),
			"weighing": statemachine.If(Bulk.over, "done", "paging"),
		},
		Ends:      statemachine.Ends{"done": statemachine.Completed, "stopped": statemachine.Failed},
		OnFailure: "stopped",
	})
}

// bulkPage gives the order to the next page of workflows. Each request is named by
// the bulk and its target, so a page that is begun again, after a crash, gives no
// order twice.
func (e *Engine) bulkPage(ctx context.Context, key step.Key, b Bulk) (Bulk, error) {
	bulk := bulkOf(key)
	page, next, err := e.selected(ctx, b.Query, b.After)
	if err != nil {
		return b, err
	}
	for _, target := range page {
		if target.Definition.Name == BulkDefinition {
			continue
		}
		if b.Limit > 0 && b.Done >= b.Limit {
			next = ""
			break
		}
		if ctx.Err() != nil { // the worker drains: what was done so far is on record
			return b, nil
		}
		err := e.giveInBulk(ctx, bulk, b, target.ID)
		switch {
		case errors.Is(err, ErrRefused), errors.Is(err, ErrEnded), errors.Is(err, ErrPastPivot), errors.Is(err, ErrUnknownDefinition), errors.Is(err, store.ErrNotFound):
			b.Refused, b.Last = b.Refused+1, err.Error()
		case err != nil:
			return b, err
		default:
			b.Done++
		}
		b.After = target.ID
	}
	b.After, b.Over = next, next == ""
	return b, nil
}

// giveInBulk gives the order to one workflow, to the end.
func (e *Engine) giveInBulk(ctx context.Context, bulk string, b Bulk, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bulkPatience)
	defer cancel()
	request := "bulk:" + bulk
	if b.Verb == Cancel {
		return e.Cancel(ctx, id, Order{Actor: b.Actor, Reason: b.Reason}.by(), MessageID(request))
	}
	_, err := e.Operate(ctx, id, Order{Verb: b.Verb, Actor: b.Actor, Reason: b.Reason, RequestID: request})
	return err
}

// bulkOf is the id of the bulk whose step has that key, short enough to be part of a
// request's.
func bulkOf(key step.Key) string { return key.UUID() }

// selected reads a page of what a query selects behind an id; next is "" at the end.
func (e *Engine) selected(ctx context.Context, q Query, after string) (page []Info, next string, err error) {
	rows, err := e.List(ctx, store.Query{Definition: q.Definition, Statuses: q.Statuses, After: after, Limit: bulkPage})
	if err != nil {
		return nil, "", fmt.Errorf("select workflows: %w", err)
	}
	for _, info := range rows {
		if q.fits(info) {
			page = append(page, info)
		}
	}
	if len(rows) == bulkPage {
		next = rows[len(rows)-1].ID
	}
	return page, next, nil
}

// CountSelected counts what a query selects, and returns the first ids.
func (e *Engine) CountSelected(ctx context.Context, q Query) (n int, first []string, err error) {
	for after := ""; ; {
		page, next, err := e.selected(ctx, q, after)
		if err != nil {
			return 0, nil, err
		}
		for _, info := range page {
			if info.Definition.Name == BulkDefinition {
				continue
			}
			if n++; len(first) < 5 {
				first = append(first, info.ID)
			}
		}
		if next == "" {
			return n, first, nil
		}
		after = next
	}
}

// BulkJSON is b as StartJSON takes it.
func BulkJSON(b Bulk) ([]byte, error) { return encodeInput(b) }
