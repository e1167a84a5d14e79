package statemachine

import (
	"time"

	"github.com/pawlhq/pawl/step"
)

// Command is what the engine must do. All but RunStep and Wake are written in
// the same transaction as the cursor they came with. Of RunStep and Wake at most
// one comes out of a call, always last.
type Command interface{ command() }

type (
	// Record keeps how a step ended.
	Record struct {
		Step    string
		Group   int
		Item    int // from 1; 0 if there are none
		Outcome Outcome
		Attempt int
		In      []byte // nil if nobody will ever ask
		Out     []byte
		Error   string
	}

	// RunStep runs an attempt of the step that the cursor's Mark names, after
	// the cursor is durable.
	RunStep struct {
		Spec   step.Spec
		Key    step.Key
		In     []byte      // nil for an undo
		Undoes step.Undoes // for an undo
		Ask    bool        // do not run it, but ask Spec.Ask what became of the attempts before: bring Probed
	}

	// Wake brings TimerFired, or Resumed if a step is marked, once After has
	// passed since the cursor became durable; or at At, if that is not zero.
	Wake struct {
		After time.Duration
		At    time.Time
	}

	// StartBranch starts a branch at Cursor, whose step is to be run.
	StartBranch struct{ Cursor Cursor }

	// StopBranch gives CancelAsked to a branch, unless it has ended.
	StopBranch struct{ Path, Reason string }

	// EndBranch gives an event to the root of a branch, which has ended.
	EndBranch struct{ Event BranchEnded }

	// StartChild starts a workflow of Machine with the event Started, and gives
	// ChildEnded once it has ended.
	StartChild struct {
		ID      string
		Machine *Machine
		Data    []byte
	}

	// StopChild gives CancelAsked to a child, unless it has ended.
	StopChild struct{ ID, Reason string }

	// Answer answers the CancelAsked that was given.
	Answer struct{ Verdict CancelVerdict }

	// Answered answers the event Asked. If it was refused nothing has changed.
	Answered struct{ Refused string }
)

func (Record) command()  {}
func (RunStep) command() {}
func (Wake) command()    {}
func (Answer) command()  {}

func (Answered) command() {}

func (StartBranch) command() {}
func (StopBranch) command()  {}
func (EndBranch) command()   {}
func (StartChild) command()  {}
func (StopChild) command()   {}

// CancelVerdict is what becomes of a request to cancel. It is stored as text.
type CancelVerdict string

const (
	// CancelAccepted means that the rollback has begun.
	CancelAccepted CancelVerdict = "accepted"

	// CancelPastPivot means that it came after the point of no return.
	CancelPastPivot CancelVerdict = "past pivot"

	// CancelTooLate means that it is being rolled back already, or has ended.
	CancelTooLate CancelVerdict = "too late"

	// CancelDeferred means that the pivot is under way: the request stays in
	// the inbox and is to be given again after the step's outcome.
	CancelDeferred CancelVerdict = "deferred"
)
