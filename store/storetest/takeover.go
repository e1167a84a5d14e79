package storetest

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var takeoverTests = []test{
	{"CountsACrash", takeoverCrash},
	{"PauseDoubles", takeoverPauses},
	{"WithoutMark", takeoverWithoutMark},
	{"WaitingKeepsItsTime", takeoverWaiting},
	{"Held", takeoverHeld},
	{"OnlyOfTheDead", takeoverLiving},
	{"OfTheUnknown", takeoverOrphan},
	{"AtMostTheLimit", takeoverLimit},
	{"Once", takeoverOnce},
	{"ForgetsMailOfTheEnded", takeoverEnded},
}

func takeoverCrash(e *env) {
	for i, status := range []store.Status{store.Pending, store.Compensating} {
		w := e.worker()
		p := pending(store.Mark{Step: "charge", Group: 2, Attempt: 3, Failures: 4}, in(time.Hour))
		p.Status, p.Data, p.Cursor, p.Error = status, []byte("data"), []byte("cursor"), "declined"
		wf := e.startAs(w, strconv.Itoa(i), p)
		e.expire(w)
		require.Equal(e, 1, e.takeover(time.Hour))
		got := e.get(wf.ID)
		require.WithinDuration(e, got.UpdatedAt, got.WakeAt, time.Second, "there is no pause after the first crash")
		want := wf
		want.Owner, want.Revision, want.Mark.Crashes = store.WorkerID{}, 2, 1
		want.WakeAt, want.UpdatedAt = got.WakeAt, got.UpdatedAt
		require.Equal(e, want, got)
		c := e.claimOne(e.worker())
		require.Equal(e, 4, c.Mark.Attempt)
		require.Equal(e, 1, c.Mark.Crashes)
	}
}

func takeoverPauses(e *env) {
	base := 10 * time.Second
	pauses := []time.Duration{0, base, 2 * base, 4 * base, time.Minute, time.Minute}
	w := e.worker()
	for crashes := range pauses {
		p := pending(store.Mark{Step: "charge", Group: 1, Attempt: crashes + 1, Crashes: crashes}, never)
		e.startAs(w, strconv.Itoa(crashes), p)
	}
	e.expire(w)
	require.Equal(e, len(pauses), e.takeover(base))
	for crashes, pause := range pauses {
		got := e.get(strconv.Itoa(crashes))
		require.Equal(e, crashes+1, got.Mark.Crashes)
		require.WithinDuration(e, got.UpdatedAt.Add(pause), got.WakeAt, time.Second, "after %d crashes", crashes+1)
	}
	require.Len(e, e.claim(e.worker()), 1)
}

// takeoverWithoutMark: no step was under way, so there is none to blame.
func takeoverWithoutMark(e *env) {
	w := e.worker()
	e.startAs(w, "a", pending(store.Mark{}, never))
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Hour))
	got := e.get("a")
	require.Zero(e, got.Mark)
	require.WithinDuration(e, got.UpdatedAt, got.WakeAt, time.Second)
	require.True(e, e.claimOne(e.worker()).Due)
}

func takeoverWaiting(e *env) {
	w := e.worker()
	marked := waiting(in(time.Hour))
	marked.Mark = charge
	before := []store.Workflow{
		e.startAs(w, "timer", waiting(in(time.Hour))),
		e.startAs(w, "signal", waiting(never)),
		e.startAs(w, "pause", marked),
	}
	e.expire(w)
	require.Equal(e, 3, e.takeover(time.Second))
	for _, want := range before {
		got := e.get(want.ID)
		want.Owner, want.Revision, want.UpdatedAt = store.WorkerID{}, 2, got.UpdatedAt
		require.Equal(e, want, got)
	}
	require.Empty(e, e.claim(e.worker()))
}

func takeoverHeld(e *env) {
	w := e.worker()
	want := e.startAs(w, "a", store.Place{Status: store.Held, State: "H", Mark: charge})
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Second))
	got := e.get("a")
	want.Owner, want.Revision, want.UpdatedAt = store.WorkerID{}, 2, got.UpdatedAt
	require.Equal(e, want, got)
}

func takeoverLiving(e *env) {
	living, late := e.worker(), e.workerFor(time.Microsecond)
	a := e.startAs(living, "a", pending(charge, never))
	b := e.startAs(late, "b", pending(charge, never))
	require.Zero(e, e.takeover(time.Second), "one lives, the other is not buried")
	require.Equal(e, a, e.get("a"))
	require.Equal(e, b, e.get("b"))
	e.bury(late)
	require.Equal(e, 1, e.takeover(time.Second))
	require.Equal(e, a, e.get("a"))
	require.True(e, e.get("b").Owner.IsZero())
}

// takeoverOrphan: an owner of whom there is no row is as good as dead.
func takeoverOrphan(e *env) {
	e.startAs(freshID(), "a", pending(charge, never))
	require.Equal(e, 1, e.takeover(time.Second))
	require.Equal(e, 1, e.claimOne(e.worker()).Mark.Crashes)
}

func takeoverLimit(e *env) {
	w := e.worker()
	for _, id := range ids(5) {
		e.startAs(w, id, pending(charge, never))
	}
	e.expire(w)
	for _, want := range []int{2, 2, 1, 0} {
		n, err := e.st.Takeover(e.ctx, time.Second, 2)
		require.NoError(e, err)
		require.Equal(e, want, n)
	}
}

func takeoverOnce(e *env) {
	w := e.worker()
	e.startAs(w, "a", pending(charge, never))
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Second))
	got := e.get("a")
	require.Zero(e, e.takeover(time.Second))
	require.Equal(e, got, e.get("a"))
}

// takeoverEnded: messages that came too late for an ended workflow do not stay
// fresh for ever, but go on deduplicating.
func takeoverEnded(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	e.apply(w, wf, completed)
	e.startAs(w, "b", waiting(never))
	e.send("b", "m")
	require.Zero(e, e.takeover(time.Second))
	require.Equal(e, store.SendDuplicate, e.sendAs(signal("a", "m")))
	require.Equal(e, []string{"m"}, e.mail(w), "the others stay fresh")
}
