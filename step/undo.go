package step

import (
	"context"
	"reflect"
)

// Done is what is known of a step that is to be undone.
type Done[In, Out any] struct {
	Key   Key  // the key the step was called with
	In    In   // what it was asked
	Out   Out  // what it answered; the zero value unless Known
	Known bool // false if the step's outcome was never learnt: it may have happened or not
}

// Undo is the compensation of a [Step][In, Out]. It is a step of its own, with
// its own name, key and policy. An undo that fails for good leaves the workflow
// HELD for a person, so give it a patient policy.
type Undo[In, Out any] struct{ spec Spec }

// UndoCall defines a compensation that calls another system. The key it gets
// is the undo's own; the undone step's is in [Done].Key.
func UndoCall[In, Out any](name string, fn func(context.Context, Key, Done[In, Out]) error) Undo[In, Out] {
	if fn == nil {
		return Undo[In, Out]{Spec{Name: name, Kind: KindCall, IsUndo: true}}
	}
	return newUndo(name, KindCall, nil, func(ctx context.Context, env Env, d Done[In, Out]) error { return fn(ctx, env.Key, d) })
}

// UndoInTx defines a compensation in the transaction that records it. Tx is as
// for [InTx].
func UndoInTx[Tx, In, Out any](name string, fn func(context.Context, Tx, Done[In, Out]) error) Undo[In, Out] {
	if fn == nil {
		return Undo[In, Out]{Spec{Name: name, Kind: KindInTx, IsUndo: true}}
	}
	return newUndo(name, KindInTx, reflect.TypeFor[Tx](), func(ctx context.Context, env Env, d Done[In, Out]) error {
		return fn(ctx, env.Tx.(Tx), d)
	})
}

// With returns the compensation with policy p.
func (u Undo[In, Out]) With(p Policy) Undo[In, Out] { u.spec.Policy = p; return u }

// As returns the compensation under another name, for a step that is used in a
// second state.
func (u Undo[In, Out]) As(name string) Undo[In, Out] { u.spec.Name = name; return u }

func newUndo[In, Out any](name string, kind Kind, tx reflect.Type, fn func(context.Context, Env, Done[In, Out]) error) Undo[In, Out] {
	return Undo[In, Out]{Spec{Name: name, Kind: kind, TxType: tx, IsUndo: true, Run: eraseUndo(fn)}}
}
