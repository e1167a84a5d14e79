package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// Check reports as test errors what must never be true of a store, whatever
// has happened to it. It only reads, and may run while nothing else writes.
//
//   - an ended workflow has an end time, no owner and no wake time, and one
//     that has not ended has no end time
//   - a workflow that is ready or undoing and that nobody owns has a wake time
//   - a mark is complete or not there
//   - recorded steps are unique by step, group and item, and were recorded in
//     transitions that have happened: their revisions are from 2 to the
//     row's own
//   - a list, a single read and the owner's list agree
func Check(t testing.TB, st store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	owned := make(map[store.WorkerID]int)
	for _, w := range all(ctx, t, st) {
		for _, fault := range rowFaults(w) {
			t.Errorf("workflow %q: %s", w.ID, fault)
		}
		steps, err := st.History(ctx, w.ID)
		require.NoError(t, err)
		for _, fault := range stepFaults(w, ownSteps(w, steps)) {
			t.Errorf("workflow %q: %s", w.ID, fault)
		}
		if !w.Owner.IsZero() {
			owned[w.Owner]++
		}
	}
	for w, n := range owned {
		ps, err := st.Owned(ctx, w)
		require.NoError(t, err)
		if len(ps) != n {
			t.Errorf("worker %s owns %d workflows by their rows and %d by its list", w, n, len(ps))
		}
	}
}

// all reads every workflow and every branch.
func all(ctx context.Context, t testing.TB, st store.Store) []store.Workflow {
	t.Helper()
	roots := pages(ctx, t, st, store.Query{})
	rows := roots
	for _, w := range roots {
		rows = append(rows, pages(ctx, t, st, store.Query{BranchesOf: w.ID})...)
	}
	return rows
}

// pages reads all that q selects, page by page.
func pages(ctx context.Context, t testing.TB, st store.Store, q store.Query) []store.Workflow {
	t.Helper()
	var ws []store.Workflow
	for q.Limit = 100; ; {
		page, err := st.List(ctx, q)
		require.NoError(t, err)
		ws = append(ws, page...)
		if len(page) < 100 {
			return ws
		}
		q.After = page[len(page)-1].ID
	}
}

func rowFaults(w store.Workflow) (faults []string) {
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	ended := w.Status.Ended()
	fault(ended && !w.Owner.IsZero(), "it is %s and owned by %s", w.Status, w.Owner)
	fault(ended && !w.WakeAt.IsZero(), "it is %s and wakes at %v", w.Status, w.WakeAt)
	fault(ended == w.EndedAt.IsZero(), "it is %s and its end time is %v", w.Status, w.EndedAt)
	active := w.Status == store.Pending || w.Status == store.Compensating
	fault(active && w.Owner.IsZero() && w.WakeAt.IsZero(), "it is %s, owned by nobody, and never wakes", w.Status)
	fault(w.Revision < 1, "its revision is %d", w.Revision)
	m := w.Mark
	fault(m.Step == "" && m != store.Mark{}, "it has a mark without a step: %+v", m)
	fault(m.Step != "" && m.Group < 1, "its mark has no group: %+v", m)
	fault(m.Attempt < 0 || m.Failures < 0 || m.Crashes < 0, "its mark counts below zero: %+v", m)
	fault(w.UpdatedAt.Before(w.CreatedAt), "it was updated at %v before it was created at %v", w.UpdatedAt, w.CreatedAt)
	return faults
}

// ownSteps leaves out what the branches of w have recorded.
func ownSteps(w store.Workflow, steps []store.StepRecord) (own []store.StepRecord) {
	for _, r := range steps {
		if r.Branch == store.BranchOf(w.ID) {
			own = append(own, r)
		}
	}
	return own
}

func stepFaults(w store.Workflow, steps []store.StepRecord) (faults []string) {
	type key struct {
		step        string
		group, item int
	}
	seen := make(map[key]bool)
	last := int64(0)
	for _, r := range steps {
		k := key{r.Step, r.Group, r.Item}
		if seen[k] {
			faults = append(faults, fmt.Sprintf("step %s/%d is recorded twice", r.Step, r.Group))
		}
		seen[k] = true
		if r.Revision < 2 || r.Revision > w.Revision {
			faults = append(faults, fmt.Sprintf("step %s/%d has revision %d, the workflow %d", r.Step, r.Group, r.Revision, w.Revision))
		}
		if r.Revision < last {
			faults = append(faults, fmt.Sprintf("step %s/%d is out of order", r.Step, r.Group))
		}
		last = r.Revision
	}
	return faults
}

// settle ends a test: the invariants hold, and whatever is owned is owned by
// somebody alive or can be taken over.
func (e *env) settle() {
	Check(e, e.st)
	for e.takeover(time.Second) > 0 {
	}
	workers, err := e.st.Workers(e.ctx)
	require.NoError(e, err)
	alive := make(map[store.WorkerID]bool)
	for _, w := range workers {
		alive[w.ID] = w.Alive()
	}
	for _, w := range all(e.ctx, e, e.st) {
		if !w.Owner.IsZero() && !alive[w.Owner] {
			e.Errorf("workflow %q: its owner %s is dead and nobody can take it over", w.ID, w.Owner)
		}
	}
	Check(e, e.st)
}
