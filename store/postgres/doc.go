// Package postgres keeps workflows in PostgreSQL, version 14 or newer. It
// fulfils the contract of package store.
//
//	st, err := postgres.Open(ctx, "postgres://ann@db.example/shop")
//	...
//	defer st.Close()
//	applied, err := st.Migrate(ctx)
//
// # URL and options
//
// [Open] takes what PostgreSQL's own tools take, written as a URL that begins
// with postgres:// or postgresql://, and two parameters more: pool_max_conns,
// the size of the pool (10), and schema, the name of the schema (pawl).
// [WithPool] and [WithSchema] say the same in Go and beat the URL.
//
// A store holds up to two connections beside its pool: one renews the lease of
// the worker, so that a lease is never lost to a pool that is busy, and one
// listens for hints while [Store.Listen] runs. A pool of one is enough to work.
//
// # The schema, and who may do what
//
// The tables live in a schema of their own. The file schema.sql at the root of
// the module shows them as they are; [Store.Migrate] makes them, under a lock,
// in one transaction. There are no triggers, no foreign keys, no sequences and
// no functions. The user's own tables, search_path and settings are left alone.
//
// Migrating and running may be two roles. The one that migrates needs CREATE
// on the database, or owns the schema. The one that runs workflows needs no
// right to change tables:
//
//	GRANT USAGE ON SCHEMA pawl TO runner;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO runner;
//
// To have tables of later migrations covered too, the migrating role says once
//
//	ALTER DEFAULT PRIVILEGES IN SCHEMA pawl
//	      GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO runner;
//
// # Rolling deploys
//
// Each program carries a generation: the number of its newest migration. The
// schema says which is the lowest generation that may use it. A migration that
// only adds leaves that number as it is, so that older programs work on while
// newer ones are rolled out; one that they could not live with raises it, and
// from then on [Store.Check] and [Store.Migrate] of an older program return
// store.ErrSchemaAhead. A newer program on an older schema gets
// store.ErrSchemaBehind, and the command that helps.
//
// # Transactions
//
// Each call that writes is one transaction and one round trip: BEGIN, the
// settings of the transaction, the statements and COMMIT are sent together.
// [Store.CommitTx], which runs the user's own statements in between, takes one
// round trip before them and one after; [Store.Start] takes a second one if it
// meets workflows that were there before.
//
// Every transaction says that it is READ COMMITTED. Nothing is set for longer
// than a transaction, no lock is held beyond one, and names of tables are
// written out with their schema; so a pooler that gives each transaction another
// connection does no harm, except that hints (LISTEN) do not pass through it and
// polling does their work.
//
// A batch whose row is locked by somebody else for a second is rolled back as
// store.ErrBusy, for its caller to split. An answer that is lost after COMMIT
// was sent is store.ErrUnsure, and one that says that COMMIT had not had its
// turn is store.ErrRetry.
//
// # Plans that do not depend on statistics
//
// A server makes the plan of a prepared statement once and keeps it. One that
// was made while the tables were empty would read them whole, for ever after.
// So the statements of the hot path look each row up by its key and change it
// where they found it (by its ctid, with the guard tested again), which leaves
// the planner no choice; their transactions switch sequential scans off and
// ask for the generic plan. A test reads the plan of each, on tables that are
// empty, full, analysed and never analysed.
//
// The look-ups go in the order of the keys. So two batches that share rows lock
// them in the same order, and never deadlock.
//
// # Buckets
//
// Every key begins with a bucket: the FNV-1a hash of the workflow's id modulo
// the number of buckets, which is chosen when the schema is made, by
// [WithBuckets], and never changes. It is 1 unless said otherwise, which is
// right for one server. With more, a batch is one statement for each bucket in
// it, all in one transaction and one round trip.
//
// # Time
//
// The server's clock decides: leases and the time of a message by
// clock_timestamp(), everything else by the moment at which the statement
// arrived, which a wait for a lock may precede by at most a second.
package postgres
