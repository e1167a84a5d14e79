package engine

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// Returned by calls that name a workflow.
var (
	// ErrNotFound says that there is no workflow of that id.
	ErrNotFound = store.ErrNotFound

	// ErrQueueNotFound says that there is no queue of that name.
	ErrQueueNotFound = store.ErrQueueNotFound

	// ErrConflict says that the id belongs to a workflow that was started with
	// another input or of another definition. The error is a *ConflictError.
	ErrConflict = errors.New("workflow exists")

	// ErrExpired says that the workflow of that id ended so long ago that only
	// its tombstone is left. The id stays taken.
	ErrExpired = errors.New("workflow has expired")

	// ErrEnded says that the workflow has ended and takes no more messages.
	ErrEnded = errors.New("workflow has ended")

	// ErrPastPivot says that a cancellation came after the point of no return.
	ErrPastPivot = errors.New("workflow is past its point of no return")
)

// Returned for input that is refused before anything is written.
var (
	// ErrBadID says that a workflow or message id is not 1 to 200 bytes of
	// valid UTF-8 without control characters or outer space.
	ErrBadID = errors.New("bad id")

	// ErrBadInput says that an input or a signal's value does not decode, or
	// does not encode.
	ErrBadInput = errors.New("bad input")

	// ErrTooLarge says that a payload is longer than Config.MaxPayload.
	ErrTooLarge = errors.New("payload too large")

	// ErrUnknownDefinition says that no definition of that name and version is
	// registered with this engine.
	ErrUnknownDefinition = errors.New("definition is not registered")

	// ErrUnknownSignal says that the workflow's definition has no signal of
	// that name.
	ErrUnknownSignal = errors.New("definition has no such signal")
)

// ErrRefused says that a workflow stands where a verb makes no sense; the error is
// a *RefusedError that says why.
var ErrRefused = errors.New("refused")

// Returned by Register.
var (
	// ErrGraphChanged says that this version of the definition was registered
	// before with another graph: a changed graph needs a new version.
	ErrGraphChanged = store.ErrGraphChanged

	// ErrDuplicateDefinition says that this engine has that version already.
	ErrDuplicateDefinition = errors.New("definition is registered twice")

	// ErrWrongTx says that a step asks for a transaction type that the store
	// does not have.
	ErrWrongTx = errors.New("transaction type does not fit the store")
)

// Seen by step bodies as the cause of a cancelled context (context.Cause).
var (
	// ErrLeaseLost says that the worker no longer holds its lease: whatever it
	// still does will be refused, and another worker does it again.
	ErrLeaseLost = errors.New("worker lost its lease")

	// ErrDraining says that the worker is about to stop and its grace is over.
	ErrDraining = errors.New("worker is draining")

	// ErrCancelAsked says that somebody asked for the workflow's cancellation.
	ErrCancelAsked = errors.New("cancellation was asked for")

	// ErrOverdue says that the workflow's deadline has passed.
	ErrOverdue = errors.New("deadline has passed")

	// ErrTerminated says that somebody has terminated the workflow.
	ErrTerminated = errors.New("workflow was terminated")

	// ErrTimeout says that the attempt has used up its step's timeout.
	ErrTimeout = errors.New("attempt timed out")
)

// ErrRunning is returned by Run while another Run of the same engine goes on.
var ErrRunning = errors.New("engine is running already")

// ConflictError says in what a second start of an id differs from the first.
// It matches ErrConflict.
type ConflictError struct {
	ID   string
	What string    // "input" or "definition"
	Have store.Def // the definition of the workflow that exists
	Want store.Def // the definition of the refused start
}

// Error implements error.
func (e *ConflictError) Error() string {
	if e.What == "definition" {
		return fmt.Sprintf("workflow %q exists as %s, not %s", e.ID, e.Have.Name, e.Want.Name)
	}
	return fmt.Sprintf("workflow %q exists with another input", e.ID)
}

// Is makes the error match ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
