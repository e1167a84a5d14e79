package step

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Kind says which guarantee a step has. See the package's documentation.
type Kind uint8

const (
	// KindFunc is safe to repeat as it stands.
	KindFunc Kind = iota + 1

	// KindCall is called at least once, always with the same key.
	KindCall

	// KindInTx happens exactly once, with its record.
	KindInTx

	// KindChild is another workflow, run to its end.
	KindChild
)

// String returns the kind's name as people see it.
func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "func"
	case KindCall:
		return "call"
	case KindInTx:
		return "in-tx"
	case KindChild:
		return "child"
	default:
		return fmt.Sprintf("kind %d", uint8(k))
	}
}

// Effectful reports whether the step changes something outside its workflow,
// so that it must say what becomes of that in a rollback.
func (k Kind) Effectful() bool { return k == KindCall || k == KindInTx || k == KindChild }

// Spec is the untyped form of a step: inputs and results are encoded bytes. It
// is what packages statemachine and engine work with. It is not changed once
// its step is part of a definition.
type Spec struct {
	Name      string
	Kind      Kind
	Policy    Policy
	TxType    reflect.Type // the transaction type that an InTx body asks for; nil for others
	Undo      *Spec        // the compensation, if any
	Pivot     bool         // the point of no return
	NoUndo    string       // why nothing needs to be undone
	NoUndoSet bool         // NoUndo was called, be it with an empty reason
	IsUndo    bool         // this is a compensation: Run takes Env.Undoes, no input
	Unknown   Unknown      // what to do about an unknown outcome
	Run       Body         // one attempt
	Accepts   Check        // says whether bytes from outside may stand for a result; nil for an undo
	Ask       Question     // the probe, if Unknown is Probe
	Abandon   bool         // a child that goes on by itself when its parent gives up waiting for it
	Child     any          // what package statemachine knows of the other workflow, if Kind is KindChild
}

// Body executes one attempt. It is called outside every lock, may block, and
// may panic if the user's function does.
type Body func(ctx context.Context, env Env, in []byte) (out []byte, err error)

// Check says whether raw is one value of a step's result type, and no more, and
// returns it as the step itself would have encoded it.
type Check func(raw []byte) (out []byte, err error)

// Question asks what became of an earlier attempt.
type Question func(ctx context.Context, key Key, in []byte) (out []byte, applied Applied, err error)

// Env is what the engine hands to one attempt beside its input.
type Env struct {
	Key    Key
	Tx     any    // of the type that Spec.TxType names; nil unless KindInTx
	Undoes Undoes // what a compensation undoes
}

// Undoes is the untyped form of [Done].
type Undoes struct {
	Key     Key
	In, Out []byte
	Known   bool
}

// The functions below take the types away from the user's bodies. They name the
// step as its key does, which holds under another name ([Step.As]) too.

func erase[In, Out any](fn func(context.Context, Env, In) (Out, error)) Body {
	return func(ctx context.Context, env Env, in []byte) ([]byte, error) {
		var v In
		if err := json.Unmarshal(in, &v); err != nil {
			return nil, fmt.Errorf("%w of step %s: %w", ErrDecode, env.Key.Step(), err)
		}
		out, err := fn(ctx, env, v)
		if err != nil {
			return nil, err
		}
		return encodeResult(env.Key, out)
	}
}

func eraseUndo[In, Out any](fn func(context.Context, Env, Done[In, Out]) error) Body {
	return func(ctx context.Context, env Env, _ []byte) ([]byte, error) {
		d := Done[In, Out]{Key: env.Undoes.Key, Known: env.Undoes.Known}
		if err := json.Unmarshal(env.Undoes.In, &d.In); err != nil {
			return nil, Reject(fmt.Errorf("decode input for undo %s: %w", env.Key.Step(), err))
		}
		if d.Known {
			if err := json.Unmarshal(env.Undoes.Out, &d.Out); err != nil {
				return nil, Reject(fmt.Errorf("decode result for undo %s: %w", env.Key.Step(), err))
			}
		}
		return nil, fn(ctx, env, d)
	}
}

func eraseProbe[In, Out any](fn func(context.Context, Key, In) (Out, Applied, error)) Question {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, key Key, in []byte) ([]byte, Applied, error) {
		var v In
		if err := json.Unmarshal(in, &v); err != nil {
			return nil, StillUnknown, fmt.Errorf("decode input for probe of %s: %w", key.Step(), err)
		}
		out, applied, err := fn(ctx, key, v)
		if err != nil || applied != Happened {
			return nil, applied, err
		}
		enc, err := encodeResult(key, out)
		return enc, applied, err
	}
}

// accepts checks a result that comes from a person: a misspelt field would be
// lost, and with it what was meant.
func accepts[Out any](raw []byte) ([]byte, error) {
	var v Out
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return json.Marshal(v)
}

// encodeResult turns a body's result into bytes. A result that cannot be
// encoded is an [ErrEncode]: the effect has happened, and trying again would
// give the same result, so the engine must not treat it as a plain failure.
func encodeResult[Out any](key Key, out Out) ([]byte, error) {
	enc, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("%w of step %s: %w", ErrEncode, key.Step(), err)
	}
	return enc, nil
}
