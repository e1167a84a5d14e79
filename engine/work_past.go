package engine

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// What an advance reads of what was recorded before.

// loadPast fills in the recorded steps, those of this very advance included. It
// goes on trying for as long as the database cannot be reached, since a body may
// have run whose outcome is known here only.
func (a *advance) loadPast(ctx context.Context) error {
	var recs []store.StepRecord
	err := insist(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, a.shell.callTimeout())
		defer cancel()
		recs, err = a.shell.store.History(ctx, a.job.id)
		return err
	})
	if err != nil {
		return fmt.Errorf("load steps of workflow %q: %w", a.job.id, err)
	}
	past := make([]statemachine.Past, 0, len(recs)+len(a.records))
	for _, r := range recs {
		for _, value := range [][]byte{r.Input, r.Output} {
			if isCoded(value) {
				return codecErrorOf(fmt.Sprintf("step %s of %s", r.Step, ofWorkflow(a.job.id)), value)
			}
		}
		past = append(past, statemachine.Past{Step: r.Step, Group: r.Group, Item: r.Item, Outcome: outcomeOf(r.Status), In: r.Input, Out: r.Output})
	}
	for _, r := range a.records {
		past = append(past, statemachine.Past{Step: r.Step, Group: r.Group, Item: r.Item, Outcome: r.Outcome, In: r.In, Out: r.Out})
	}
	a.cursor.Past, a.cursor.PastKnown = past, true
	return nil
}

// loadResults fills in what the lanes of one page have recorded, and no more: a page is
// all that is in memory.
func (a *advance) loadResults(ctx context.Context) error {
	var results []statemachine.Past
	for _, path := range a.m.LanePaths(a.cursor) {
		var recs []store.StepRecord
		err := insist(ctx, func() (err error) {
			ctx, cancel := context.WithTimeout(ctx, a.shell.callTimeout())
			defer cancel()
			recs, err = a.shell.store.History(ctx, store.BranchID(a.job.id, path))
			return err
		})
		if err != nil {
			return fmt.Errorf("load results of workflow %q: %w", a.job.id, err)
		}
		for _, r := range recs {
			results = append(results, statemachine.Past{Step: r.Step, Group: r.Group, Item: r.Item, Outcome: outcomeOf(r.Status), In: r.Input, Out: r.Output})
		}
	}
	a.cursor.Results, a.cursor.ResultsKnown = results, true
	return nil
}
