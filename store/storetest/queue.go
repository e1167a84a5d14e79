package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var queueTests = []test{
	{"ClaimLeavesQueuesAlone", queueApart},
	{"ByPriorityAndAge", queueOrder},
	{"WhoHasBegunGoesFirst", queueBegun},
	{"NobodyStarves", queueAgeing},
	{"NotBeforeItsTime", queueDelay},
	{"ConcurrencyOfAll", queueConcurrency},
	{"ConcurrencyOfOneWorker", queuePerWorker},
	{"ConcurrencyOfOneKey", queuePerKey},
	{"NoKeyStandsBeforeAnother", queueManyKeys},
	{"Rate", queueRate},
	{"RateIsForThoseThatBegin", queueRateBegun},
	{"RateFillsUp", queueRateFills},
	{"Paused", queuePaused},
	{"LiveChange", queueChange},
	{"WaitingGivesTheSlotBack", queueWaiting},
	{"ACrashGivesTheSlotBack", queueCrash},
	{"AMessageWakesUnderTheLimits", queueMail},
	{"AMessageDoesNotBeginIt", queueMailEarly},
	{"CancelledBeforeItBegins", queueCancel},
	{"OnlyTheGivenDefinitions", queueDefinitions},
	{"BuriedWorkerClaimsNothing", queueBuried},
	{"StartInATransaction", queueStartTx},
	{"HowTheyStand", queueStates},
	{"NoSuchQueue", queueMissing},
	{"ManyClaimersKeepTheLimits", queueRace},
	{"ClaimsOfOneMoment", queueRush},
}

// enqueue starts workflows that stand in a queue.
func (e *env) enqueue(l store.Line, w store.Wake, ids ...string) {
	for _, id := range ids {
		rs, err := e.st.Start(e.ctx, []store.New{{ID: id, Definition: order, Line: l, Place: pending(store.Mark{Step: "charge", Group: 1}, w)}})
		require.NoError(e, err)
		require.True(e, rs[0].Created)
	}
}

func (e *env) setQueue(q store.Queue) { require.NoError(e, e.st.SetQueue(e.ctx, q)) }

func (e *env) claimQueued(w store.WorkerID, limit int) store.QueueClaim {
	c, err := e.st.ClaimQueued(e.ctx, w, []store.Def{order}, limit)
	require.NoError(e, err)
	return c
}

// queued claims from queues and returns the ids.
func (e *env) queued(w store.WorkerID, limit int) []string {
	var ids []string
	for _, c := range e.claimQueued(w, limit).Rows {
		ids = append(ids, c.ID)
	}
	return ids
}

func queueApart(e *env) {
	w := e.worker()
	require.False(e, e.claimQueued(w, 10).Any, "there are no queues")
	e.enqueue(store.Line{Queue: "q", Key: "k", Priority: 3}, now, "a")
	require.Empty(e, e.claim(w))
	c := e.claimQueued(w, 10)
	require.True(e, c.Any)
	require.Len(e, c.Rows, 1)
	require.Equal(e, store.Line{Queue: "q", Key: "k", Priority: 3}, c.Rows[0].Line)
	require.Equal(e, 1, c.Rows[0].Mark.Attempt, "its attempt is counted")
	require.True(e, c.Rows[0].Due)
	require.Equal(e, w, e.get("a").Owner)
	require.Equal(e, c.Rows[0].Workflow, e.get("a"))

	e.start("free", pending(charge, now))
	require.Empty(e, e.queued(w, 10), "what is in no queue is not claimed from one")
	require.Equal(e, "free", e.claimOne(w).ID)
}

func queueOrder(e *env) {
	e.enqueue(store.Line{Queue: "q"}, ago(40*time.Second), "old")
	e.enqueue(store.Line{Queue: "q"}, ago(10*time.Second), "young")
	e.enqueue(store.Line{Queue: "q", Priority: 5}, now, "first")
	e.enqueue(store.Line{Queue: "q", Priority: 1}, now, "second")
	w := e.worker()
	require.Equal(e, []string{"first", "second"}, e.queued(w, 2))
	require.Equal(e, []string{"old", "young"}, e.queued(w, 10))
}

func queueBegun(e *env) {
	w := e.worker()
	e.enqueue(store.Line{Queue: "q"}, now, "a")
	a := e.claimQueued(w, 1).Rows[0]
	e.apply(w, a.Workflow, waiting(now), release)
	e.enqueue(store.Line{Queue: "q", Priority: store.MaxPriority}, ago(time.Hour), "b")
	require.Equal(e, []string{"a"}, e.queued(w, 1))
	require.Equal(e, []string{"b"}, e.queued(w, 1))
}

// queueAgeing: a level of priority is worth a minute of waiting, and no more.
func queueAgeing(e *env) {
	e.enqueue(store.Line{Queue: "q", Priority: 10}, now, "high")
	e.enqueue(store.Line{Queue: "q"}, ago(10*store.PriorityWorth+time.Second), "low")
	e.enqueue(store.Line{Queue: "q"}, ago(9*store.PriorityWorth), "lower")
	require.Equal(e, []string{"low", "high", "lower"}, e.queued(e.worker(), 10))
}

func queueDelay(e *env) {
	e.enqueue(store.Line{Queue: "q", Priority: store.MaxPriority}, in(time.Hour), "later")
	e.enqueue(store.Line{Queue: "q"}, now, "now")
	require.Equal(e, []string{"now"}, e.queued(e.worker(), 10))
}

func queueConcurrency(e *env) {
	e.setQueue(store.Queue{Name: "q", Concurrency: 3})
	e.enqueue(store.Line{Queue: "q"}, now, ids(5)...)
	v, w := e.worker(), e.worker()
	require.Len(e, e.queued(v, 2), 2)
	require.Len(e, e.queued(w, 10), 1)
	require.Empty(e, e.queued(v, 10))
	e.apply(w, e.owned(w)[0], completed)
	require.Len(e, e.queued(v, 10), 1)
}

// owned returns the workflows that w owns.
func (e *env) owned(w store.WorkerID) []store.Workflow {
	ps, err := e.st.Owned(e.ctx, w)
	require.NoError(e, err)
	var all []store.Workflow
	for _, p := range ps {
		all = append(all, e.get(p.ID))
	}
	return all
}

func queuePerWorker(e *env) {
	e.setQueue(store.Queue{Name: "q", PerWorker: 2})
	e.enqueue(store.Line{Queue: "q"}, now, ids(5)...)
	v, w := e.worker(), e.worker()
	require.Len(e, e.queued(v, 10), 2)
	require.Empty(e, e.queued(v, 10))
	require.Len(e, e.queued(w, 10), 2)
}

func queuePerKey(e *env) {
	e.setQueue(store.Queue{Name: "q", PerKey: 2})
	e.enqueue(store.Line{Queue: "q", Key: "k"}, ago(time.Minute), "k1", "k2", "k3")
	e.enqueue(store.Line{Queue: "q", Key: "l"}, now, "l1")
	e.enqueue(store.Line{Queue: "q"}, ago(30*time.Second), "n1", "n2", "n3")
	w := e.worker()
	require.ElementsMatch(e, []string{"k1", "k2", "n1", "n2", "n3", "l1"}, e.queued(w, 10), "those without a key are not limited by it")
	require.Empty(e, e.queued(e.worker(), 10))
	e.apply(w, e.get("k1"), completed)
	require.Equal(e, []string{"k3"}, e.queued(e.worker(), 10))
}

// queueManyKeys: however many of one key stand at the head, another key's go on.
func queueManyKeys(e *env) {
	e.setQueue(store.Queue{Name: "q", PerKey: 1})
	e.enqueue(store.Line{Queue: "q", Key: "a"}, ago(time.Hour), ids(40)...)
	e.enqueue(store.Line{Queue: "q", Key: "b"}, now, "b1", "b2")
	e.enqueue(store.Line{Queue: "q", Key: "c"}, now, "c1")
	w := e.worker()
	got := e.queued(w, 3)
	require.Len(e, got, 3)
	require.Subset(e, got, []string{"c1"})
	require.Empty(e, e.queued(w, 10))
}

func queueRate(e *env) {
	e.setQueue(store.Queue{Name: "q", Rate: 2, Period: time.Hour, Burst: 3})
	e.enqueue(store.Line{Queue: "q"}, now, ids(5)...)
	w := e.worker()
	c := e.claimQueued(w, 2)
	require.Len(e, c.Rows, 2)
	require.Zero(e, c.Next, "one more may begin")
	c = e.claimQueued(w, 10)
	require.Len(e, c.Rows, 1)
	require.InDelta(e, 30*time.Minute, c.Next, float64(time.Minute), "two an hour")
	require.Empty(e, e.queued(w, 10))
}

// queueRateBegun: whoever has begun goes on without paying again, also behind a
// backlog.
func queueRateBegun(e *env) {
	e.setQueue(store.Queue{Name: "q", Rate: 1, Period: time.Hour, Burst: 1})
	e.enqueue(store.Line{Queue: "q"}, ago(time.Minute), ids(30)...)
	w := e.worker()
	first := e.claimQueued(w, 10).Rows
	require.Len(e, first, 1)
	e.apply(w, first[0].Workflow, waiting(now), release)
	require.Equal(e, []string{first[0].ID}, e.queued(w, 2))
	require.Empty(e, e.queued(w, 2))
}

func queueRateFills(e *env) {
	e.setQueue(store.Queue{Name: "q", Rate: 1000, Period: time.Second, Burst: 1})
	e.enqueue(store.Line{Queue: "q"}, now, ids(3)...)
	w := e.worker()
	n := 0
	require.Eventually(e, func() bool { n += len(e.queued(w, 10)); return n == 3 }, patience, time.Millisecond)
}

func queuePaused(e *env) {
	e.enqueue(store.Line{Queue: "q"}, now, "a")
	require.NoError(e, e.st.PauseQueue(e.ctx, "q", "ann: provider down"))
	w := e.worker()
	require.Empty(e, e.queued(w, 10))
	before := e.queue("q")
	require.Equal(e, "ann: provider down", before.Note)
	e.near(before.PausedAt, 0)
	require.NoError(e, e.st.PauseQueue(e.ctx, "q", "bob"))
	require.Equal(e, before.PausedAt, e.queue("q").PausedAt, "it was paused before")
	require.NoError(e, e.st.ResumeQueue(e.ctx, "q"))
	require.Zero(e, e.queue("q").PausedAt)
	require.Empty(e, e.queue("q").Note)
	require.Equal(e, []string{"a"}, e.queued(w, 10))
}

// queue returns how a queue stands.
func (e *env) queue(name string) store.QueueState {
	all, err := e.st.Queues(e.ctx)
	require.NoError(e, err)
	for _, q := range all {
		if q.Name == name {
			return q
		}
	}
	e.Fatalf("no queue %q among %v", name, all)
	return store.QueueState{}
}

func queueChange(e *env) {
	e.setQueue(store.Queue{Name: "q", Concurrency: 1, Rate: 1, Period: time.Hour, Burst: 1})
	require.NoError(e, e.st.PauseQueue(e.ctx, "q", "ann"))
	e.enqueue(store.Line{Queue: "q"}, now, ids(5)...)
	e.setQueue(store.Queue{Name: "q", Concurrency: 1, Rate: 1, Period: time.Hour, Burst: 1})
	require.Equal(e, "ann", e.queue("q").Note, "a change of limits is no end of a pause")
	require.NoError(e, e.st.ResumeQueue(e.ctx, "q"))
	w := e.worker()
	require.Len(e, e.queued(w, 10), 1)
	e.setQueue(store.Queue{Name: "q", Concurrency: 3, Rate: 2, Period: time.Hour, Burst: 2})
	require.Empty(e, e.queued(w, 10), "a new rate is no gift of tokens")
	e.setQueue(store.Queue{Name: "q", Concurrency: 3})
	require.Len(e, e.queued(w, 10), 2)
	e.setQueue(store.Queue{Name: "q"})
	require.Len(e, e.queued(w, 10), 2)
	require.Equal(e, store.Queue{Name: "q"}, e.queue("q").Queue)
}

func queueWaiting(e *env) {
	e.setQueue(store.Queue{Name: "q", Concurrency: 1})
	e.enqueue(store.Line{Queue: "q"}, now, "a", "b")
	w := e.worker()
	a := e.claimQueued(w, 10).Rows[0]
	e.apply(w, a.Workflow, waiting(in(time.Hour)), release)
	require.Equal(e, []string{"b"}, e.queued(w, 10))
}

func queueCrash(e *env) {
	e.setQueue(store.Queue{Name: "q", Concurrency: 1})
	e.enqueue(store.Line{Queue: "q"}, now, "a", "b")
	w := e.workerFor(time.Microsecond)
	require.Equal(e, []string{"a"}, e.queued(w, 10))
	v := e.worker()
	require.Empty(e, e.queued(v, 10))
	e.bury(w)
	require.Empty(e, e.queued(v, 10), "it is buried, but nobody has taken over")
	require.Equal(e, 1, e.takeover(time.Second))
	require.Equal(e, []string{"a"}, e.queued(v, 10), "who has begun goes first")
}

func queueMail(e *env) {
	e.setQueue(store.Queue{Name: "q", Concurrency: 1})
	e.enqueue(store.Line{Queue: "q"}, now, "a", "b")
	w := e.worker()
	a := e.claimQueued(w, 1).Rows[0]
	e.apply(w, a.Workflow, waiting(never), release)
	require.Equal(e, []string{"b"}, e.queued(w, 10))
	e.send("a", "m")
	require.Empty(e, e.queued(w, 10), "there is no slot")
	require.Empty(e, e.claim(w))
	e.apply(w, e.get("b"), completed)
	c := e.claimQueued(w, 10)
	require.Len(e, c.Rows, 1)
	require.Equal(e, []string{"m"}, messageIDs(c.Rows[0].Inbox))
	require.False(e, c.Rows[0].Due)
}

// queueMailEarly: a signal does not bring forward a workflow that has not begun,
// unless it begins with waiting for one.
func queueMailEarly(e *env) {
	e.enqueue(store.Line{Queue: "q"}, in(time.Hour), "later")
	e.send("later", "m")
	rs, err := e.st.Start(e.ctx, []store.New{{ID: "waits", Definition: order, Line: store.Line{Queue: "q"}, Place: waiting(never)}})
	require.NoError(e, err)
	require.True(e, rs[0].Created)
	w := e.worker()
	require.Empty(e, e.queued(w, 10))
	e.send("waits", "m")
	require.Equal(e, []string{"waits"}, e.queued(w, 10))
}

func queueCancel(e *env) {
	cancel := func(id string) store.Message {
		return store.Message{WorkflowID: id, ID: "c", Kind: store.MessageCancel, Payload: []byte("{}")}
	}
	e.setQueue(store.Queue{Name: "q", Concurrency: 1})
	e.enqueue(store.Line{Queue: "q"}, now, "a", "b")
	require.NoError(e, e.st.PauseQueue(e.ctx, "q", "ann"))
	w := e.worker()
	require.Equal(e, store.SendAccepted, e.sendAs(cancel("b")))
	require.Equal(e, "b", e.claimOne(w).ID, "it has not begun: there is nothing to be careful about")
	e.apply(w, e.get("b"), completed)
	require.NoError(e, e.st.ResumeQueue(e.ctx, "q"))
	a := e.claimQueued(w, 10).Rows[0]
	require.Equal(e, "a", a.ID)
	e.apply(w, a.Workflow, waiting(never), release)
	require.NoError(e, e.st.PauseQueue(e.ctx, "q", "ann"))
	require.Equal(e, store.SendAccepted, e.sendAs(cancel("a")))
	require.Empty(e, e.claim(w), "what undoes steps keeps to the limits")
	require.Empty(e, e.queued(w, 10))
	require.NoError(e, e.st.ResumeQueue(e.ctx, "q"))
	require.Equal(e, []string{"a"}, e.queued(w, 10))
}

func queueDefinitions(e *env) {
	other := store.Def{Name: "refund", Version: 2}
	_, err := e.st.Start(e.ctx, []store.New{{ID: "r", Definition: other, Line: store.Line{Queue: "q"}, Place: pending(charge, ago(time.Hour))}})
	require.NoError(e, err)
	e.enqueue(store.Line{Queue: "q"}, now, "a")
	w := e.worker()
	require.Equal(e, []string{"a"}, e.queued(w, 1))
	require.Empty(e, e.queued(w, 1))
	c, err := e.st.ClaimQueued(e.ctx, w, []store.Def{other}, 1)
	require.NoError(e, err)
	require.Len(e, c.Rows, 1)
}

func queueBuried(e *env) {
	e.enqueue(store.Line{Queue: "q"}, now, "a")
	require.Empty(e, e.queued(e.deadWorker(), 10))
	require.Empty(e, e.queued(freshID(), 10))
}

func queueStartTx(e *env) {
	n := store.New{ID: "a", Definition: order, Line: store.Line{Queue: "fresh"}, Place: pending(charge, now)}
	e.inTx(func(tx store.Tx) {
		r, err := e.st.StartTx(e.ctx, tx, n)
		require.NoError(e, err)
		require.True(e, r.Created)
	})
	require.Equal(e, []string{"a"}, e.queued(e.worker(), 10))
	require.Equal(e, "fresh", e.queue("fresh").Name)
}

func queueStates(e *env) {
	q := store.Queue{Name: "q", Concurrency: 2, PerWorker: 2, PerKey: 1, Rate: 5, Period: time.Minute, Burst: 7}
	e.setQueue(store.Queue{Name: "a"})
	e.setQueue(q)
	e.enqueue(store.Line{Queue: "q"}, now, "w1", "w2", "w3")
	e.enqueue(store.Line{Queue: "q"}, ago(time.Minute), "w4")
	e.enqueue(store.Line{Queue: "q"}, in(time.Hour), "later")
	require.Len(e, e.queued(e.worker(), 1), 1)
	all, err := e.st.Queues(e.ctx)
	require.NoError(e, err)
	require.Len(e, all, 2)
	require.Equal(e, store.QueueState{Queue: store.Queue{Name: "a"}}, all[0])
	require.Equal(e, q, all[1].Queue)
	require.Equal(e, []int{1, 3, 1}, []int{all[1].Running, all[1].Waiting, all[1].Later})
	e.near(all[1].Oldest, 0)
}

func queueMissing(e *env) {
	require.ErrorIs(e, e.st.PauseQueue(e.ctx, "none", ""), store.ErrQueueNotFound)
	require.ErrorIs(e, e.st.ResumeQueue(e.ctx, "none"), store.ErrQueueNotFound)
}
