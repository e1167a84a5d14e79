package engine

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// rig drives a reactor by hand: events in, commands out, and the clock is a
// number.
type rig struct {
	t   *testing.T
	r   *reactor
	now time.Duration
}

var self = store.WorkerID{1}

func newRig(t *testing.T, tune ...func(*reactorConfig)) *rig {
	cfg := reactorConfig{
		lease: 10 * time.Second, margin: 2 * time.Second, poll: 500 * time.Millisecond, concurrency: 10,
		limits: store.Limits{Committers: 1, Batch: 100}, drain: 5 * time.Second, cut: time.Second,
		deadline: func(d store.Def) time.Duration { return map[string]time.Duration{"hasty": time.Minute}[d.Name] },
		spec: func(_ store.Def, name string) (step.Spec, bool) {
			return step.Spec{Name: name, Pivot: name == "label", IsUndo: name == "refund"}, name != ""
		},
	}
	for _, f := range tune {
		f(&cfg)
	}
	return &rig{t: t, r: newReactor(cfg)}
}

// joinedRig returns a rig whose worker has joined, with nothing left to do.
func joinedRig(t *testing.T, tune ...func(*reactorConfig)) *rig {
	g := newRig(t, tune...)
	g.r.begin()
	require.Equal(t, []command{cmdJoin{}}, g.r.flush())
	g.give(evJoined{id: self})
	g.give(evSwept{})
	g.give(evScheduled{round: scheduleRound{next: -1}})
	g.give(evClaimed{id: self, limit: 10})
	return g
}

// give hands events over together and returns what comes out, logs left out.
func (g *rig) give(evs ...event) []command {
	for _, ev := range evs {
		g.r.handle(g.now, ev)
	}
	var out []command
	for _, c := range g.r.flush() {
		switch c.(type) {
		case cmdLog, cmdTell, cmdHint:
		default:
			out = append(out, c)
		}
	}
	return out
}

// wait lets time pass, tick by tick as the reactor asks for it.
func (g *rig) wait(d time.Duration) []command {
	var out []command
	for end := g.now + d; g.now < end; {
		g.now = min(max(g.r.nextTick(), g.now), end)
		out = append(out, g.give(evTick{})...)
	}
	return out
}

func pick[C command](cmds []command) []C {
	var got []C
	for _, c := range cmds {
		if c, ok := c.(C); ok {
			got = append(got, c)
		}
	}
	return got
}

// one returns the only command of a type.
func one[C command](t *testing.T, cmds []command) C {
	t.Helper()
	got := pick[C](cmds)
	require.Len(t, got, 1, "in %#v", cmds)
	return got[0]
}

func claimedRow(id string) store.Claimed {
	return store.Claimed{Due: true, Workflow: store.Workflow{
		ID: id, Revision: 2, Owner: self, Definition: store.Def{Name: "order", Version: 1},
		Place: store.Place{Status: store.Pending, State: "charging", Mark: store.Mark{Step: "charge", Group: 1, Attempt: 1}},
	}}
}

// take makes the worker hold workflows and returns their jobs.
func (g *rig) take(ids ...string) []job {
	g.t.Helper()
	var rows []store.Claimed
	for _, id := range ids {
		rows = append(rows, claimedRow(id))
	}
	return jobs(g.give(evClaimed{id: self, limit: 10, rows: rows}))
}

func jobs(cmds []command) []job {
	var js []job
	for _, c := range pick[cmdWork](cmds) {
		js = append(js, c.job)
	}
	return js
}

// done is the outcome of a job that goes on to another step here.
func done(j job) evWorked {
	run := &statemachine.RunStep{Spec: step.Spec{Name: "ship"}}
	return evWorked{self, j, worked{
		cursor:     statemachine.Cursor{ID: j.id, Phase: statemachine.Running, Mark: statemachine.Mark{Step: "ship", Group: 1, Attempt: 1}},
		transition: store.Transition{Guard: store.Guard{ID: j.id, Revision: j.rev}, Place: store.Place{Status: store.Pending, Mark: store.Mark{Step: "ship", Group: 1, Attempt: 1}}},
		follow:     follow{run: run},
	}}
}

func committed(c cmdCommit, err error, verdicts ...store.Verdict) evCommitted {
	return evCommitted{self, c.batch, verdicts, err}
}

func TestCommitsBatchWhileOneIsUnderWay(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b", "c")

	first := one[cmdCommit](t, g.give(done(js[0])))
	require.Len(t, first.ts, 1, "an idle store gets the first outcome at once")
	require.Empty(t, g.give(done(js[1])))
	require.Empty(t, g.give(done(js[2])))

	cmds := g.give(committed(first, nil, store.Applied))
	require.Len(t, one[cmdCommit](t, cmds).ts, 2, "what gathered meanwhile shares the next one")
	require.Equal(t, "ship", jobs(cmds)[0].run.Spec.Name, "the committed one goes on with its next step")
	require.EqualValues(t, 3, jobs(cmds)[0].rev)
}

// A claim may be answered before the commit that has given the workflow back:
// they go over different connections. It must not be lost until the next
// reconciliation, a lease later.
func TestAClaimMayOvertakeTheCommitBeforeIt(t *testing.T) {
	t.Parallel()
	given := func(j job) evWorked {
		out := done(j)
		out.out.transition.Place = store.Place{Status: store.Waiting, State: "charging", Wake: store.Wake{Kind: store.WakeAfter}}
		out.out.transition.Release = true
		return out
	}
	again := claimedRow("a")
	again.Revision = 4 // the release and the claim
	for name, answer := range map[string]func(g *rig, c cmdCommit) []command{
		"applied": func(g *rig, c cmdCommit) []command { return g.give(committed(c, nil, store.Applied)) },
		"its answer is lost": func(g *rig, c cmdCommit) []command {
			g.give(committed(c, store.ErrUnsure))
			rb := one[cmdReadBack](g.t, g.wait(backoff(1)))
			return g.give(evReadBack{self, rb.holds, []store.Position{{ID: "a", Owner: self, Revision: 4}}, nil})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := joinedRig(t)
			c := one[cmdCommit](t, g.give(given(g.take("a")[0])))
			require.Empty(t, jobs(g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{again}})))
			js := jobs(answer(g, c))
			require.Len(t, js, 1)
			require.EqualValues(t, 4, js[0].rev)
		})
	}
}

// What is read of a workflow that is held, as it stands or as a commit under way
// leaves it, is no other claim of it.
func TestARowThatIsHeldIsNotTakenTwice(t *testing.T) {
	t.Parallel()
	for _, rev := range []int64{2, 3} {
		g := joinedRig(t)
		c := one[cmdCommit](t, g.give(done(g.take("a")[0])))
		again := claimedRow("a")
		again.Revision = rev
		require.Empty(t, jobs(g.give(evLoaded{id: self, rows: []store.Claimed{again}})))
		require.Empty(t, jobs(g.give(committed(c, nil, store.Lost))), "revision %d", rev)
		require.Empty(t, g.r.holds)
	}
}

// Nobody looks at a workflow that is HELD unless they are told.
func TestHeldIsLogged(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a")
	out := done(js[0])
	out.out.transition.Place = store.Place{Status: store.Held, State: "charging", Error: "refund failed 5 times"}
	out.out.transition.Release = true
	c := one[cmdCommit](t, g.give(out))
	g.r.handle(g.now, committed(c, nil, store.Applied))
	line := one[cmdLog](t, g.r.flush())
	require.True(t, line.warn)
	require.Contains(t, line.args, "a")
	require.Contains(t, line.args, "refund failed 5 times")
}

func TestLostVerdictLetsGo(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a")
	c := one[cmdCommit](t, g.give(done(js[0])))
	require.Empty(t, jobs(g.give(committed(c, nil, store.Lost))))
	require.Empty(t, g.r.holds)
}

// A commit whose answer is lost is read back: what is there decides.
func TestLostAnswerIsReadBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at     store.Position
		resent bool
		goesOn bool
	}{
		"it was not applied":            {store.Position{ID: "a", Owner: self, Revision: 2}, true, false},
		"it was applied":                {store.Position{ID: "a", Owner: self, Revision: 3}, false, true},
		"another owns it by now":        {store.Position{ID: "a", Owner: store.WorkerID{9}, Revision: 3}, false, false},
		"it was given to nobody":        {store.Position{ID: "a", Revision: 3}, false, false},
		"it went on without us":         {store.Position{ID: "a", Owner: self, Revision: 4}, false, false},
		"it is gone from the ground up": {store.Position{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := joinedRig(t)
			js := g.take("a")
			c := one[cmdCommit](t, g.give(done(js[0])))
			require.Empty(t, pick[cmdCommit](g.give(committed(c, store.ErrUnsure))), "nothing is repeated blindly")
			rb := one[cmdReadBack](t, g.wait(backoff(1)))
			cmds := g.give(evReadBack{self, rb.holds, []store.Position{tc.at}, nil})
			if again := pick[cmdCommit](cmds); tc.resent {
				require.Equal(t, c.ts, again[0].ts, "the very same outcome is sent again")
			} else {
				require.Empty(t, again)
			}
			require.Equal(t, tc.goesOn, len(jobs(cmds)) == 1)
			require.Equal(t, tc.resent || tc.goesOn, g.r.holds["a"] != nil)
		})
	}
}

// The second sending may lose against the first one, which arrived late: a
// Lost then is no proof, and is read back once more.
func TestSecondLostIsReadBackToo(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a")
	c := one[cmdCommit](t, g.give(done(js[0])))
	g.give(committed(c, store.ErrUnsure))
	rb := one[cmdReadBack](t, g.wait(backoff(1)))
	c = one[cmdCommit](t, g.give(evReadBack{self, rb.holds, []store.Position{{ID: "a", Owner: self, Revision: 2}}, nil}))

	require.NotNil(t, g.r.holds["a"])
	g.give(committed(c, nil, store.Lost))
	require.NotNil(t, g.r.holds["a"], "not believed")
	rb = one[cmdReadBack](t, g.wait(time.Second))
	cmds := g.give(evReadBack{self, rb.holds, []store.Position{{ID: "a", Owner: self, Revision: 3}}, nil})
	require.Equal(t, "ship", jobs(cmds)[0].run.Spec.Name)
}

func TestRolledBackCommitIsSentAgain(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b")
	c := one[cmdCommit](t, g.give(done(js[0]), done(js[1])))
	require.Empty(t, pick[cmdCommit](g.give(committed(c, store.ErrRetry))))
	again := one[cmdCommit](t, g.wait(backoff(1)))
	require.Equal(t, c.ts, again.ts, "both, together, unchanged")
	require.Empty(t, pick[cmdReadBack](g.give(committed(again, nil, store.Applied, store.Lost))), "a Lost after a certain rollback is believed")
}

// One row that is locked or that the database will not take must not hold up
// the others: the batch is halved until it stands alone.
func TestFailedBatchIsHalved(t *testing.T) {
	t.Parallel()
	for _, err := range []error{store.ErrBusy, errors.New("refused")} {
		g := joinedRig(t)
		js := g.take("a", "b", "c", "d")
		c := one[cmdCommit](t, g.give(done(js[0]), done(js[1]), done(js[2]), done(js[3])))
		require.Len(t, c.ts, 4)
		left := one[cmdCommit](t, g.give(committed(c, err)))
		require.Len(t, left.ts, 2)
		right := one[cmdCommit](t, g.give(committed(left, nil, store.Applied, store.Applied)))
		require.Len(t, right.ts, 2)
		c3 := one[cmdCommit](t, g.give(committed(right, err)))
		require.Len(t, c3.ts, 1)
		cmds := g.give(committed(c3, err))
		c4 := one[cmdCommit](t, cmds)
		require.Equal(t, "d", c4.ts[0].ID)
		if errors.Is(err, store.ErrBusy) {
			require.Empty(t, jobs(cmds), "it is sent again later")
			g.give(committed(c4, nil, store.Applied))
			require.Equal(t, "c", one[cmdCommit](t, g.wait(time.Second)).ts[0].ID)
		} else {
			require.Equal(t, "refused", jobs(cmds)[0].refused, "it is to be HELD")
		}
	}
}

func TestFencesItselfBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b")
	var cut []cmdInterrupt
	for g.now < 10*time.Second && len(cut) == 0 {
		for _, c := range g.wait(50 * time.Millisecond) {
			switch c := c.(type) {
			case cmdRenew:
				g.give(evRenewed{id: self, sentAt: g.now, err: errors.New("no route")})
			case cmdInterrupt:
				cut = append(cut, c)
			}
		}
	}
	require.Less(t, g.now, 10*time.Second)
	require.GreaterOrEqual(t, g.now, 8*time.Second-time.Millisecond)
	require.Equal(t, []cmdInterrupt{{"a", ErrLeaseLost}, {"b", ErrLeaseLost}}, cut)

	// What has been done is kept, since nobody may have buried this worker.
	c := one[cmdCommit](t, g.give(done(js[0])))
	require.Empty(t, jobs(g.give(committed(c, nil, store.Applied))), "no body runs without a lease")
	cmds := g.give(evRenewed{id: self, sentAt: g.now, alive: true})
	require.Len(t, jobs(cmds), 1, "nobody had taken over: it goes on")
	require.Len(t, pick[cmdOwned](cmds), 1)
}

func TestBuriedForgetsEverything(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b")
	cmds := g.give(evRenewed{id: self, alive: false})
	require.Equal(t, []command{cmdInterrupt{"a", ErrLeaseLost}, cmdInterrupt{"b", ErrLeaseLost}, cmdJoin{}}, cmds)
	require.Empty(t, pick[cmdCommit](g.give(done(js[0]))), "the late outcome is not even sent")

	reborn := store.WorkerID{2}
	g.give(evJoined{id: reborn, sentAt: g.now})
	require.Empty(t, pick[cmdCommit](g.give(done(js[1]))))
	require.Equal(t, reborn, g.r.me)
}

func TestRenewsEveryThirdOfTheLease(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	n := 0
	for range 600 { // a minute
		for _, c := range g.wait(100 * time.Millisecond) {
			if _, ok := c.(cmdRenew); ok {
				n++
				g.give(evRenewed{id: self, sentAt: g.now, alive: true}, evOwned{id: self})
			}
		}
	}
	require.InDelta(t, 18, n, 1)
}

// A database that was slow for this worker was slow for the others: it buries
// nobody in the round after.
func TestLateRenewalSkipsASweep(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	g.wait(100 * time.Millisecond)
	g.give(evRenewed{id: self, sentAt: g.now - 4*time.Second, alive: true})
	require.Empty(t, pick[cmdSweep](g.wait(500*time.Millisecond)))
	require.Len(t, pick[cmdSweep](g.wait(500*time.Millisecond)), 1)
}

// A claim whose answer was lost leaves rows that are owned and not held.
func TestReconcilesWhatItOwnsButDoesNotHold(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	g.take("a")
	owned := evOwned{id: self, pos: []store.Position{{ID: "a"}, {ID: "lost"}}}
	require.Empty(t, pick[cmdLoad](g.give(owned)), "its claim's answer may be on its way")
	require.Equal(t, []string{"lost"}, one[cmdLoad](t, g.give(owned)).ids)
	js := jobs(g.give(evLoaded{id: self, rows: []store.Claimed{claimedRow("lost"), claimedRow("a")}}))
	require.Len(t, js, 1, "and what is held is not taken twice")
	require.Equal(t, "lost", js[0].id)
}

func suspectRow(id string) store.Claimed {
	row := claimedRow(id)
	row.Mark.Crashes = soloCrashes
	return row
}

// A step that killed its worker twice runs alone: its death would be counted
// against whatever the worker owns. So all else is given back before, and nothing
// new is taken on.
func TestSuspectsRunAlone(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("healthy")
	cmds := g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{suspectRow("suspect"), claimedRow("other"), suspectRow("second")}})
	require.Empty(t, jobs(cmds), "neither the suspect beside a neighbour, nor new neighbours")
	rel := one[cmdRelease](t, cmds)
	require.Equal(t, []store.Released{{Guard: store.Guard{ID: "other", Revision: 2}}, {Guard: store.Guard{ID: "second", Revision: 2}}}, rel.rs)
	require.Empty(t, jobs(g.give(evReleased{id: self, holds: rel.holds})), "the neighbour still runs")

	c := one[cmdCommit](t, g.give(done(js[0])))
	cmds = g.give(committed(c, nil, store.Applied))
	require.Empty(t, jobs(cmds))
	rel = one[cmdRelease](t, cmds)
	require.Equal(t, "healthy", rel.rs[0].ID, "before its next step begins")

	cmds = g.give(evReleased{id: self, holds: rel.holds}, evHint{})
	require.Empty(t, pick[cmdClaim](cmds))
	alone := jobs(cmds)
	require.Len(t, alone, 1)
	require.Equal(t, "suspect", alone[0].id)
	a := start("started", true)
	require.Zero(t, one[cmdStart](t, g.give(evStart{a})).reqs[0].owner)
	g.give(evStarted{id: self, reqs: []*startRequest{a}, results: []store.StartResult{{Created: true, Revision: 1}}})

	c = one[cmdCommit](t, g.give(done(alone[0])))
	cmds = g.give(committed(c, nil, store.Applied))
	require.Len(t, jobs(cmds), 1, "it has survived, and goes on")
	require.Equal(t, 1, one[cmdClaim](t, cmds).limit, "the others may come again, one by one while they are suspects")
	cmds = g.give(evClaimed{id: self, limit: 1, rows: []store.Claimed{claimedRow("other")}})
	require.Equal(t, 8, one[cmdClaim](t, cmds).limit)
}

func TestSuspectDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	g.take("long")
	g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{suspectRow("suspect")}})
	g.give(evRenewed{id: self, sentAt: 9 * time.Second, alive: true})
	require.Empty(t, jobs(g.wait(9*time.Second)))
	require.Len(t, jobs(g.wait(time.Second)), 1)
}

func TestClaimsNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	g := joinedRig(t, func(c *reactorConfig) { c.concurrency = 3 })
	require.Equal(t, 3, one[cmdClaim](t, g.wait(500*time.Millisecond)).limit)
	rows := []store.Claimed{claimedRow("a"), claimedRow("b")}
	cmds := g.give(evClaimed{id: self, limit: 3, rows: rows})
	js := jobs(cmds)
	require.Len(t, js, 2)
	require.Equal(t, 1, one[cmdClaimQueued](t, cmds).limit, "the round asks the queues too")
	require.Empty(t, pick[cmdClaim](g.give(evHint{})), "one claim at a time")
	require.Equal(t, 1, one[cmdClaim](t, g.give(evQueued{id: self, limit: 1})).limit)
	g.give(evClaimed{id: self, limit: 1, rows: []store.Claimed{claimedRow("c")}})
	require.Empty(t, pick[cmdClaim](g.give(evHint{})), "full")
	c := one[cmdCommit](t, g.give(done(js[0])))
	require.Equal(t, 1, one[cmdClaim](t, g.give(committed(c, nil, store.Lost))).limit, "the hint was not forgotten")
}

// TestQueuesAreAsked: in each round; at a hint only if there are queues; and when a
// slot is free or a rate lets the next one begin.
func TestQueuesAreAsked(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	answer := func(c store.QueueClaim) []command {
		g.give(evClaimed{id: self, limit: 8})
		return g.give(evQueued{id: self, limit: 8, claim: c})
	}
	one[cmdClaim](t, g.wait(500*time.Millisecond))
	one[cmdClaimQueued](t, g.give(evClaimed{id: self, limit: 8}))
	answer(store.QueueClaim{})
	one[cmdClaim](t, g.give(evHint{}))
	require.Empty(t, pick[cmdClaimQueued](g.give(evClaimed{id: self, limit: 8})), "there are none")

	one[cmdClaim](t, g.wait(500*time.Millisecond))
	row := claimedRow("a")
	row.Queue = "q"
	g.give(evClaimed{id: self, limit: 8})
	js := jobs(answer(store.QueueClaim{Any: true, Rows: []store.Claimed{row}, Next: 50 * time.Millisecond}))
	require.Len(t, js, 1)
	one[cmdClaimQueued](t, g.wait(60*time.Millisecond))
	answer(store.QueueClaim{Any: true})
	one[cmdClaim](t, g.give(evHint{}))
	one[cmdClaimQueued](t, g.give(evClaimed{id: self, limit: 8}))
	answer(store.QueueClaim{Any: true})
	out := done(js[0])
	out.out.transition.Release = true
	c := one[cmdCommit](t, g.give(out))
	one[cmdClaimQueued](t, g.give(committed(c, nil, store.Applied)))
}

// A body may be cut off however its workflow came to this worker: by a claim,
// too, after which the reactor has seen no RunStep.
func TestMailIsDeliveredOnceAndCancelsInterrupt(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "pivot", "undo")
	g.r.holds["pivot"].cursor.Mark.Step = "label"
	g.r.holds["undo"].cursor.Mark.Step = "refund"
	cancel := func(id string) store.Message {
		return store.Message{WorkflowID: id, ID: "m", Kind: store.MessageCancel}
	}
	one[cmdMail](t, g.give(evHint{}))
	cmds := g.give(evMail{id: self, msgs: []store.Message{cancel("a"), cancel("pivot"), cancel("undo"), cancel("stranger")}})
	require.ErrorIs(t, one[cmdInterrupt](t, cmds).cause, ErrCancelAsked, "the pivot's outcome is awaited, a rollback not cancelled")
	require.Empty(t, pick[cmdInterrupt](g.give(evMail{id: self, msgs: []store.Message{cancel("a")}})), "known already")
	require.Len(t, g.r.holds["a"].inbox, 1)

	// Only what a transition knew of stops being fresh.
	c := one[cmdCommit](t, g.give(done(js[0])))
	require.Empty(t, c.ts[0].Seen)
	require.Equal(t, []string{"m"}, jobs(g.give(committed(c, nil, store.Applied)))[0].unseen)
}

// Mail that was read before a transition took it up, and arrives after, must not
// be taken up again: not by the same hold, and not by a later one.
func TestStaleMailIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		g := joinedRig(t)
		row := claimedRow("a")
		row.Inbox = []store.Message{{WorkflowID: "a", ID: "m", Kind: store.MessageSignal, Name: "vote"}}
		js := jobs(g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{row}}))
		one[cmdMail](t, g.give(evHint{})) // reads m, which is still fresh

		out := done(js[0])
		out.out.transition.Consumed = []store.Consumed{{MessageID: "m"}}
		out.out.transition.Release = again
		c := one[cmdCommit](t, g.give(out))
		g.give(committed(c, nil, store.Applied))
		if again {
			g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{claimedRow("a")}})
		}
		cmds := g.give(evMail{id: self, msgs: row.Inbox})
		require.Empty(t, g.r.holds["a"].inbox, "claimed again: %v", again)
		require.Equal(t, again, len(pick[cmdMail](cmds)) == 1, "what it cannot judge is read once more")
	}
}

func start(id string, run bool) *startRequest {
	n := newWorkflow{New: store.New{ID: id}}
	if run {
		n.next.run = &statemachine.RunStep{}
	}
	return &startRequest{n: n, reply: make(chan startReply, 1)}
}

func TestStartsShareACommitAndRunAtOnce(t *testing.T) {
	t.Parallel()
	g := joinedRig(t, func(c *reactorConfig) { c.concurrency = 2 })
	a, b, c, dup := start("a", true), start("b", true), start("c", true), start("a", true)
	cmd := one[cmdStart](t, g.give(evStart{a}, evStart{b}, evStart{c}, evStart{dup}))
	require.Equal(t, []*startRequest{a, b, c}, cmd.reqs, "the duplicate waits for the answer to the first")
	require.Equal(t, []store.WorkerID{self, self, {}}, []store.WorkerID{a.owner, b.owner, c.owner}, "no more than there is room for")

	created := store.StartResult{Created: true, Revision: 1}
	cmds := g.give(evStarted{id: self, reqs: cmd.reqs, results: []store.StartResult{created, created, created}})
	require.Len(t, jobs(cmds), 2)
	require.Len(t, pick[cmdReply](cmds), 3)
	require.Equal(t, []*startRequest{dup}, one[cmdStart](t, cmds).reqs)
}

// Starts and commits share the store's committers: while both keep coming they
// take turns.
func TestStartsAndCommitsTakeTurns(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b")
	created := []store.StartResult{{Created: true, Revision: 1}}
	s := one[cmdStart](t, g.give(evStart{start("x", false)}))
	for i := range 2 {
		require.Empty(t, g.give(done(js[i]), evStart{start(fmt.Sprint(i), false)}), "the only committer is busy")
		cmds := g.give(evStarted{id: self, reqs: s.reqs, results: created})
		c := one[cmdCommit](t, cmds)
		require.Empty(t, pick[cmdStart](cmds))
		cmds = g.give(committed(c, nil, store.Applied))
		s = one[cmdStart](t, cmds)
	}
}

// A start whose answer was lost is repeated, and what the first one inserted is
// picked up.
func TestLostStartIsRepeatedAndPickedUp(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	a := start("a", true)
	g.give(evStart{a})
	require.Empty(t, pick[cmdReply](g.give(evStarted{id: self, reqs: []*startRequest{a}, err: store.ErrUnsure})))
	one[cmdStart](t, g.wait(backoff(1)))
	cmds := g.give(evStarted{id: self, reqs: []*startRequest{a}, results: []store.StartResult{{Created: false, Revision: 1}}})
	require.Equal(t, []string{"a"}, one[cmdLoad](t, cmds).ids)
	require.False(t, one[cmdReply](t, cmds).reply.res.Created)
}

func TestRefusedStartHoldsUpNobody(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	a, b := start("a", true), start("b", true)
	g.give(evStart{a}, evStart{b})
	refused := errors.New("refused")
	cmds := g.give(evStarted{id: self, reqs: []*startRequest{a, b}, err: refused})
	require.Len(t, pick[cmdStart](cmds), 2)
	require.Equal(t, refused, one[cmdReply](t, g.give(evStarted{id: self, reqs: []*startRequest{a}, err: refused})).reply.err)
}

func TestDrainHandsOver(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	js := g.take("a", "b")
	row := claimedRow("suspect")
	row.Mark.Crashes = soloCrashes
	mailed := claimedRow("mailed") // claimed for a message while it pauses
	mailed.Due = false

	cmds := g.give(evClaimed{id: self, limit: 10, rows: []store.Claimed{row, mailed}}, evDrain{})
	rel := one[cmdRelease](t, cmds)
	require.Equal(t, []store.Released{
		{Guard: store.Guard{ID: "suspect", Revision: 2}},
		{Guard: store.Guard{ID: "mailed", Revision: 2}, Begun: true},
	}, rel.rs, "what has not begun goes back, and with it the attempt that its claim has counted")
	g.give(evReleased{id: self, holds: rel.holds})
	require.Empty(t, pick[cmdClaim](g.give(evHint{})), "nothing new is claimed")

	c := one[cmdCommit](t, g.give(done(js[0])))
	require.True(t, c.ts[0].Release)
	require.Equal(t, store.Wake{Kind: store.WakeAfter}, c.ts[0].Wake, "another goes on at once")
	require.Equal(t, 0, c.ts[0].Mark.Attempt, "its claim will count the attempt")
	require.Empty(t, jobs(g.give(committed(c, nil, store.Applied))))

	cmds = g.wait(4 * time.Second)
	require.NotEmpty(t, pick[cmdRenew](cmds), "a draining worker keeps its lease")
	g.give(evRenewed{id: self, sentAt: g.now, alive: true})
	cmds = g.wait(1100 * time.Millisecond)
	require.Equal(t, cmdInterrupt{"b", ErrDraining}, one[cmdInterrupt](t, cmds))
	require.Len(t, pick[cmdLeave](g.wait(time.Second)), 1, "it leaves even if a body never returns")
	require.Len(t, pick[cmdStop](g.give(evLeft{})), 1)
}

func TestDrainOfAnIdleWorkerLeavesAtOnce(t *testing.T) {
	t.Parallel()
	g := joinedRig(t)
	require.Len(t, pick[cmdLeave](g.give(evDrain{})), 1)
	g = newRig(t)
	g.r.begin()
	require.Len(t, pick[cmdStop](g.give(evDrain{})), 1, "nothing to leave before joining")
}

// The same events give the same commands, to the letter: a run can be repeated.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	play := func() string {
		g := joinedRig(t, func(c *reactorConfig) { c.concurrency = 50 })
		var ids []string
		for i := range 40 {
			ids = append(ids, fmt.Sprintf("w%02d", i))
		}
		js := g.take(ids...)
		var log []string
		add := func(cmds []command) {
			for _, c := range cmds {
				log = append(log, reflect.TypeOf(c).String())
				if c, ok := c.(cmdInterrupt); ok {
					log = append(log, c.id)
				}
				if c, ok := c.(cmdCommit); ok {
					for _, tr := range c.ts {
						log = append(log, tr.ID)
					}
				}
			}
		}
		for _, j := range js[:20] {
			add(g.give(done(j)))
		}
		add(g.give(evRenewed{id: self, alive: false}))
		return fmt.Sprint(log)
	}
	first := play()
	for range 20 {
		require.Equal(t, first, play())
	}
}
