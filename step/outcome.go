package step

import (
	"errors"
	"time"
)

// Reject marks err as a refusal: the other side said no, nothing happened, and
// asking again cannot help. The step fails at once, without further attempts,
// and is not undone; the steps before it are. Reject(nil) is nil.
func Reject(err error) error {
	if err == nil {
		return nil
	}
	return &rejected{err}
}

// IsRejected reports whether err, or an error it wraps, was marked by [Reject].
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejected](err)
	return ok
}

// RetryAfter marks err as one that the other side wants to be asked again
// about after d, such as the Retry-After of an HTTP answer. It sets the pause
// before the next attempt in place of the policy's; the attempt counts as
// failed all the same. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, max(d, 0)}
}

// AskedPause returns the pause that [RetryAfter] put on err.
func AskedPause(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*retryAfter](err); ok {
		return e.pause, true
	}
	return 0, false
}

type rejected struct{ err error }

func (e *rejected) Error() string { return e.err.Error() }
func (e *rejected) Unwrap() error { return e.err }

type retryAfter struct {
	err   error
	pause time.Duration
}

func (e *retryAfter) Error() string { return e.err.Error() }
func (e *retryAfter) Unwrap() error { return e.err }

// ErrEncode is the failure of a body whose result cannot be encoded. The
// effect has happened, and another attempt would end the same way: the step
// fails for good, with its outcome unknown.
var ErrEncode = errors.New("encode result")

// ErrDecode is the failure of a step whose recorded input does not decode into
// what its body takes: the program has changed. Another attempt would end the same
// way. If no attempt has begun before, it has certainly had no effect; else its
// outcome is unknown.
var ErrDecode = errors.New("decode input")
