// Package sqlite is the store for one machine: workflows live in one SQLite
// file, which any number of processes may use at once. It needs no server and
// no C compiler.
//
//	st, err := sqlite.Open(ctx, "orders.db") // creates and migrates the file
//
// # Guarantees
//
// A transaction that was answered is on the disk: the file has a write-ahead
// log and is flushed at every commit (synchronous=FULL). Every write begins
// with the write lock (BEGIN IMMEDIATE), so a guard that held goes on holding
// until the commit, and no transaction fails half way for a lock.
//
// The time is the process's clock, in microseconds, read once the lock is
// held. All processes on a file share the machine, and so the clock.
//
// # One writer
//
// SQLite has one writer at a time. Within a process writers queue, first come,
// first served; between processes they wait for the lock up to 5 seconds and
// then fail with store.ErrBusy, having written nothing. Readers wait for
// nobody. From this follows:
//
//   - Commit takes many transitions, since a flush costs more than all of
//     them, and one committer at a time is the most that is of use.
//   - The body of a CommitTx keeps every other writer waiting, in this process
//     and in others, until it returns or its limit has passed.
//   - A process that is stopped (not killed) inside a write transaction stops
//     the writers of all others until it goes on. There is no server that
//     could end its transaction.
//
// # The user's own tables
//
// They may live in the same file: InTx bodies write them in the transaction of
// the workflow's transition, and [Store.DB] gives a pool for everything else.
// The names workflow, step, inbox, worker, definition, schema_migrations and
// schema_info are taken. [Tx] makes a transaction of that pool portable.
//
// # Hints
//
// A listener hears of this process's Notify at once, and of other processes'
// commits within about 25 milliseconds, by looking at the file's change
// counter; within 100 milliseconds when the file has been quiet.
//
// # Caveats
//
// The file must be on a local disk: network file systems do not lock
// reliably. A reader that stays open for long keeps the log from being
// recycled, which then grows. The driver registers itself with database/sql
// under the name "sqlite3".
package sqlite
