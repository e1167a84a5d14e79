package statemachine

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid is what errors.Is finds in the faults of a definition.
	ErrInvalid = errors.New("statemachine: invalid definition")

	// ErrNeedsPast is returned by [Machine.Next] when it must know the recorded
	// steps to go on: fill in Cursor.Past, set Cursor.PastKnown, and ask again.
	ErrNeedsPast = errors.New("statemachine: the recorded steps are needed")

	// ErrUnexpected is returned by [Machine.Next] for an event that does not
	// fit the cursor, or a cursor that does not fit the machine.
	ErrUnexpected = errors.New("statemachine: unexpected event")

	// ErrBadRest is returned by [Cursor.SetRest] for bytes that do not come
	// from [Cursor.Rest].
	ErrBadRest = errors.New("statemachine: malformed cursor")
)

// Fault is one thing that is wrong with a definition.
type Fault struct {
	Definition string
	State      State // empty if it is the definition's as a whole
	Text       string
}

// Error names the definition and the state, and says what is wrong.
func (f *Fault) Error() string {
	if f.State == "" {
		return fmt.Sprintf("definition %q: %s", f.Definition, f.Text)
	}
	return fmt.Sprintf("definition %q: state %q: %s", f.Definition, f.State, f.Text)
}

// Is makes every fault an [ErrInvalid].
func (f *Fault) Is(target error) bool { return target == ErrInvalid }

// CodeError says that a function of the definition has panicked, or that what
// it takes or gives cannot be decoded or encoded. Asking again would end the
// same way until the program is mended.
type CodeError struct {
	State State
	Step  string // empty if the state runs no step
	What  string // the function, as the definition calls it: in, out, cond, pick, merge, duration
	Err   error
	Stack []byte // of the panic, if it was one
}

// Error names the state, the step and the function.
func (e *CodeError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("state %q: %s: %v", e.State, e.What, e.Err)
	}
	return fmt.Sprintf("state %q: %s of step %q: %v", e.State, e.What, e.Step, e.Err)
}

// Unwrap returns what the function failed with.
func (e *CodeError) Unwrap() error { return e.Err }

// PayloadError says that the value of a signal is not of the signal's type.
// The workflow is where it was: take the signal out of its way.
type PayloadError struct {
	Signal string
	Err    error
}

// Error names the signal and says what is wrong with its value.
func (e *PayloadError) Error() string { return fmt.Sprintf("signal %q: %v", e.Signal, e.Err) }

// Unwrap returns why the value does not decode.
func (e *PayloadError) Unwrap() error { return e.Err }
