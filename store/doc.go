// Package store is the seam between the engine and a database: the contract,
// its records and its errors. Packages store/postgres and store/sqlite fulfil
// it, and package store/storetest holds them to it.
//
// # Two doors
//
// A workflow's row changes through two doors only. [Store.Commit] writes the
// transitions of many workflows in one transaction; [Store.CommitTx] writes one
// transition together with the user's own writes. Both are guarded: a
// transition says which owner and revision it believes in, and one whose belief
// is wrong changes nothing and is reported [Lost]. This compare-and-swap is
// what makes a late, paused or buried worker harmless.
//
// # Who writes what
//
// Only its owner writes a workflow's row, and only the owner's transitions,
// a claim and a release change its owner or revision, each adding one to the
// revision. Whatever anybody else wants of a workflow (a signal, a
// cancellation) is an insert into its inbox, which the owner takes up in its
// own transition.
//
// # Wake-ups are levels
//
// An inbox row is born fresh, and a claim looks for fresh rows of workflows
// that nobody owns. It stops being fresh only in a transition of an owner that
// has seen it (Seen or Consumed). So a message that arrives at any moment is
// either in its owner's memory or still fresh, and none is overlooked.
//
// # Time
//
// Leases, timers and message times are decided by the database's clock: the
// engine passes durations, never instants.
//
// # Errors
//
//	a name does not exist                          ErrNotFound
//	rolled back, the same call may succeed         ErrRetry
//	rolled back, a row is locked by somebody       ErrBusy (is also ErrRetry)
//	the answer was lost; it may have been applied  ErrUnsure
//	the schema does not fit this program           ErrSchema…
//	anything else                                  rolled back, and refused for good
package store
