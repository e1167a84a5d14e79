package storetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var branchTests = []test{
	{"StartsWithTheTransition", startsInside},
	{"StartsOnceAndNeverOver", startsOnce},
	{"StartsInAnyBucket", startsAnywhere},
	{"SendsWithTheTransition", sendsInside},
	{"SendsOnceAndOnlyToTheLiving", sendsOnce},
	{"LostWritesNoneOfIt", spreadLost},
	{"CommitTxWritesItToo", spreadInTx},
	{"ManyAtOnce", spreadMany},
	{"ParentIsKept", parentKept},
	{"ItemsAreRecordsOfTheirOwn", items},
	{"HistoryHoldsBranches", historyOfBranches},
	{"HistoryOfOneBranch", historyOfBranch},
	{"ListHidesBranches", listHides},
	{"ListOfBranches", listBranches},
	{"BranchIsClaimedAndReadLikeAWorkflow", branchLives},
}

// branch is the row of a branch of root, ready to be claimed.
func branch(root, path string) store.New {
	p := pending(store.Mark{Step: "charge", Group: 1}, now)
	p.Data, p.Cursor = []byte("input of "+path), []byte("cursor")
	return store.New{ID: store.BranchID(root, path), Definition: order, Parent: root, Place: p}
}

// spreads is a change for apply: the transition starts and sends these.
func spreads(starts []store.New, sends ...store.Message) func(*store.Transition) {
	return func(t *store.Transition) { t.Starts, t.Sends = starts, sends }
}

func startsInside(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	want := branch("a", "fulfilling/1/mail")
	want.Owner = w
	e.apply(w, wf, waiting(never), spreads([]store.New{branch("a", "fulfilling/1/label"), want}))

	got := e.get(want.ID)
	require.True(e, got.Owner.IsZero(), "whatever it says, anybody may claim it")
	require.EqualValues(e, 1, got.Revision)
	e.near(got.WakeAt, 0)
	e.near(got.CreatedAt, 0)
	want.Wake = store.Wake{}
	require.Equal(e, want.Place, got.Place)
	require.Equal(e, want.Definition, got.Definition)
	require.Len(e, e.claim(e.worker()), 2)
}

func startsOnce(e *env) {
	w := e.worker()
	e.start("there", waiting(never))
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(never), spreads([]store.New{branch("a", "x")}))
	before := e.get(store.BranchID("a", "x"))
	again := branch("a", "x")
	again.Data = []byte("other")
	taken := store.New{ID: "there", Definition: order, Place: completed}
	e.apply(w, wf, waiting(never), spreads([]store.New{again, taken, branch("a", "y")}))
	require.Equal(e, before, e.get(store.BranchID("a", "x")))
	require.Equal(e, store.Waiting, e.get("there").Status)
	e.get(store.BranchID("a", "y"))
}

// startsAnywhere: a child has an id of its own, and may lie in any bucket.
func startsAnywhere(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	var children []store.New
	for _, id := range ids(20) {
		children = append(children, store.New{ID: id, Definition: order, Parent: "a", InputHash: [16]byte{7}, Place: pending(charge, now)})
	}
	e.apply(w, wf, waiting(never), spreads(children))
	for _, c := range children {
		got := e.get(c.ID)
		require.Equal(e, c.InputHash, got.InputHash)
		res, err := e.st.Start(e.ctx, []store.New{c})
		require.NoError(e, err)
		require.False(e, res[0].Created, "a start finds it where a child was put")
	}
}

func sendsInside(e *env) {
	w := e.worker()
	e.start("b", waiting(never))
	m := store.Message{WorkflowID: "b", ID: "m", Kind: store.MessageBranch, Name: "fulfilling/1/mail", Payload: []byte(`{"failed":1}`)}
	e.apply(w, e.startAs(w, "a", pending(charge, never)), completed, spreads(nil, m))
	ms, err := e.st.Inbox(e.ctx, "b")
	require.NoError(e, err)
	require.Len(e, ms, 1)
	e.near(ms[0].SentAt, 0)
	m.SentAt = ms[0].SentAt
	require.Equal(e, m, ms[0])
	require.Equal(e, "b", e.claimOne(w).ID, "it is fresh, so its target may be claimed")
}

func sendsOnce(e *env) {
	w := e.worker()
	e.start("b", waiting(never))
	e.send("b", "m")
	ended := e.startAs(w, "ended", pending(charge, never))
	e.apply(w, ended, completed)
	first := signal("b", "m")
	first.Payload = []byte("other")
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(never),
		spreads(nil, first, signal("b", "n"), signal("nowhere", "m"), signal("ended", "m")))
	e.apply(w, wf, waiting(never), spreads(nil, signal("b", "n")))
	ms, err := e.st.Inbox(e.ctx, "b")
	require.NoError(e, err)
	require.Equal(e, []string{"m", "n"}, messageIDs(ms))
	require.Equal(e, signal("b", "m").Payload, ms[0].Payload)
	require.Empty(e, e.inbox("nowhere"))
	require.Empty(e, e.inbox("ended"))
}

// spreadLost: of a batch, only what was applied starts and sends.
func spreadLost(e *env) {
	w := e.worker()
	e.start("b", waiting(never))
	e.startAs(w, "won", pending(charge, never))
	e.startAs(w, "lost", pending(charge, never))
	transition := func(id string, revision int64) store.Transition {
		return store.Transition{
			Guard: store.Guard{ID: id, Revision: revision}, Place: waiting(never),
			Starts: []store.New{branch(id, "x")}, Sends: []store.Message{signal("b", id)},
		}
	}
	vs := e.commit(w, transition("won", 1), transition("lost", 9))
	require.Equal(e, []store.Verdict{store.Applied, store.Lost}, vs)
	require.Equal(e, []store.Verdict{store.Lost, store.Lost}, e.commit(w, transition("won", 1), transition("lost", 9)))
	e.get(store.BranchID("won", "x"))
	_, err := e.st.Get(e.ctx, store.BranchID("lost", "x"))
	require.ErrorIs(e, err, store.ErrNotFound)
	require.Equal(e, []string{"won"}, e.inbox("b"))
}

func spreadInTx(e *env) {
	w := e.worker()
	e.start("b", waiting(never))
	wf := e.startAs(w, "a", pending(charge, never))
	v, err := e.st.CommitTx(e.ctx, w, guard(wf), time.Second, func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Place: waiting(never), Starts: []store.New{branch("a", "x")}, Sends: []store.Message{signal("b", "m")}}, nil
	})
	require.NoError(e, err)
	require.Equal(e, store.Applied, v)
	e.get(store.BranchID("a", "x"))
	require.Equal(e, []string{"m"}, e.inbox("b"))
}

// spreadMany: many transitions of one batch, each with many branches.
func spreadMany(e *env) {
	w := e.worker()
	var ts []store.Transition
	for _, id := range ids(20) {
		e.startAs(w, id, pending(charge, never))
		t := store.Transition{Guard: store.Guard{ID: id, Revision: 1}, Place: waiting(never)}
		for _, path := range ids(30) {
			t.Starts = append(t.Starts, branch(id, path))
			t.Sends = append(t.Sends, signal(id, path))
		}
		ts = append(ts, t)
	}
	for _, v := range e.commit(w, ts...) {
		require.Equal(e, store.Applied, v)
	}
	for _, id := range ids(20) {
		require.Len(e, e.inbox(id), 30)
		for _, path := range ids(30) {
			require.Equal(e, "input of "+path, string(e.get(store.BranchID(id, path)).Data))
		}
	}
}

func parentKept(e *env) {
	w := e.worker()
	e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(never), spreads([]store.New{branch("a", "x")}))
	_, err := e.st.Start(e.ctx, []store.New{{ID: "b", Definition: order, Parent: "a", Place: waiting(never)}})
	require.NoError(e, err)
	require.Equal(e, "a", e.get("b").Parent)
	require.Empty(e, e.get("a").Parent)
	c := e.claimOne(w)
	require.Equal(e, "a", c.Parent)
	cs, err := e.st.Load(e.ctx, w, []string{c.ID})
	require.NoError(e, err)
	require.Equal(e, "a", cs[0].Parent)
	e.apply(w, cs[0].Workflow, completed)
	ended, _, err := e.st.Ended(e.ctx, []string{c.ID})
	require.NoError(e, err)
	require.Equal(e, "a", ended[0].Parent)
}

func items(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	for item := 1; item <= 12; item++ {
		r := done("print", 1)
		r.Item = item
		wf = e.apply(w, wf, pending(charge, never), func(t *store.Transition) { t.Steps = []store.StepRecord{r} })
	}
	got := e.history("a")
	require.Len(e, got, 12)
	for i, r := range got {
		require.Equal(e, i+1, r.Item)
		require.Empty(e, r.Branch)
	}
	twice := done("print", 1)
	twice.Item = 12
	_, err := e.st.Commit(e.ctx, w, []store.Transition{{Guard: guard(wf), Place: completed, Steps: []store.StepRecord{twice}}})
	require.Error(e, err)
}

// historyOfBranches: the records of a workflow and its branches, in the order
// of their completion; nobody else's, however alike the id.
func historyOfBranches(e *env) {
	w := e.worker()
	rows := map[string]store.Workflow{}
	for _, id := range []string{"a", "a!", "a-b", "aa", "b", store.BranchID("a", "x/1"), store.BranchID("a", "x/10"), store.BranchID("a-b", "x/1")} {
		rows[id] = e.startAs(w, id, pending(charge, never))
	}
	record := func(id, step string) {
		rows[id] = e.apply(w, rows[id], pending(charge, never), func(t *store.Transition) { t.Steps = []store.StepRecord{done(step, 1)} })
	}
	record("a", "zero")
	record(store.BranchID("a", "x/10"), "one")
	record(store.BranchID("a", "x/1"), "two")
	record("a!", "alien")
	record(store.BranchID("a-b", "x/1"), "alien")
	record("a", "three")
	record(store.BranchID("a", "x/10"), "four")
	var got [][2]string
	for _, r := range e.history("a") {
		got = append(got, [2]string{r.Branch, r.Step})
	}
	require.Equal(e, [][2]string{{"", "zero"}, {"x/10", "one"}, {"x/1", "two"}, {"", "three"}, {"x/10", "four"}}, got)
}

func historyOfBranch(e *env) {
	w := e.worker()
	for _, path := range []string{"x/1", "x/10", "x/1-"} {
		wf := e.startAs(w, store.BranchID("a", path), pending(charge, never))
		e.apply(w, wf, completed, func(t *store.Transition) { t.Steps = []store.StepRecord{done("charge", 1)} })
	}
	got := e.history(store.BranchID("a", "x/1"))
	require.Len(e, got, 1)
	require.Equal(e, "x/1", got[0].Branch)
}

func listHides(e *env) {
	for _, id := range []string{"a", "b", "c"} {
		e.start(id, waiting(never))
		e.start(store.BranchID(id, "x"), waiting(never))
	}
	require.Equal(e, []string{"a", "b", "c"}, e.list(store.Query{}))
	require.Equal(e, []string{"b"}, e.list(store.Query{After: "a", Limit: 1}), "a branch does not use up the page")
}

func listBranches(e *env) {
	for _, id := range []string{"a", "a-", "aa", "b"} {
		e.start(id, waiting(never))
		for _, path := range []string{"x/1/2", "x/1/1", "y"} {
			e.start(store.BranchID(id, path), waiting(never))
		}
	}
	of := func(id string, paths ...string) (ids []string) {
		for _, p := range paths {
			ids = append(ids, store.BranchID(id, p))
		}
		return ids
	}
	require.Equal(e, of("a", "x/1/1", "x/1/2", "y"), e.list(store.Query{BranchesOf: "a"}))
	require.Equal(e, of("a", "x/1/2"), e.list(store.Query{BranchesOf: "a", After: store.BranchID("a", "x/1/1"), Limit: 1}))
	require.Empty(e, e.list(store.Query{BranchesOf: "a", Statuses: []store.Status{store.Held}}))
	require.Empty(e, e.list(store.Query{BranchesOf: "nowhere"}))
}

// branchLives: for everything else a branch is a row like any other.
func branchLives(e *env) {
	w := e.worker()
	id := store.BranchID("a", "x/1")
	e.start(id, pending(store.Mark{Step: "charge", Group: 1}, now))
	c := e.claimOne(w)
	require.Equal(e, id, c.ID)
	require.Equal(e, 1, c.Mark.Attempt)
	e.send(id, "m")
	require.Equal(e, []string{"m"}, e.mail(w))
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Second))
	w = e.worker()
	c = e.claimOne(w)
	require.Equal(e, 1, c.Mark.Crashes)
	require.NoError(e, e.st.Release(e.ctx, w, []store.Released{{Guard: guard(c.Workflow)}}))
	c = e.claimOne(w)
	ps, err := e.st.ReadBack(e.ctx, []string{id})
	require.NoError(e, err)
	require.Equal(e, c.Revision, ps[0].Revision)
	e.apply(w, c.Workflow, completed, func(t *store.Transition) { t.Consumed = []store.Consumed{{MessageID: "m"}} })
	ended, missing, err := e.st.Ended(e.ctx, []string{id})
	require.NoError(e, err)
	require.Empty(e, missing)
	require.Len(e, ended, 1)
}
