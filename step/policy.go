package step

import (
	"fmt"
	"math"
	"time"
)

// Forever, as [Policy].Attempts, sets no limit to the attempts.
const Forever = -1

// The values that a zero field of a [Policy] stands for.
const (
	DefaultAttempts = 10
	DefaultTimeout  = time.Minute
	DefaultFirst    = time.Second
	DefaultMax      = 5 * time.Minute
	DefaultFactor   = 2.0
	DefaultJitter   = 0.2
)

// Policy bounds the attempts of a step. The zero value means the defaults
// above. It is plain data, so that the length of the longest retry chain can
// be computed from it.
type Policy struct {
	// Attempts is how many failed attempts make the step fail for good:
	// [DefaultAttempts] if zero, no limit if [Forever]. An attempt that was
	// cut off by a crash is repeated and not counted here; those are bounded
	// by the engine, since a process that keeps dying is not a failing step.
	Attempts int

	// Backoff is the pause between two attempts.
	Backoff Backoff

	// Timeout bounds one attempt; [DefaultTimeout] if zero, none if negative.
	Timeout time.Duration
}

// Backoff says how long to pause after a failed attempt: First after the
// first one, Factor times longer after each further one, at most Max, and
// shortened by a random part of up to Jitter so that many workflows that failed
// together do not return together.
type Backoff struct {
	First  time.Duration // after the first failed attempt; DefaultFirst if zero
	Max    time.Duration // DefaultMax if zero
	Factor float64       // DefaultFactor if zero
	Jitter float64       // a part of the pause, 0 to 1; DefaultJitter if zero, none if negative
}

// Exponential doubles the pause from first up to limit.
func Exponential(first, limit time.Duration) Backoff { return Backoff{First: first, Max: limit} }

// Constant pauses for d each time, without jitter.
func Constant(d time.Duration) Backoff { return Backoff{First: d, Max: d, Factor: 1, Jitter: -1} }

// Exhausted reports whether a step that failed this many times has failed for
// good.
func (p Policy) Exhausted(failures int) bool {
	limit := or(p.Attempts, DefaultAttempts)
	return limit > 0 && failures >= limit
}

// Pause returns how long to wait after the given number of failures, counted
// from 1. Chance, in [0, 1), decides the jitter: it is passed in so that the
// answer depends on nothing else.
func (p Policy) Pause(failures int, chance float64) time.Duration {
	b := p.Backoff
	pause := or(b.Max, DefaultMax)
	grown := float64(or(b.First, DefaultFirst)) * math.Pow(or(b.Factor, DefaultFactor), float64(max(failures, 1)-1))
	if grown < float64(pause) {
		pause = time.Duration(grown)
	}
	return pause - time.Duration(float64(pause)*max(or(b.Jitter, DefaultJitter), 0)*chance)
}

// AttemptTimeout returns how long one attempt may take; zero means no limit.
func (p Policy) AttemptTimeout() time.Duration { return max(or(p.Timeout, DefaultTimeout), 0) }

// Check returns an error that names the first field that makes no sense, or
// nil.
func (p Policy) Check() error {
	b := p.Backoff
	switch {
	case p.Attempts < Forever:
		return fmt.Errorf("attempts %d: use step.Forever for no limit", p.Attempts)
	case b.First < 0 || b.Max < 0:
		return fmt.Errorf("backoff of %v up to %v: a pause cannot be negative", b.First, b.Max)
	case or(b.First, DefaultFirst) > or(b.Max, DefaultMax):
		return fmt.Errorf("backoff begins at %v, beyond its limit of %v", or(b.First, DefaultFirst), or(b.Max, DefaultMax))
	case math.IsNaN(b.Factor) || or(b.Factor, DefaultFactor) < 1:
		return fmt.Errorf("backoff factor %v: at least 1", b.Factor)
	case math.IsNaN(b.Jitter) || b.Jitter > 1:
		return fmt.Errorf("jitter %v: at most 1", b.Jitter)
	}
	return nil
}

// or returns v, or d if v is the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}
