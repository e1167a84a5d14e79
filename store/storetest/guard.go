package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// badGuards are the ways in which a transition of workflow "a", which w owns
// at revision 1, can be mistaken.
var badGuards = []struct {
	name  string
	guard func(e *env, w store.WorkerID) (store.WorkerID, store.Guard)
}{
	{"AnotherOwner", func(e *env, _ store.WorkerID) (store.WorkerID, store.Guard) {
		return e.worker(), store.Guard{ID: "a", Revision: 1}
	}},
	{"Nobody", func(*env, store.WorkerID) (store.WorkerID, store.Guard) {
		return store.WorkerID{}, store.Guard{ID: "a", Revision: 1}
	}},
	{"OlderRevision", func(_ *env, w store.WorkerID) (store.WorkerID, store.Guard) {
		return w, store.Guard{ID: "a", Revision: 0}
	}},
	{"NewerRevision", func(_ *env, w store.WorkerID) (store.WorkerID, store.Guard) {
		return w, store.Guard{ID: "a", Revision: 2}
	}},
	{"UnknownWorkflow", func(_ *env, w store.WorkerID) (store.WorkerID, store.Guard) {
		return w, store.Guard{ID: "b", Revision: 1}
	}},
}

var guardTests = func() []test {
	tests := []test{
		{"OwnerlessRowIsNobodys", guardOwnerless},
		{"EndedRowStaysAsItIs", guardEnded},
		{"SecondSendingIsLost", guardTwice},
		{"BuriedOwnerMayCommit", guardBuried},
		{"AfterTakeover", guardAfterTakeover},
	}
	for _, g := range badGuards {
		tests = append(tests,
			test{"Commit" + g.name, func(e *env) { guardCommit(e, g.guard) }},
			test{"CommitTx" + g.name, func(e *env) { guardCommitTx(e, g.guard) }},
			test{"Release" + g.name, func(e *env) { guardRelease(e, g.guard) }},
		)
	}
	return tests
}()

type badGuard = func(e *env, w store.WorkerID) (store.WorkerID, store.Guard)

// everything is a transition that would write all that one can.
func everything(g store.Guard) store.Transition {
	t := store.Transition{Guard: g, Place: completed, Steps: []store.StepRecord{done("charge", 1)}}
	t.Data, t.Cursor = []byte("stolen"), []byte("stolen")
	t.Consumed = []store.Consumed{{MessageID: "m1", Answer: "stolen"}}
	t.Seen = []string{"m2"}
	return t
}

// guarded makes the workflow "a" with two fresh messages, and returns its
// owner and a test that nothing of it has changed.
func guarded(e *env) (w store.WorkerID, unchanged func()) {
	w = e.worker()
	p := pending(charge, in(time.Hour))
	p.Data, p.Cursor = []byte("data"), []byte("cursor")
	e.startAs(w, "a", p)
	e.send("a", "m1")
	e.send("a", "m2")
	before := e.get("a")
	return w, func() {
		e.Helper()
		require.Equal(e, before, e.get("a"))
		require.Empty(e, e.history("a"))
		require.Equal(e, []string{"m1", "m2"}, e.inbox("a"))
		require.Equal(e, []string{"m1", "m2"}, e.mail(w), "they are still fresh")
	}
}

// guardCommit: a transition whose guard does not hold is Lost and writes
// nothing at all, while its neighbour in the batch stands.
func guardCommit(e *env, bad badGuard) {
	w, unchanged := guarded(e)
	who, g := bad(e, w)
	neighbour := store.New{ID: "neighbour", Definition: order, Owner: who, Place: pending(charge, now)}
	_, err := e.st.Start(e.ctx, []store.New{neighbour})
	require.NoError(e, err)
	vs := e.commit(who, everything(g), store.Transition{Guard: store.Guard{ID: "neighbour", Revision: 1}, Place: completed})
	require.Equal(e, store.Lost, vs[0])
	unchanged()
	require.Empty(e, e.history("b"))
	if !who.IsZero() {
		require.Equal(e, store.Applied, vs[1])
		require.Equal(e, store.Completed, e.get("neighbour").Status)
	}
}

// guardCommitTx: the body does not even run.
func guardCommitTx(e *env, bad badGuard) {
	w, unchanged := guarded(e)
	who, g := bad(e, w)
	v, err := e.st.CommitTx(e.ctx, who, g, time.Minute, func(context.Context, store.Tx) (store.Transition, error) {
		e.Error("the body ran")
		return everything(g), nil
	})
	require.NoError(e, err)
	require.Equal(e, store.Lost, v)
	unchanged()
}

func guardRelease(e *env, bad badGuard) {
	w, unchanged := guarded(e)
	who, g := bad(e, w)
	require.NoError(e, e.st.Release(e.ctx, who, []store.Released{{Guard: g}}))
	unchanged()
}

// guardOwnerless: nobody, as an owner, does not own what nobody owns.
func guardOwnerless(e *env) {
	wf := e.start("a", pending(charge, now))
	for _, w := range []store.WorkerID{{}, e.worker()} {
		require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, everything(guard(wf))))
		v, err := e.st.CommitTx(e.ctx, w, guard(wf), time.Minute, func(context.Context, store.Tx) (store.Transition, error) {
			e.Error("the body ran")
			return everything(guard(wf)), nil
		})
		require.NoError(e, err)
		require.Equal(e, store.Lost, v)
	}
	require.Equal(e, wf, e.get("a"))
}

func guardEnded(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), completed)
	for _, who := range []store.WorkerID{w, {}} {
		require.Equal(e, []store.Verdict{store.Lost}, e.commit(who, store.Transition{Guard: guard(wf), Place: pending(charge, now)}))
	}
	require.Equal(e, wf, e.get("a"))
}

func guardTwice(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	t := store.Transition{Guard: guard(wf), Place: waiting(never), Steps: []store.StepRecord{done("charge", 1)}}
	require.Equal(e, []store.Verdict{store.Applied}, e.commit(w, t))
	after := e.get("a")
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, t))
	require.Equal(e, after, e.get("a"))
	require.Len(e, e.history("a"), 1)
}

// guardBuried: commits look at the row, not at the lease. A buried owner that
// commits before anybody has taken over does no harm.
func guardBuried(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	e.expire(w)
	e.apply(w, wf, completed)
}

// guardAfterTakeover: once it is taken over, whatever the old owner sends is
// lost, also when it is claimed again by nobody but the revision has moved on.
func guardAfterTakeover(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Second))
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, everything(guard(wf))))
	next := e.claimOne(e.worker())
	require.Equal(e, wf.Revision+2, next.Revision)
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, everything(guard(wf))))
	require.Equal(e, []store.Verdict{store.Lost}, e.commit(w, everything(guard(next.Workflow))))
	require.Empty(e, e.history("a"))
}
