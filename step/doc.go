// Package step defines the units of work that a workflow is built from.
//
// A step is a named, typed function. There are three kinds, told apart by the
// function's signature, so that the guarantee can be read off the code:
//
//	Func  func(ctx, In) (Out, error)       safe to repeat as it stands; at least once
//	Call  func(ctx, Key, In) (Out, error)  calls another system; at least once, always with the same key
//	InTx  func(ctx, Tx, In) (Out, error)   exactly once: its writes, its result and the transition are one transaction
//
// # Outcomes
//
// A body ends in one of three ways, and each says something different about
// the world:
//
//   - it returns a result: the step is done;
//   - it returns [Reject](err): the other side refused, nothing happened, and
//     asking again cannot help. This is the only failure that is known to have
//     had no effect;
//   - anything else (another error, a panic, a timeout, a killed process):
//     the outcome is unknown. The step is tried again, as its [Policy] says,
//     with the same [Key]. When the policy is exhausted the step has failed,
//     and the rollback begins with that very step, since it may have had its
//     effect: its undo is told so by [Done].Known being false.
//
// An InTx body that fails has certainly had no effect, because its transaction
// is gone.
//
// A body that takes long keeps its progress by [Heartbeat]; the next attempt reads
// it by [Progress].
//
// # Effects must be answered for
//
// A Call or InTx step changes something outside the workflow's own row. So it
// says what becomes of that change when the workflow is rolled back: Undo names
// the compensation, Pivot marks the point of no return, NoUndo gives the reason
// why nothing needs undoing. A definition with a step that says none of these
// is refused.
//
// # Keys
//
// A [Key] is the idempotency key of one business intent:
//
//	<workflow id>/<step name>/<attempt group>
//	<workflow id>/<step name>/<item>.<attempt group>   for one of many items
//
// It stays the same over retries, crashes and changes of worker. It changes
// only when the intent does: when a loop enters the state again, or when an
// operator asks for a new one. Hand it to the system you call.
//
// The package does no I/O, holds no state and imports only the standard
// library. All its values are safe for concurrent use.
package step
