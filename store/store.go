package store

import (
	"context"
	"reflect"
	"time"
)

// Store keeps workflows in a database. All methods are safe for concurrent use
// by any number of goroutines and processes, and all respect ctx.
type Store interface {
	Hot
	Workers
	Clients
	Operations
	Retention
	Census
	Queues
	Progress
	Forks
	Schedules
	Schema

	// TxType is the store's own transaction type, such as pgx.Tx. InTx bodies
	// may ask for it or for the portable Tx.
	TxType() reflect.Type

	// Limits says how the store likes to be used.
	Limits() Limits

	// Close waits for running calls and closes all connections. Calls made
	// afterwards, and a Listen under way, return ErrClosed.
	Close() error
}

// Limits is how a store likes to be used.
type Limits struct {
	Committers int // how many Commits may usefully be under way at once
	Batch      int // how many transitions or starts fit one call
}

// Hot is what is called for every step of every workflow.
type Hot interface {
	// Start inserts the workflows that do not exist yet and answers for each,
	// in the order given. A workflow with an Owner is inserted already owned.
	// The ids in one call are distinct.
	Start(ctx context.Context, news []New) ([]StartResult, error)

	// Commit writes the transitions of many workflows owned by w in one
	// transaction, each under its own guard, and answers for each in the order
	// given: one that is Lost writes nothing, the others stand. The ids in one
	// call are distinct. On any error none was written, except for ErrUnsure.
	// What a transition starts and sends is written if it is Applied, in the
	// same transaction.
	Commit(ctx context.Context, w WorkerID, ts []Transition) ([]Verdict, error)

	// CommitTx opens a transaction, locks the row and checks the guard; if it
	// holds, it runs body in the transaction and writes the transition that
	// body returns, all or nothing. If the guard does not hold it returns Lost
	// without running body. An error of body's rolls everything back and is
	// returned as it is, unless the database asks to try again (ErrRetry). The
	// transaction is ended by the database itself after limit, so that a paused
	// process cannot keep the row.
	CommitTx(ctx context.Context, w WorkerID, g Guard, limit time.Duration, body func(context.Context, Tx) (Transition, error)) (Verdict, error)

	// Claim makes w the owner of up to limit workflows of the given
	// definitions that nobody owns and that are due or have a fresh message,
	// oldest first, and returns them. Claiming a due workflow that has a mark
	// begins its next attempt: the attempt is counted in the same statement.
	// A buried worker claims nothing.
	Claim(ctx context.Context, w WorkerID, defs []Def, limit int) ([]Claimed, error)

	// Mail returns the fresh messages of workflows that w owns.
	Mail(ctx context.Context, w WorkerID) ([]Message, error)
}

// Workers is what a worker needs beside the hot path: its lease, the work of
// the dead, and certainty after a lost answer.
type Workers interface {
	// Join inserts a worker with a lease.
	Join(ctx context.Context, w Worker, lease time.Duration) error

	// Renew lengthens the lease of w and reports whether it is alive. A buried
	// worker is not revived, but one whose lease has run out unnoticed is. It
	// uses a connection of its own.
	Renew(ctx context.Context, w WorkerID, lease time.Duration) (alive bool, err error)

	// Leave buries w on its own wish and gives back what it owns, without
	// holding it against the workflows. It returns how many it gave back.
	Leave(ctx context.Context, w WorkerID) (released int, err error)

	// Bury marks every worker whose lease has run out as dead, and returns
	// their ids.
	Bury(ctx context.Context) ([]WorkerID, error)

	// Takeover gives back up to limit workflows whose owners are not among the
	// living, skipping rows that are locked. For a workflow that was executing
	// it counts a crash against the step under way; from the second on it is
	// claimed only after a pause that doubles from base. It returns how many it
	// gave back.
	Takeover(ctx context.Context, base time.Duration, limit int) (released int, err error)

	// Owned returns all that w owns.
	Owned(ctx context.Context, w WorkerID) ([]Position, error)

	// Load returns those of the workflows that w owns, as Claim would.
	Load(ctx context.Context, w WorkerID, ids []string) ([]Claimed, error)

	// ReadBack returns how the given workflows stand, waiting for whatever
	// commit is under way on them. Missing ones are left out.
	ReadBack(ctx context.Context, ids []string) ([]Position, error)

	// Release gives back workflows that w owns. For one whose attempt has not
	// begun, the attempt is not counted. A guard that does not hold is skipped.
	Release(ctx context.Context, w WorkerID, rs []Released) error
}

// Released is a workflow that its owner gives back.
type Released struct {
	Guard
	Begun bool // the body of its mark has begun, or its attempt was never counted
}

// Clients is what programs that start, steer and watch workflows need.
type Clients interface {
	// StartTx is Start for one workflow in a transaction of the caller's. The
	// workflow is never owned: whether it exists is up to the caller's commit.
	StartTx(ctx context.Context, tx Tx, n New) (StartResult, error)

	// Send puts messages into inboxes and answers for each in the order given.
	// No two of one call have the same workflow and id.
	Send(ctx context.Context, ms []Message) ([]SendResult, error)

	// SendTx is Send for one message in a transaction of the caller's: it is in the
	// inbox once that commits. What it answers is how the workflow stands then and
	// there: one that ends before the commit never sees the message.
	SendTx(ctx context.Context, tx Tx, m Message) (SendResult, error)

	// Get returns a workflow, or ErrNotFound.
	Get(ctx context.Context, id string) (Workflow, error)

	// Ended returns those of the workflows that have ended, and the ids of
	// those that do not exist.
	Ended(ctx context.Context, ids []string) (ended []Workflow, missing []string, err error)

	// History returns the recorded steps of a workflow and of its branches in
	// the order of their completion; none if it does not exist. Within one row
	// that is the order of its revisions; between rows that of EndedAt, then of
	// their ids. Of a branch it returns the branch's own.
	History(ctx context.Context, id string) ([]StepRecord, error)

	// Inbox returns the messages of a workflow that are not consumed, oldest
	// first.
	Inbox(ctx context.Context, id string) ([]Message, error)

	// List returns workflows in the order of their ids, without their Data.
	// Branches are hidden unless q asks for those of one root.
	List(ctx context.Context, q Query) ([]Workflow, error)

	// Workers returns the workers that are alive or were buried within the
	// last hour, the youngest first.
	Workers(ctx context.Context) ([]Worker, error)

	// PutDefinition records a definition. It returns ErrGraphChanged if that
	// version is recorded with another fingerprint.
	PutDefinition(ctx context.Context, d Definition) error

	// Now returns the database's time.
	Now(ctx context.Context) (time.Time, error)

	// Notify tells other processes that there is something on a topic. It is
	// a hint: nothing is lost when it is.
	Notify(ctx context.Context, t Topic) error

	// Listen calls heard for each hint from any process, this one included,
	// until ctx is done, reconnecting by itself. Hints may be merged, late or
	// lost.
	Listen(ctx context.Context, heard func(Topic)) error
}

// Topic is what a hint is about.
type Topic uint8

const (
	// TopicReady says that there may be something to claim or mail to read.
	TopicReady Topic = iota + 1

	// TopicEnded says that workflows have ended.
	TopicEnded
)

// Schema is the database's schema and its migrations.
type Schema interface {
	// Migrate brings the schema up to date under a lock, so that any number of
	// processes may call it at once, and returns what it applied. It does
	// nothing when there is nothing to do.
	Migrate(ctx context.Context) ([]Migration, error)

	// Migrations returns all migrations that this program carries and when
	// each was applied.
	Migrations(ctx context.Context) ([]Migration, error)

	// Check returns nil if this program may work on the schema, else one of
	// the ErrSchema errors with the command that helps.
	Check(ctx context.Context) error
}

// Migration is one step of the schema.
type Migration struct {
	Version   int
	Name      string
	AppliedAt time.Time // zero if it is not applied
}
