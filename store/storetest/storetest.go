package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// Open opens a fresh, migrated store for one test and closes it by t.Cleanup.
type Open func(t *testing.T) store.Store

// Run runs the whole suite on stores that open gives.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	groups := []struct {
		name  string
		tests []test
	}{
		{"Start", startTests},
		{"Commit", commitTests},
		{"Guard", guardTests},
		{"Wake", wakeTests},
		{"CommitTx", commitTxTests},
		{"Tx", txTests},
		{"Branch", branchTests},
		{"Claim", claimTests},
		{"Queue", queueTests},
		{"Progress", progressTests},
		{"Fork", forkTests},
		{"Message", messageTests},
		{"Lease", leaseTests},
		{"Takeover", takeoverTests},
		{"Release", releaseTests},
		{"ReadBack", readBackTests},
		{"Race", raceTests},
		{"Read", readTests},
		{"Payload", payloadTests},
		{"Operate", operateTests},
		{"Retention", retentionTests},
		{"Census", censusTests},
		{"Schedule", scheduleTests},
		{"Schema", schemaTests},
		{"Hint", hintTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newEnv(t, open))
				})
			}
		})
	}
}

// test is one rule of the contract.
type test struct {
	name string
	run  func(*env)
}

// env is what one test works with: a store of its own and short forms of its
// calls that fail the test on an error.
type env struct {
	*testing.T
	st   store.Store
	open Open            // gives another store, on a database of its own
	ctx  context.Context //nolint:containedctx // of the one test
}

// patience bounds every call of a test, so that one that hangs fails.
const patience = time.Minute

func newEnv(t *testing.T, open Open) *env {
	st := open(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	e := &env{T: t, st: st, open: open, ctx: ctx}
	t.Cleanup(func() {
		if !t.Failed() {
			e.settle()
		}
	})
	return e
}

// order is the definition of most workflows here.
var order = store.Def{Name: "order", Version: 1}

// in is a due time: some while ago.
func ago(d time.Duration) store.Wake { return store.Wake{Kind: store.WakeAfter, After: -d} }

func in(d time.Duration) store.Wake { return store.Wake{Kind: store.WakeAfter, After: d} }

var (
	now   = in(0)
	never = store.Wake{Kind: store.WakeNever}
	keep  = store.Wake{Kind: store.WakeKeep}
)

// charge is a mark of the first attempt.
var charge = store.Mark{Step: "charge", Group: 1, Attempt: 1}

// pending is the place of a workflow that executes a step.
func pending(m store.Mark, w store.Wake) store.Place {
	return store.Place{Status: store.Pending, State: "Charging", Mark: m, Wake: w}
}

// waiting is the place of a workflow that waits for the signal "approval".
func waiting(w store.Wake) store.Place {
	return store.Place{Status: store.Waiting, State: "Approving", Awaits: "approval", Wake: w}
}

var completed = store.Place{Status: store.Completed, State: "Delivered"}

// fresh returns a new worker's id.
func freshID() (w store.WorkerID) {
	rand.Read(w[:]) //nolint:errcheck // never fails
	w[6], w[8] = w[6]&0x0f|0x70, w[8]&0x3f|0x80
	return w
}

// worker lets a new worker join that lives for the test.
func (e *env) worker() store.WorkerID { return e.workerFor(time.Hour) }

// workerFor lets a worker join with a lease.
func (e *env) workerFor(lease time.Duration) store.WorkerID {
	w := freshID()
	require.NoError(e, e.st.Join(e.ctx, store.Worker{ID: w, Host: "host", PID: 7, Definitions: []store.Def{order}}, lease))
	return w
}

// deadWorker returns a worker that has been buried.
func (e *env) deadWorker() store.WorkerID {
	w := e.workerFor(time.Microsecond)
	e.bury(w)
	return w
}

// bury buries w, whose lease is over.
func (e *env) bury(w store.WorkerID) {
	buried, err := e.st.Bury(e.ctx)
	require.NoError(e, err)
	require.Contains(e, buried, w)
}

// expire makes the lease of w run out and buries it.
func (e *env) expire(w store.WorkerID) {
	alive, err := e.st.Renew(e.ctx, w, time.Microsecond)
	require.NoError(e, err)
	require.True(e, alive)
	e.bury(w)
}

// start starts a workflow that nobody owns.
func (e *env) start(id string, p store.Place) store.Workflow {
	return e.startAs(store.WorkerID{}, id, p)
}

// startAs starts a workflow that w owns.
func (e *env) startAs(w store.WorkerID, id string, p store.Place) store.Workflow {
	rs, err := e.st.Start(e.ctx, []store.New{{ID: id, Definition: order, Owner: w, Place: p}})
	require.NoError(e, err)
	require.Len(e, rs, 1)
	require.True(e, rs[0].Created, "workflow %q was there before", id)
	return e.get(id)
}

func (e *env) get(id string) store.Workflow {
	w, err := e.st.Get(e.ctx, id)
	require.NoError(e, err)
	return w
}

func (e *env) commit(w store.WorkerID, ts ...store.Transition) []store.Verdict {
	vs, err := e.st.Commit(e.ctx, w, ts)
	require.NoError(e, err)
	require.Len(e, vs, len(ts))
	return vs
}

// apply commits one transition from wf to p, which must be applied.
func (e *env) apply(w store.WorkerID, wf store.Workflow, p store.Place, change ...func(*store.Transition)) store.Workflow {
	t := store.Transition{Guard: guard(wf), Place: p}
	for _, f := range change {
		f(&t)
	}
	require.Equal(e, []store.Verdict{store.Applied}, e.commit(w, t))
	return e.get(wf.ID)
}

// release is a change for apply: the workflow is given back.
func release(t *store.Transition) { t.Release = true }

func guard(wf store.Workflow) store.Guard { return store.Guard{ID: wf.ID, Revision: wf.Revision} }

// claim claims what there is.
func (e *env) claim(w store.WorkerID, defs ...store.Def) []store.Claimed {
	if len(defs) == 0 {
		defs = []store.Def{order}
	}
	cs, err := e.st.Claim(e.ctx, w, defs, 100)
	require.NoError(e, err)
	return cs
}

// claimOne claims exactly one workflow.
func (e *env) claimOne(w store.WorkerID) store.Claimed {
	cs := e.claim(w)
	require.Len(e, cs, 1)
	return cs[0]
}

// send sends a signal that must be accepted.
func (e *env) send(id, message string) {
	require.Equal(e, store.SendAccepted, e.sendAs(signal(id, message)))
}

func (e *env) sendAs(m store.Message) store.SendResult {
	rs, err := e.st.Send(e.ctx, []store.Message{m})
	require.NoError(e, err)
	require.Len(e, rs, 1)
	return rs[0]
}

func signal(id, message string) store.Message {
	return store.Message{WorkflowID: id, ID: message, Kind: store.MessageSignal, Name: "approval", Payload: []byte(`{"yes":true}`)}
}

// mail returns the ids of the fresh messages of what w owns.
func (e *env) mail(w store.WorkerID) []string {
	ms, err := e.st.Mail(e.ctx, w)
	require.NoError(e, err)
	return messageIDs(ms)
}

// inbox returns the ids of the messages that are not consumed.
func (e *env) inbox(id string) []string {
	ms, err := e.st.Inbox(e.ctx, id)
	require.NoError(e, err)
	return messageIDs(ms)
}

func messageIDs(ms []store.Message) []string {
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

func (e *env) history(id string) []store.StepRecord {
	rs, err := e.st.History(e.ctx, id)
	require.NoError(e, err)
	return rs
}

func (e *env) takeover(base time.Duration) int {
	n, err := e.st.Takeover(e.ctx, base, 100)
	require.NoError(e, err)
	return n
}

func (e *env) time() time.Time {
	at, err := e.st.Now(e.ctx)
	require.NoError(e, err)
	return at
}

// near asserts that a time is want from the database's now, give or take what
// a slow test machine needs.
func (e *env) near(at time.Time, want time.Duration) {
	e.Helper()
	require.False(e, at.IsZero(), "no time")
	require.WithinDuration(e, e.time().Add(want), at, 20*time.Second)
}

// done is the record of a step that has succeeded.
func done(step string, group int) store.StepRecord {
	return store.StepRecord{Step: step, Group: group, Status: store.StepDone, Attempt: 1, Output: []byte("out")}
}

// together runs n functions at once, from a barrier, and waits for them.
func together(n int, f func(i int)) {
	var ready, all sync.WaitGroup
	ready.Add(n)
	for i := range n {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	all.Wait()
}

// ids returns n workflow ids.
func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("wf-%04d", i)
	}
	return list
}
