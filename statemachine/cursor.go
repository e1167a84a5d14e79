package statemachine

// Phase says what kind of thing a workflow is doing.
type Phase uint8

const (
	// Running means that a step is under way: Cursor.Mark names it.
	Running Phase = iota + 1

	// Waiting means that it waits for a signal, a timer or the end of a pause
	// between two attempts.
	Waiting

	// RollingBack means that its steps are being undone, newest first. While
	// an undo pauses between two attempts the phase stays the same.
	RollingBack

	// Held means that it needs a person. It is not an end.
	Held

	// Ended means that Cursor.End has been reached.
	Ended
)

// Cause says why a workflow is rolled back, or will be once its branches have
// ended, or was, or has ended Failed.
type Cause string

// The causes of a bad end.
const (
	Refused   Cause = "refused"   // a step was refused
	Exhausted Cause = "exhausted" // a step failed as often as its policy allows
	Cancelled Cause = "cancelled" // somebody asked for it
	TimedOut  Cause = "timed out" // a wait ended without its signal
	Overdue   Cause = "overdue"   // the definition's deadline has passed
	Chosen    Cause = "chosen"    // the graph itself led to a RolledBack end
	Stopped   Cause = "stopped"   // somebody terminated it: nothing was undone
)

// Mark names the step that is under way, or that pauses between two attempts.
// It is durable before the step's body runs.
type Mark struct {
	Step     string
	Group    int // attempt group, from 1
	Attempt  int // attempts begun in the group, this one included
	Failures int // attempts of the group that failed
	Crashes  int // attempts begun in a row that ended without a word
}

// Cursor is where a workflow stands: all that [Machine.Next] needs to know of
// it. The engine keeps State, Phase, Data, Mark, Awaits, Pivoted and Reason in
// columns of their own, what [Cursor.Rest] returns beside them, and Past in the
// table of recorded steps.
type Cursor struct {
	ID      string // the workflow's id, for the keys of its steps
	Branch  string // the path of the branch that this is the cursor of; "" for the root
	State   State
	Phase   Phase
	Data    []byte // the user's data, encoded; of a branch: its step's input
	Mark    Mark   // zero if no step is under way
	Awaits  string // the signal that it waits for, if any
	Pivoted bool   // the point of no return is behind it
	Reason  string // the last failure, or why it is Held: for people

	End   State  // the end that was reached, or that the rollback leads to
	Cause Cause  // why it is not a Completed one
	From  Phase  // what it was doing when it was Held
	Why   string // what Reason was before an undo failed
	Open  int    // how many branches and children have not ended

	Paused bool  // it is Held because somebody paused it
	Alarm  int64 // when it would have woken by itself had it not been Held, in microseconds since 1970; 0 for never

	Late   bool   // the deadline has passed, and was seen to
	Capped bool   // it wakes by itself because of the deadline: set by the engine
	Won    string // the step that was the first of an Any to be done; "" for none

	Sure  int // the attempt before which a probe may ask: the ones before it have certainly ended
	Clear int // the attempt before which none has had an effect, as a probe or a person has said
	Asks  int // how often in a row a probe could not tell

	Page      string // EachPage: what the next page is asked for by
	PageItems int    // how many items the page at hand has
	Base      int    // how many items the pages before it had

	Asked int // how often a Poll has had an answer, in this entry of its state

	Item     int           // the item that the mark is for, from 1; 0 if there are none
	Lanes    int           // how many lanes the items are dealt to: in the root, and in each of them
	Failures int           // items that have failed for good: of the lane, or of those that have ended
	Groups   map[State]int // how often each state was entered that runs a step and can be entered again

	// Origin and Kept are a fork's: the id of the workflow that it was made of, and up
	// to which attempt group the steps and undos of that one keep its keys.
	Origin string
	Kept   map[string]int

	// Past holds the recorded steps in the order of their completion. It is
	// needed only to roll back and to join branches: while PastKnown is false Next says ErrNeedsPast
	// when it comes to that. Next adds what it records itself.
	Past      []Past
	PastKnown bool

	// Results are the records of the lanes of one page, for its join: while ResultsKnown
	// is false Next says ErrNeedsResults when it comes to that.
	Results      []Past
	ResultsKnown bool
}

// Past is a recorded step, as far as an undo needs it.
type Past struct {
	Step    string
	Group   int
	Item    int // from 1; 0 if there are none
	Outcome Outcome
	In, Out []byte
}

// Outcome is how a step ended.
type Outcome uint8

const (
	// Done means that it has a result.
	Done Outcome = iota + 1

	// NoEffect means that it failed and certainly changed nothing.
	NoEffect

	// Unknown means that it failed, or was given up, and may have had its
	// effect.
	Unknown
)
