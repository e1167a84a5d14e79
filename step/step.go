package step

import (
	"context"
	"reflect"
)

// None is the result of a step that has nothing to say but "done".
type None = struct{}

// Step is a named, typed unit of work. It is a value: its methods return
// changed copies, so that one step may be shared by many definitions.
type Step[In, Out any] struct{ spec Spec }

// Func defines a step that is safe to repeat as it stands, such as a
// computation or a read. It may run more than once.
func Func[In, Out any](name string, fn func(context.Context, In) (Out, error)) Step[In, Out] {
	if fn == nil {
		return noBody[In, Out](name, KindFunc)
	}
	return newStep(name, KindFunc, nil, func(ctx context.Context, _ Env, in In) (Out, error) { return fn(ctx, in) })
}

// Call defines a step that calls another system. It may run more than once,
// always with the same [Key], which the body passes on as that system's
// idempotency key.
func Call[In, Out any](name string, fn func(context.Context, Key, In) (Out, error)) Step[In, Out] {
	if fn == nil {
		return noBody[In, Out](name, KindCall)
	}
	return newStep(name, KindCall, nil, func(ctx context.Context, env Env, in In) (Out, error) { return fn(ctx, env.Key, in) })
}

// InTx defines a step that works in the very transaction that records its
// result: its writes, the result and the transition happen together or not at
// all. Tx is store.Tx, which runs on every store, or one store's own type
// (pgx.Tx, *sql.Tx); a definition whose type does not fit the store is refused.
func InTx[Tx, In, Out any](name string, fn func(context.Context, Tx, In) (Out, error)) Step[In, Out] {
	if fn == nil {
		return noBody[In, Out](name, KindInTx)
	}
	return newStep(name, KindInTx, reflect.TypeFor[Tx](), func(ctx context.Context, env Env, in In) (Out, error) {
		return fn(ctx, env.Tx.(Tx), in)
	})
}

// Child defines a step that is another workflow, whose data is a C: it begins
// with the step's input and its final data is the step's result. Package
// statemachine makes these, and knows what definition is.
func Child[C any](name string, definition any) Step[C, C] {
	return Step[C, C]{Spec{Name: name, Kind: KindChild, Child: definition}}
}

// Abandon leaves the child to itself when its parent is cancelled, or loses interest
// in any other way, while the child runs: it is neither cancelled nor waited for,
// and the parent's rollback passes it over. Without it the child is cancelled, and
// its end awaited. A child that has ended before is undone as its Undo says. It is
// for a step made by statemachine.Child.
func (s Step[In, Out]) Abandon() Step[In, Out] { s.spec.Abandon = true; return s }

// With returns the step with policy p.
func (s Step[In, Out]) With(p Policy) Step[In, Out] { s.spec.Policy = p; return s }

// Undo returns the step with u as its compensation.
func (s Step[In, Out]) Undo(u Undo[In, Out]) Step[In, Out] { s.spec.Undo = &u.spec; return s }

// Pivot marks the point of no return. Once the step is done, or may be, there
// is only forward: it is never undone, and neither is anything before it.
func (s Step[In, Out]) Pivot() Step[In, Out] { s.spec.Pivot = true; return s }

// NoUndo says that nothing needs to be undone, and why. The reason is shown
// wherever the step is.
func (s Step[In, Out]) NoUndo(reason string) Step[In, Out] {
	s.spec.NoUndo, s.spec.NoUndoSet = reason, true
	return s
}

// As returns the step under another name, to use it in a second state. Its
// undo, if it has one, needs another name there too: see [Undo.As].
func (s Step[In, Out]) As(name string) Step[In, Out] { s.spec.Name = name; return s }

// Spec returns the untyped form of the step, for the engine.
func (s Step[In, Out]) Spec() Spec { return s.spec }

func newStep[In, Out any](name string, kind Kind, tx reflect.Type, fn func(context.Context, Env, In) (Out, error)) Step[In, Out] {
	return Step[In, Out]{Spec{Name: name, Kind: kind, TxType: tx, Run: erase(fn), Accepts: accepts[Out]}}
}

// noBody is a step that was given no function. A definition with one is
// refused.
func noBody[In, Out any](name string, kind Kind) Step[In, Out] {
	return Step[In, Out]{Spec{Name: name, Kind: kind}}
}
