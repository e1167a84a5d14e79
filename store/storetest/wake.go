package storetest

import (
	"time"

	"github.com/stretchr/testify/require"
)

var wakeTests = []test{
	{"NeverLeavesItToAMessage", wakeNever},
	{"AfterCountsFromTheTransition", wakeAfter},
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
