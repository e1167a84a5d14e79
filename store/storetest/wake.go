package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var wakeTests = []test{
	{"NeverLeavesItToAMessage", wakeNever},
	{"AfterCountsFromTheTransition", wakeAfter},
	{"AtItsTime", wakeAt},
	{"KeepLeavesTheTime", wakeKeep},
	{"KeepLeavesNoTime", wakeKeepNone},
	{"NotBeforeItsTime", wakeEarly},
}

func wakeNever(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, in(time.Hour))), waiting(never), release)
	require.Zero(e, wf.WakeAt)
	require.Empty(e, e.claim(w))
}

func wakeAfter(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(in(time.Hour)))
	require.WithinDuration(e, wf.UpdatedAt.Add(time.Hour), wf.WakeAt, time.Second)
	wf = e.apply(w, wf, waiting(now), release)
	require.WithinDuration(e, wf.UpdatedAt, wf.WakeAt, time.Second)
	require.True(e, e.claimOne(w).Due)
}

// wakeAt: a time stays what it is, whenever the transition is written; by every door.
func wakeAt(e *env) {
	at := time.Date(2400, 2, 29, 12, 0, 0, 123_456_000, time.UTC)
	wake := func(t time.Time) store.Wake { return store.Wake{Kind: store.WakeAt, At: t} }
	w := e.worker()
	require.Equal(e, at, e.start("started", waiting(wake(at))).WakeAt)
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(wake(at)), release, func(t *store.Transition) {
		t.Starts = []store.New{{ID: "child", Definition: order, Place: waiting(wake(at))}}
	})
	require.Equal(e, at, wf.WakeAt)
	require.Equal(e, at, e.get("child").WakeAt)
	require.Empty(e, e.claim(w))
	past := e.startAs(w, "past", pending(charge, never))
	e.apply(w, past, waiting(wake(time.Unix(-1, 0))), release)
	require.Equal(e, "past", e.claimOne(w).ID)
}

func wakeKeep(e *env) {
	w := e.worker()
	first := e.startAs(w, "a", pending(charge, in(time.Hour)))
	wf := e.apply(w, first, waiting(keep))
	require.False(e, wf.WakeAt.IsZero())
	require.Equal(e, first.WakeAt, wf.WakeAt)
}

func wakeKeepNone(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), waiting(keep))
	require.Zero(e, wf.WakeAt)
}

func wakeEarly(e *env) {
	e.start("a", waiting(in(time.Hour)))
	e.start("b", waiting(never))
	require.Empty(e, e.claim(e.worker()))
}
