package statemachine

import (
	"time"

	"github.com/pawlhq/pawl/step"
)

// Event is something that has happened to a workflow.
type Event interface{ event() }

type (
	// Started is the first event of every workflow. The cursor holds nothing
	// but its Data.
	Started struct{}

	// Resumed says that an owner takes the workflow up where it stands: after
	// a claim, a crash or a pause between two attempts. If a step is marked it
	// is run, unless it has crashed its worker MaxCrashes times.
	Resumed struct{}

	// StepDone says that the marked step has a result.
	StepDone struct{ Out []byte }

	// StepFailed says that an attempt of the marked step has failed.
	StepFailed struct {
		Error    string
		Rejected bool           // refused: no effect, and asking again cannot help
		NoEffect bool           // it failed, but certainly changed nothing, as every InTx body does
		Final    bool           // another attempt would fail the same way
		Pause    *time.Duration // asked for by the other side; nil leaves it to the policy
		Chance   float64        // in [0, 1), decides the jitter of the pause
		Took     time.Duration  // how long the attempt has taken
	}

	// Probed says what a probe has learnt of the marked step: what RunStep.Ask asked
	// for.
	Probed struct {
		Applied step.Applied
		Out     []byte  // its result, if Applied is step.Happened
		Error   string  // why it could not tell
		Chance  float64 // decides the jitter of the pause before the next
	}

	// Interrupted says that the attempt was cut off by its own engine, which
	// lost its lease or is about to stop: no failure of the step's.
	Interrupted struct{}

	// TimerFired says that the time has come that the last Wake asked for.
	TimerFired struct{}

	// Signalled brings the signal that Cursor.Awaits names.
	Signalled struct {
		Name    string
		Payload []byte
	}

	// BranchEnded says that a branch of the state has ended.
	BranchEnded struct {
		Path   string // its Cursor.Branch
		Cause  Cause  // why it has failed; "" if it has not
		Reason string

		Failures int // of a lane: how many of its items have failed for good
	}

	// ChildEnded says that a child has ended.
	ChildEnded struct {
		ID     string // its workflow id
		End    End    // what its end means
		Out    []byte // its final data
		Reason string // why it is not a Completed one
	}

	// CancelAsked asks for the rollback.
	CancelAsked struct {
		Reason string
		Begun  bool // the body of the marked step has begun, so it may have had its effect
	}

	// DeadlinePassed says that the definition's Deadline has passed.
	DeadlinePassed struct {
		Begun bool // as in CancelAsked
	}

	// Asked says that a person wants something of the workflow. The answer is
	// Answered.
	Asked struct {
		Verb    Verb
		By      string    // who, and why: for people
		Out     []byte    // for Applied: the step's result, encoded
		Counted bool      // the attempt that is marked has been counted, and its body has not begun
		Begun   bool      // an attempt of what is marked has begun
		At      time.Time // now, by the database's clock
	}

	// Unstorable says that the database refuses what the last transition would
	// have written, for good.
	Unstorable struct{ Error string }
)

func (Started) event()     {}
func (Resumed) event()     {}
func (StepDone) event()    {}
func (StepFailed) event()  {}
func (Interrupted) event() {}
func (Probed) event()      {}
func (TimerFired) event()  {}
func (Signalled) event()   {}
func (BranchEnded) event() {}
func (ChildEnded) event()  {}
func (CancelAsked) event() {}
func (Asked) event()       {}

func (DeadlinePassed) event() {}
func (Unstorable) event()     {}
