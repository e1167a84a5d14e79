package step

import "context"

// Unknown says what to do about a Call whose outcome is unknown: its worker
// died, it timed out, or it failed without being refused. [Probe] and [Hold] need
// a policy with a Timeout: nobody may say "it has not happened" while the call may
// still be under way. A process that was paused in the middle of the call can
// defeat them all the same; a system that honours keys is the only full answer.
type Unknown uint8

const (
	// Resend calls again with the same key. It is right for every system that
	// honours idempotency keys, and the default.
	Resend Unknown = iota

	// Probe asks first what became of the earlier attempt.
	Probe

	// Hold never calls again by itself: a person decides.
	Hold
)

// String returns the policy's name as people see it.
func (u Unknown) String() string {
	switch u {
	case Probe:
		return "probe"
	case Hold:
		return "hold"
	default:
		return "resend"
	}
}

// Applied is what a probe learnt of an attempt whose outcome is unknown.
type Applied uint8

const (
	// StillUnknown means that the probe could not tell: ask again later.
	StillUnknown Applied = iota

	// NotApplied means that the attempt had no effect: it is safe to call.
	NotApplied

	// Happened means that the attempt had its effect, and here is its result.
	Happened
)

// Probe returns the step with fn as the way to ask the other system, by key,
// what became of the attempts whose outcome is unknown, before it is called
// again, and before it is given up: one that has had no effect needs no undo. It
// is asked once the last attempt has certainly ended, and again, as the policy
// says, as long as it cannot tell; a person decides in the end. Fn must not change
// anything. A cancellation does not ask it: a step that may have had its effect
// is undone at once, and its undo finds [Done].Known false.
func (s Step[In, Out]) Probe(fn func(context.Context, Key, In) (Out, Applied, error)) Step[In, Out] {
	s.spec.Unknown = Probe
	s.spec.Ask = eraseProbe(fn)
	return s
}

// Hold returns the step such that it is never called again by itself while its
// outcome is unknown: the workflow becomes HELD, and a person resolves it.
func (s Step[In, Out]) Hold() Step[In, Out] { s.spec.Unknown = Hold; return s }
