package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var claimTests = []test{
	{"TakesWhatIsDue", claimDue},
	{"OldestFirst", claimOldest},
	{"AtMostTheLimit", claimLimit},
	{"OnlyTheGivenDefinitions", claimDefinitions},
	{"NothingAskedNothingGiven", claimNothing},
	{"CountsTheAttempt", claimAttempt},
	{"RetryPauseBecomesPending", claimRetry},
	{"CompensatingStays", claimCompensating},
	{"TimerWithoutMarkStaysWaiting", claimTimer},
	{"ByMessageCountsNothing", claimByMessage},
	{"MessageAndDueIsDue", claimBoth},
	{"KeepsTheWakeTime", claimKeepsWake},
	{"SeesAllThatIsNotConsumed", claimInbox},
	{"SeenMessagesWakeNobody", claimSeen},
	{"HeldByMessage", claimHeld},
	{"EndedIsNotClaimed", claimEnded},
	{"OwnedIsNotClaimed", claimOwned},
	{"BuriedWorkerClaimsNothing", claimBuried},
	{"UnknownWorkerClaimsNothing", claimUnknown},
	{"UnknownDefinitionsDoNotBlock", claimUnblocked},
}

func claimDue(e *env) {
	w := e.worker()
	p := pending(charge, now)
	p.Data, p.Cursor = []byte("data"), []byte("cursor")
	before := e.start("a", p)
	c := e.claimOne(w)
	require.True(e, c.Due)
	require.Empty(e, c.Inbox)
	require.Equal(e, w, c.Owner)
	require.EqualValues(e, 2, c.Revision)
	require.Equal(e, []byte("data"), c.Data)
	require.Equal(e, []byte("cursor"), c.Cursor)
	require.False(e, c.UpdatedAt.Before(before.UpdatedAt))
	require.Equal(e, e.get("a"), c.Workflow, "what is returned is the row after the claim")
	require.Empty(e, e.claim(w), "it is claimed once")
}

func claimOldest(e *env) {
	for i, id := range []string{"c", "a", "d", "b"} {
		e.start(id, pending(charge, ago(time.Duration(10-i)*time.Minute)))
	}
	var got []string
	for range 2 {
		cs, err := e.st.Claim(e.ctx, e.worker(), []store.Def{order}, 2)
		require.NoError(e, err)
		for _, c := range cs {
			got = append(got, c.ID)
		}
	}
	require.ElementsMatch(e, []string{"c", "a"}, got[:2])
	require.ElementsMatch(e, []string{"d", "b"}, got[2:])
}

func claimLimit(e *env) {
	for _, id := range ids(5) {
		e.start(id, pending(charge, now))
	}
	w := e.worker()
	for _, want := range []int{3, 2, 0} {
		cs, err := e.st.Claim(e.ctx, w, []store.Def{order}, 3)
		require.NoError(e, err)
		require.Len(e, cs, want)
	}
}

func claimDefinitions(e *env) {
	defs := []store.Def{{Name: "order", Version: 1}, {Name: "order", Version: 2}, {Name: "refund", Version: 1}}
	for i, d := range defs {
		_, err := e.st.Start(e.ctx, []store.New{{ID: ids(3)[i], Definition: d, Place: pending(charge, now)}})
		require.NoError(e, err)
		e.send(ids(3)[i], "m")
	}
	w := e.worker()
	require.Empty(e, e.claim(w, store.Def{Name: "order", Version: 3}, store.Def{Name: "other", Version: 1}))
	cs := e.claim(w, defs[1])
	require.Len(e, cs, 1)
	require.Equal(e, defs[1], cs[0].Definition)
	require.Len(e, e.claim(w, defs...), 2)
}

func claimNothing(e *env) {
	e.start("a", pending(charge, now))
	w := e.worker()
	cs, err := e.st.Claim(e.ctx, w, nil, 10)
	require.NoError(e, err)
	require.Empty(e, cs)
	cs, err = e.st.Claim(e.ctx, w, []store.Def{order}, 0)
	require.NoError(e, err)
	require.Empty(e, cs)
}

func claimAttempt(e *env) {
	e.start("a", pending(store.Mark{Step: "charge", Group: 3, Attempt: 4, Failures: 2, Crashes: 1}, now))
	c := e.claimOne(e.worker())
	require.Equal(e, store.Mark{Step: "charge", Group: 3, Attempt: 5, Failures: 2, Crashes: 1}, c.Mark)
	require.Equal(e, store.Pending, c.Status)
}

func claimRetry(e *env) {
	p := waiting(now)
	p.Mark = charge
	e.start("a", p)
	c := e.claimOne(e.worker())
	require.Equal(e, store.Pending, c.Status)
	require.Equal(e, 2, c.Mark.Attempt)
}

func claimCompensating(e *env) {
	p := pending(charge, now)
	p.Status = store.Compensating
	e.start("a", p)
	c := e.claimOne(e.worker())
	require.Equal(e, store.Compensating, c.Status)
	require.Equal(e, 2, c.Mark.Attempt)
}

func claimTimer(e *env) {
	e.start("a", waiting(now))
	c := e.claimOne(e.worker())
	require.True(e, c.Due)
	require.Equal(e, store.Waiting, c.Status)
	require.Zero(e, c.Mark)
}

func claimByMessage(e *env) {
	p := waiting(in(time.Hour))
	p.Mark = charge
	e.start("a", p)
	e.send("a", "m")
	c := e.claimOne(e.worker())
	require.False(e, c.Due)
	require.Equal(e, store.Waiting, c.Status)
	require.Equal(e, charge, c.Mark, "the attempt has not begun")
	require.EqualValues(e, 2, c.Revision)
}

func claimBoth(e *env) {
	p := waiting(now)
	p.Mark = charge
	e.start("a", p)
	e.send("a", "m")
	c := e.claimOne(e.worker())
	require.True(e, c.Due)
	require.Equal(e, 2, c.Mark.Attempt)
	require.Len(e, c.Inbox, 1)
}

func claimKeepsWake(e *env) {
	wf := e.start("a", waiting(in(time.Hour)))
	e.send("a", "m")
	require.Equal(e, wf.WakeAt, e.claimOne(e.worker()).WakeAt)
}

// claimInbox: the new owner is told of every message that is not consumed,
// those that an owner before it has seen included, oldest first.
func claimInbox(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	for _, m := range []string{"m3", "m1", "m2", "m4"} {
		e.send("a", m)
	}
	e.apply(w, wf, waiting(now), release, func(t *store.Transition) {
		t.Seen = []string{"m3"}
		t.Consumed = []store.Consumed{{MessageID: "m2"}}
	})
	c := e.claimOne(w)
	require.Equal(e, []string{"m3", "m1", "m4"}, messageIDs(c.Inbox))
	m := c.Inbox[0]
	e.near(m.SentAt, 0)
	want := signal("a", "m3")
	want.SentAt = m.SentAt
	require.Equal(e, want, m)
}

func claimSeen(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m1")
	e.apply(w, wf, waiting(never), release, func(t *store.Transition) { t.Seen = []string{"m1"} })
	require.Empty(e, e.claim(w), "its owner has seen the message and chose to wait")
	e.send("a", "m2")
	require.Equal(e, []string{"m1", "m2"}, messageIDs(e.claimOne(w).Inbox))
}

func claimHeld(e *env) {
	e.start("a", store.Place{Status: store.Held, State: "H", Mark: charge})
	require.Empty(e, e.claim(e.worker()))
	e.send("a", "m")
	c := e.claimOne(e.worker())
	require.Equal(e, store.Held, c.Status)
	require.Equal(e, charge, c.Mark)
}

func claimEnded(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	e.apply(w, wf, completed)
	require.Empty(e, e.claim(w), "its message is fresh, but it has ended")
}

func claimOwned(e *env) {
	e.startAs(e.worker(), "a", pending(charge, now))
	e.send("a", "m")
	require.Empty(e, e.claim(e.worker()))
}

func claimBuried(e *env) {
	wf := e.start("a", pending(charge, now))
	require.Empty(e, e.claim(e.deadWorker()))
	require.Equal(e, wf, e.get("a"))
}

func claimUnknown(e *env) {
	wf := e.start("a", pending(charge, now))
	require.Empty(e, e.claim(freshID()))
	require.Equal(e, wf, e.get("a"))
}

// claimUnblocked: any number of older workflows that the worker does not know
// do not stand before the one that it does.
func claimUnblocked(e *env) {
	for _, id := range ids(50) {
		_, err := e.st.Start(e.ctx, []store.New{{ID: id, Definition: store.Def{Name: "unknown", Version: 1}, Place: pending(charge, ago(time.Hour))}})
		require.NoError(e, err)
		e.send(id, "m")
	}
	e.start("mine", pending(charge, now))
	e.start("mailed", waiting(never))
	e.send("mailed", "m")
	cs, err := e.st.Claim(e.ctx, e.worker(), []store.Def{order}, 2)
	require.NoError(e, err)
	require.Len(e, cs, 2)
}
