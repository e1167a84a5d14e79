package storetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

// fake is a store that holds what a broken one might.
type fake struct {
	store.Store
	row   store.Workflow
	steps []store.StepRecord
	owned int
}

func (f fake) List(_ context.Context, q store.Query) ([]store.Workflow, error) {
	if q.BranchesOf != "" {
		return nil, nil
	}
	return []store.Workflow{f.row}, nil
}

func (f fake) History(context.Context, string) ([]store.StepRecord, error) { return f.steps, nil }

func (f fake) Owned(context.Context, store.WorkerID) ([]store.Position, error) {
	return make([]store.Position, f.owned), nil
}

// reporter collects what would fail a test.
type reporter struct {
	testing.TB
	faults []string
}

func (r *reporter) Helper() {}

func (r *reporter) Errorf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func sound() fake {
	row := store.Workflow{ID: "a", Revision: 3, Owner: store.WorkerID{1}}
	row.Status, row.Mark = store.Pending, store.Mark{Step: "charge", Group: 1, Attempt: 1}
	return fake{row: row, owned: 1, steps: []store.StepRecord{{Step: "a", Group: 1, Revision: 2}, {Step: "a", Group: 2, Revision: 3}}}
}

// TestCheckSeesEachFault: the checker can fail, once for each of its rules.
func TestCheckSeesEachFault(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	end := func(f *fake) { f.row.Status, f.row.Owner, f.row.EndedAt = store.Completed, store.WorkerID{}, at }
	for fault, spoil := range map[string]func(f *fake){
		"":                       func(*fake) {},
		"is COMPLETED and owned": func(f *fake) { end(f); f.row.Owner = store.WorkerID{1} },
		"is COMPLETED and wakes": func(f *fake) { end(f); f.row.WakeAt = at },
		"its end time is 0001":   func(f *fake) { end(f); f.row.EndedAt = time.Time{} },
		"is PENDING and its end": func(f *fake) { f.row.EndedAt = at },
		"never wakes":            func(f *fake) { f.row.Owner = store.WorkerID{} },
		"its revision is 0":      func(f *fake) { f.row.Revision, f.steps = 0, nil },
		"mark without a step":    func(f *fake) { f.row.Mark.Step = "" },
		"mark has no group":      func(f *fake) { f.row.Mark.Group = 0 },
		"counts below zero":      func(f *fake) { f.row.Mark.Attempt = -1 },
		"before it was created":  func(f *fake) { f.row.CreatedAt = at },
		"is recorded twice":      func(f *fake) { f.steps[1].Group = 1 },
		"has revision 4":         func(f *fake) { f.steps[1].Revision = 4 },
		"has revision 1":         func(f *fake) { f.steps[0].Revision = 1 },
		"is out of order":        func(f *fake) { f.steps[0], f.steps[1] = f.steps[1], f.steps[0] },
		"and 2 by its list":      func(f *fake) { f.owned = 2 },
	} {
		f, r := sound(), &reporter{TB: t}
		spoil(&f)
		storetest.Check(r, f)
		if fault == "" {
			require.Empty(t, r.faults)
			continue
		}
		require.Len(t, r.faults, 1, fault)
		require.Contains(t, r.faults[0], fault)
	}
}

// Check tells what is wrong with a store. A real one is checked at the end of
// a test: storetest.Check(t, st).
func ExampleCheck() {
	broken := sound()
	broken.row.Owner, broken.owned = store.WorkerID{}, 0
	var r reporter
	storetest.Check(&r, broken)
	for _, fault := range r.faults {
		fmt.Println(fault)
	}
	// Output:
	// workflow "a": it is PENDING, owned by nobody, and never wakes
}
