package engine_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

// finish ends every scenario, after all workers have stopped. What must hold
// then, whatever has happened:
//
//   - the ledger holds exactly the effects that the records tell of
//   - nothing is runnable that has waited longer than lease, poll and slack
//   - each finished workflow answers every duplicate start with the same bytes
//   - the store's own invariants
//   - every connection can be closed, and no goroutine is left
func (w *world) finish() {
	defer w.checkGoroutines()
	defer w.closeStores()
	defer w.site.close()
	defer w.ledger.close()
	if !w.Failed() && w.st != nil {
		w.checkLedger()
		w.checkNothingIsLate()
		w.checkDuplicates()
		storetest.Check(w, w.st)
	}
	if w.Failed() {
		w.tellAll()
	}
}

// workflows returns every workflow.
func (w *world) workflows() []store.Workflow {
	w.Helper()
	var all []store.Workflow
	for after := ""; ; {
		var page []store.Workflow
		w.eventually("the database answers", func() (ok bool) { // after a restart not at once
			var err error
			page, err = w.st.List(w.ctx(), store.Query{After: after, Limit: 500})
			return !errors.Is(err, store.ErrRetry) && assert.NoError(w, err)
		})
		all = append(all, page...)
		if len(page) < 500 {
			return all
		}
		after = page[len(page)-1].ID
	}
}

// rows returns every workflow and every branch.
func (w *world) rows() []store.Workflow {
	w.Helper()
	roots := w.workflows()
	all := roots
	for _, wf := range roots {
		branches, err := w.st.List(w.ctx(), store.Query{BranchesOf: wf.ID, Limit: 1000})
		require.NoError(w, err)
		all = append(all, branches...)
	}
	return all
}

// checkLedger compares the ledger with the records, key by key.
func (w *world) checkLedger() {
	allowed, needed := map[string]bool{}, map[string]bool{}
	var terminated []string // an undo that they were at is not on record
	for _, wf := range w.workflows() {
		if wf.Status == store.Terminated {
			terminated = append(terminated, wf.ID+"/un")
		}
		if wf.Definition.Name == engine.BulkDefinition {
			continue // its effects are orders
		}
		recs, err := w.st.History(w.ctx(), wf.ID)
		require.NoError(w, err)
		at := statemachine.Cursor{ID: wf.ID}
		if bytes.HasPrefix(wf.Cursor, []byte("{")) { // not encoded: a fork's keys are not looked at there
			require.NoError(w, at.SetRest(wf.Cursor))
		}
		for _, r := range recs {
			key := at.Key(r.Step, r.Item, r.Group).String()
			skipped := strings.HasPrefix(r.Error, "skipped by ") // whatever it had done until then
			allowed[key] = r.Status != store.StepFailed || skipped
			// Effects that no ledger sees: in the database, in a child, in the test.
			elsewhere := strings.HasPrefix(r.Step, "move") || strings.HasPrefix(r.Step, "child-") || strings.HasPrefix(r.Step, "own-")
			needed[key] = r.Status == store.StepDone && !elsewhere
		}
	}
	for _, wf := range w.rows() {
		if m := wf.Mark; m.Step != "" && !wf.Status.Ended() {
			var c statemachine.Cursor
			require.NoError(w, c.SetRest(wf.Cursor))
			c.ID = store.RootOf(wf.ID)
			allowed[c.Key(m.Step, c.Item, m.Group).String()] = true
		}
	}
	for _, r := range w.ledger.all() {
		stopped := slices.ContainsFunc(terminated, func(prefix string) bool { return strings.HasPrefix(r.key, prefix) })
		if r.serial > 0 && !allowed[r.key] && !stopped {
			w.Errorf("the ledger has an effect of %s, which no record tells of", r.key)
		}
		if r.serial > 0 {
			delete(needed, r.key)
		}
	}
	for key, is := range needed {
		if is {
			w.Errorf("%s is recorded as done, but the ledger has no effect of it", key)
		}
	}
}

func (w *world) checkNothingIsLate() {
	now, err := w.st.Now(w.ctx())
	require.NoError(w, err)
	for _, wf := range w.rows() {
		since := wf.WakeAt
		if wf.Status == store.Pending || wf.Status == store.Compensating {
			since = wf.UpdatedAt
		}
		if wf.Status == store.Held || since.IsZero() || wf.Status.Ended() {
			continue
		}
		if late := now.Sub(since); late > w.lease+w.poll+slack {
			w.Errorf("workflow %q is %s and has been runnable for %v", wf.ID, wf.Status, late)
		}
	}
}

// checkDuplicates starts everything that has ended once more, by an engine that
// has seen nothing of it.
func (w *world) checkDuplicates() {
	w.mu.Lock()
	starts := w.starts
	w.mu.Unlock()
	n := w.client(nodeOptions{shared: true})
	checked := 0
	for id, s := range starts {
		wf, err := w.st.Get(w.ctx(), id)
		if err != nil || !wf.Status.Ended() || checked >= 20 {
			continue
		}
		checked++
		again, err := n.flows[s.flow].Start(w.ctx(), id, s.data)
		require.NoError(w, err)
		require.Equal(w, engine.Started{ID: id, Status: wf.Status}, again, "a duplicate start of %s", id)
		first := n.wait(id)
		require.Equal(w, string(wf.Data), string(first.Raw), "the first answer of %s", id)
		require.Equal(w, wf.Revision, first.Revision, "a duplicate start has changed %s", id)
	}
}

// closeStores closes every handle. A pooled connection that somebody still
// holds would keep it from ending.
func (w *world) closeStores() {
	w.mu.Lock()
	closing := w.closing
	w.mu.Unlock()
	for _, closeOne := range closing {
		done := make(chan error, 1)
		go func() { done <- closeOne() }()
		select {
		case err := <-done:
			if err != nil {
				w.Errorf("close store: %v", err)
			}
		case <-time.After(10 * time.Second):
			w.Errorf("a store does not close: somebody holds a connection")
		}
	}
}

func (w *world) checkGoroutines() {
	var left []string
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if left = leftBehind(w.Name()); len(left) == 0 {
			return
		}
	}
	w.Errorf("%d goroutines are left, such as\n%s", len(left), left[0])
}

// tellAll shows how everything stands when a scenario has failed.
func (w *world) tellAll() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if w.st != nil {
		all, err := w.st.List(ctx, store.Query{})
		w.Logf("workflows (%v):", err)
		for _, wf := range all[:min(len(all), 4)] {
			w.Logf("  %s %s %s state=%s mark=%+v rev=%d owner=%s wake=%v error=%q", wf.ID, wf.Definition.Name, wf.Status, wf.State, wf.Mark, wf.Revision, wf.Owner, wf.WakeAt, wf.Error)
			recs, _ := w.st.History(ctx, wf.ID)
			for _, r := range recs {
				w.Logf("    %s/%d %s attempt=%d %s", r.Step, r.Group, r.Status, r.Attempt, r.Error)
			}
			branches, _ := w.st.List(ctx, store.Query{BranchesOf: wf.ID})
			for _, b := range branches[:min(len(branches), 8)] {
				inbox, _ := w.st.Inbox(ctx, b.ID)
				w.Logf("    branch %s %s mark=%+v rev=%d owner=%s wake=%v error=%q inbox=%d", store.BranchOf(b.ID), b.Status, b.Mark, b.Revision, b.Owner, b.WakeAt, b.Error, len(inbox))
			}
		}
	}
	rows := w.ledger.all()
	for _, r := range rows[:min(len(rows), 12)] {
		w.Logf("  ledger %s calls=%d effect=%d", r.key, r.calls, r.serial)
	}
}
