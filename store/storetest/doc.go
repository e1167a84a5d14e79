// Package storetest holds stores to the contract of package store: one suite
// that every store passes, and a checker of what must be true of any store at
// any time.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// # How the suite works
//
// It knows a store only through its interface, so it holds no SQL of any
// dialect but for a few statements that every database takes. Each test has a
// store of its own and runs in parallel to the others. Time is never waited
// for: leases of a microsecond are over at once, timers are set into the past
// or an hour ahead. Each test ends with [Check].
package storetest
