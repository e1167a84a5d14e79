package store

import (
	"encoding/hex"
	"time"
)

// WorkerID names one worker: one incarnation of a process. It is a UUID of
// version 7, so ids sort by their time of birth. The zero value is nobody.
type WorkerID [16]byte

// IsZero reports whether w is nobody.
func (w WorkerID) IsZero() bool { return w == WorkerID{} }

// String returns the id in the usual form of a UUID.
func (w WorkerID) String() string {
	h := hex.EncodeToString(w[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Status says how a workflow stands. It is stored as its text.
type Status string

// The statuses of a workflow.
const (
	Pending      Status = "PENDING"      // ready or executing
	Waiting      Status = "WAITING"      // for a timer, a signal or the end of a retry pause
	Compensating Status = "COMPENSATING" // undoing its steps, newest first
	Held         Status = "HELD"         // needs a person; not an end
	Completed    Status = "COMPLETED"    // ended, its effects kept
	Compensated  Status = "COMPENSATED"  // ended, its effects undone
	Failed       Status = "FAILED"       // ended, nothing undone on purpose
	Terminated   Status = "TERMINATED"   // stopped by force, nothing undone
	Expired      Status = "EXPIRED"      // a tombstone: only the id is left
)

// Ended reports whether s is an end: no further transition follows by itself.
func (s Status) Ended() bool {
	switch s {
	case Completed, Compensated, Failed, Terminated, Expired:
		return true
	}
	return false
}

// StepStatus says how a step ended. It is stored as its text.
type StepStatus string

// The statuses of a recorded step. A step that is under way has no record: its
// mark is in the workflow's row.
const (
	StepDone    StepStatus = "DONE"    // it has a result
	StepFailed  StepStatus = "FAILED"  // it has had no effect; of an undo: somebody has skipped it
	StepUnknown StepStatus = "UNKNOWN" // it may have had its effect
)

// Def names one version of a definition.
type Def struct {
	Name    string
	Version int
}

// Place is where a workflow stands: what a transition writes.
type Place struct {
	Status  Status
	State   string
	Mark    Mark   // the step that is under way; zero if none
	Awaits  string // the signal that a WAITING workflow waits for, if any
	Wake    Wake   // when it is to be looked at by itself
	Data    []byte // the user's data; nil leaves it as it is
	Cursor  []byte // what else the state machine needs to go on; nil for nothing
	Error   string // the last failure or the reason of a HELD, for people; "" for none
	Pivoted bool   // the point of no return is behind it
}

// Mark is the durable sign that a step has begun: it is written before the
// body runs, so a crash is never mistaken for "not begun".
type Mark struct {
	Step     string // the step's name; "" for no mark
	Group    int    // its attempt group, from 1
	Attempt  int    // attempts begun in this group, this one included
	Failures int    // attempts of this group that ended in a failure
	Crashes  int    // attempts begun in a row that ended without a word
}

// Wake says when a workflow is to be claimed by itself, on the database's
// clock.
type Wake struct {
	Kind  WakeKind
	After time.Duration // for WakeAfter
	At    time.Time     // for WakeAt
}

// WakeKind is one of the ways to be woken.
type WakeKind uint8

const (
	// WakeNever leaves it to a message.
	WakeNever WakeKind = iota

	// WakeAfter wakes it once Wake.After has passed since the transition.
	WakeAfter

	// WakeKeep leaves the time as it was.
	WakeKeep

	// WakeAt wakes it at Wake.At; at once if that has passed.
	WakeAt
)

// Guard is what a transition believes of the row it changes, beside the owner.
type Guard struct {
	ID       string
	Revision int64
}

// Transition is one guarded click of a workflow. All of it is written in one
// transaction, or nothing is.
type Transition struct {
	Guard
	Place

	// Release gives the workflow back: afterwards nobody owns it.
	Release bool

	Steps    []StepRecord // the steps that ended
	Consumed []Consumed   // the messages that caused it
	Seen     []string     // ids of messages that its owner now knows of

	// Starts are branches and children to insert, to be claimed by anybody:
	// their Owner is not looked at. One whose id is there already is left as it
	// is. The ids in one call are distinct.
	Starts []New

	// Sends are messages for the inboxes of others. One whose id is there
	// already is left as it is; one for a workflow that does not exist or has
	// ended is dropped.
	Sends []Message
}

// Consumed says that a message has been taken up, and how.
type Consumed struct {
	MessageID string
	Answer    string // for the sender of a request; "" if there is nothing to say
}

// Verdict is what became of one transition.
type Verdict uint8

const (
	// Lost means that the guard did not hold: nothing was written.
	Lost Verdict = iota

	// Applied means that it was written: the revision is one higher.
	Applied
)

// StepRecord is a step that ended. Step, group and item are unique in a
// workflow's row.
type StepRecord struct {
	Step     string
	Group    int
	Item     int    // which item of many it worked on, from 1; 0 if there are no items
	Branch   string // the path of the branch that recorded it, "" for the root. Set by the store
	Status   StepStatus
	Attempt  int           // how many attempts were begun
	Input    []byte        // kept if the step can be undone or its outcome is unknown
	Output   []byte        // nil unless StepDone
	Error    string        // the last failure, if any
	Took     time.Duration // of the last attempt, by the worker's clock
	Revision int64         // the workflow's revision that it was recorded with: the order of completion. Set by the store
	EndedAt  time.Time     // by the database's clock. Set by the store
}

// New is a workflow to be started.
type New struct {
	ID         string
	Definition Def
	InputHash  [16]byte // tells a duplicate start from a conflicting one
	Owner      WorkerID // the worker that runs it at once; zero leaves it to a claim
	Parent     string   // the id of the row that is told of its end; "" for nobody
	Line                // one in a queue has no Owner
	Place
}

// StartResult is the answer to one start.
type StartResult struct {
	Created bool // false if the id was there before

	// How the workflow of that id was started, and how it stands now.
	Definition Def
	InputHash  [16]byte
	Status     Status
	Revision   int64 // 1 for a new one
}

// Workflow is a workflow's row.
type Workflow struct {
	ID         string
	Definition Def
	Place                // Wake is not filled in: see WakeAt
	WakeAt     time.Time // zero if it does not wake by itself
	Revision   int64
	Owner      WorkerID
	Parent     string // the id of the row that is told of its end; "" for nobody
	Line
	InputHash [16]byte
	CreatedAt time.Time
	UpdatedAt time.Time // of the last transition, claim or release
	EndedAt   time.Time // zero unless ended
}

// MessageKind says what a message asks for.
type MessageKind string

const (
	// MessageSignal carries a value for a workflow that waits for its name.
	MessageSignal MessageKind = "signal"

	// MessageCancel asks for the rollback.
	MessageCancel MessageKind = "cancel"

	// MessageVerb carries what a person wants of the workflow: Name is the verb.
	MessageVerb MessageKind = "verb"

	// MessageBranch tells a root that its branch, which Name is the path of,
	// has ended.
	MessageBranch MessageKind = "branch"

	// MessageChild tells a parent that its child, which Name is the id of, has
	// ended.
	MessageChild MessageKind = "child"
)

// Message is a row of a workflow's inbox.
type Message struct {
	WorkflowID string
	ID         string // unique in its workflow: a second one of that id is a duplicate
	Kind       MessageKind
	Name       string    // the signal's name, or who has ended
	Payload    []byte    // the signal's value, the reason of a cancellation, or how it ended
	SentAt     time.Time // by the database's clock. Set by the store
}

// SendResult is what became of one message.
type SendResult uint8

const (
	// SendAccepted means that it is in the inbox.
	SendAccepted SendResult = iota + 1

	// SendDuplicate means that a message of that id was there before.
	SendDuplicate

	// SendNotFound means that there is no such workflow.
	SendNotFound

	// SendEnded means that the workflow has ended.
	SendEnded

	// SendPastPivot means that a cancellation came after the point of no return.
	SendPastPivot
)

// Claimed is a workflow with all that its new owner must know.
type Claimed struct {
	Workflow
	Due   bool      // its wake time has come
	Inbox []Message // every message that is not consumed, oldest first
}

// Position is who owns a workflow, and at which revision.
type Position struct {
	ID       string
	Revision int64
	Owner    WorkerID
}

// Worker is a worker's row.
type Worker struct {
	ID          WorkerID
	Host        string
	PID         int
	Definitions []Def // what it knows and so may claim
	StartedAt   time.Time
	ExpiresAt   time.Time // the end of its lease
	DeadAt      time.Time // zero while it is not buried
}

// Alive reports whether nobody has buried the worker. Its lease may have run
// out all the same.
func (w Worker) Alive() bool { return w.DeadAt.IsZero() }

// Definition is a registered definition.
type Definition struct {
	Def
	Fingerprint string // of the graph
	Graph       []byte // the graph as JSON
}

// Query selects workflows. A zero field does not restrict, but branches are
// left out unless they are asked for.
type Query struct {
	BranchesOf string // the branches of this root, and nothing else
	Definition string
	Statuses   []Status
	Limit      int    // how many at most; 100 if zero
	After      string // the id that the page before ended with
}
