// Package enginetest helps to test workflows: without waiting, without the
// systems they call, and with a crash at every point where one can happen.
//
// # Time
//
// A [Clock] stands still. Given to the SQLite store as its clock it decides leases,
// timers and deadlines, and [Clock.Finish] jumps from one timer to the next until
// a workflow has ended, so a wait of 48 hours takes a millisecond:
//
//	clock := enginetest.NewClock()
//	st, err := sqlite.Open(ctx, path, sqlite.WithClock(clock.Now))
//	eng, err := engine.New(st, engine.Config{Lease: enginetest.LongLease})
//	…
//	info, err := clock.Finish(ctx, eng, st, "order-42")
//
// # Bodies
//
// [Bodies] stands in for what steps call. It answers for the steps that it is told
// about, leaves the others alone, and remembers each call with its key and input:
//
//	var bodies enginetest.Bodies
//	bodies.Fail("charge-card", errDown, errDown) // then the real body
//	eng, err := engine.New(st, engine.Config{Around: bodies.Around})
//
// # Crashes
//
// [CrashEverywhere] runs a workflow once without a crash and notes every point at
// which a process could die: before and after each call of the store, inside each
// transaction, and before and after each body. Then it runs it once more for each
// point, each time with a database of its own: there the worker dies, as by
// kill -9, another takes over, and the effects must be those of the first run.
// [CrashAt] does so at one point. A dead worker's calls are refused from that
// moment on, so it can write nothing more; its lease runs out by itself.
//
// What polls, such as renewals, sweeps, claims that bring nothing and the waiting for
// an end, is left out: how often it comes depends on the time.
//
// # Diagrams
//
// [Diagram] compares the drawing of a definition with a file that is checked in, so
// that a change of the graph is seen in review.
package enginetest
