package statemachine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
)

// The functions of this file take the types away from the user's functions:
// what comes out works on encoded data, and answers a panic with an error. A
// nil function stays nil, so that Validate can tell.

// reads erases a function that reads the data.
func reads[S, V any](f func(S) V) func(data []byte) (V, error) {
	if f == nil {
		return nil
	}
	return func(data []byte) (v V, err error) {
		defer catch(&err)
		var s S
		if err := json.Unmarshal(data, &s); err != nil {
			return v, fmt.Errorf("decode data: %w", err)
		}
		return f(s), nil
	}
}

// encodes erases a function that makes a step's input from the data.
func encodes[S, V any](f func(S) V) func(data []byte) ([]byte, error) {
	if f == nil {
		return nil
	}
	read := reads(f)
	return func(data []byte) (enc []byte, err error) {
		defer catch(&err)
		v, err := read(data)
		if err != nil {
			return nil, err
		}
		if enc, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return enc, nil
	}
}

// merges erases a function that changes the data by a value from outside. A
// value that is not a V is a *valueError.
func merges[S, V any](f func(*S, V)) func(data, value []byte) ([]byte, error) {
	if f == nil {
		return nil
	}
	return func(data, value []byte) (merged []byte, err error) {
		defer catch(&err)
		var s S
		var v V
		if err := json.Unmarshal(value, &v); err != nil {
			return nil, &valueError{err}
		}
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("decode data: %w", err)
		}
		f(&s, v)
		if merged, err = json.Marshal(s); err != nil {
			return nil, fmt.Errorf("encode data: %w", err)
		}
		return merged, nil
	}
}

// decodes returns an error if value is not a V, or says more than a V can hold:
// a misspelt field would be lost, and with it what was meant.
func decodes[V any](value []byte) (err error) {
	defer catch(&err)
	var v V
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return &valueError{err}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &valueError{errors.New("something follows the JSON value")}
	}
	return nil
}

// catch turns a panic into an error. It must be deferred itself.
func catch(err *error) {
	if r := recover(); r != nil {
		*err = &panicError{r, debug.Stack()}
	}
}

// panicError is a panic of a user's function.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panicked: %v", e.value) }

// Unwrap returns the value that was thrown if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// valueError says that it is the value from outside that cannot be decoded,
// not the workflow's own data.
type valueError struct{ err error }

func (e *valueError) Error() string { return "decode value: " + e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }
