package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/step"
)

// Config configures an [Engine]. The zero value is ready to use.
type Config struct {
	// Logger gets what an operator should know. Payloads are never logged.
	// Default: slog.Default().
	Logger *slog.Logger

	// Concurrency is how many workflows this worker holds and advances at
	// once. Default: 128.
	Concurrency int

	// Lease is how long this worker's work is safe from being taken over after
	// its last sign of life. It bounds the time of recovery. Default: 10 s.
	Lease time.Duration

	// Poll is how often the worker looks for work, mail and dead workers when
	// nothing wakes it. Default: 500 ms.
	Poll time.Duration

	// DrainTimeout is how long Run lets running bodies go on after its context
	// is done, before it cancels theirs. Default: 25 s.
	DrainTimeout time.Duration

	// CutTimeout is how long Run waits for cancelled bodies to return before
	// it gives their workflows back regardless. Default: 5 s.
	CutTimeout time.Duration

	// Clean is how often a worker that knows a definition with a Retention looks
	// for what is too old. One worker does it at a time. Default: 1 min.
	Clean time.Duration

	// MaxPayload bounds each input, result, signal value and the data, in
	// bytes. Default: 1 MiB; at most 16 MiB.
	MaxPayload int

	// Codec, if not nil, stands between what users put into workflows and the
	// database, which then holds JSON no more. All that share a database need the
	// same: workers, clients and the commands of operators. With a codec the log
	// holds no text of users either, such as errors and reasons. Default: none, so
	// that payloads are stored as the JSON that they are.
	Codec Codec

	// OnStep, if not nil, is called after the outcome of an attempt has become
	// durable. Calls come one at a time and hold up nothing but each other;
	// those that cannot be kept up with are dropped.
	OnStep func(StepEvent)

	// Around, if not nil, is called in place of each attempt's body, with the body
	// as run: for tracing, and for tests. It is called by many goroutines at once,
	// each with the context that the body would have had; an InTx body's goroutine
	// holds a transaction. What it returns counts as the body's.
	Around func(ctx context.Context, b Body, run func(context.Context) ([]byte, error)) ([]byte, error)
}

// Body says which attempt's body is to run.
type Body struct {
	Step    string
	Key     step.Key
	Attempt int
	In      []byte // the input, encoded; nil for an undo
}

// HardMaxPayload is the largest value that Config.MaxPayload can have.
const HardMaxPayload = 16 << 20

// minLease is the shortest lease that can be kept: a renewal must fit a third of
// it.
const minLease = 100 * time.Millisecond

// check returns an error that names the first field that makes no sense.
func (c Config) check() error {
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("config: Concurrency %d: it cannot be negative", c.Concurrency)
	case c.Lease != 0 && c.Lease < minLease:
		return fmt.Errorf("config: Lease %v: at least %v", c.Lease, minLease)
	case c.Poll < 0, c.DrainTimeout < 0, c.CutTimeout < 0, c.Clean < 0:
		return fmt.Errorf("config: Poll %v, DrainTimeout %v, CutTimeout %v, Clean %v: none can be negative", c.Poll, c.DrainTimeout, c.CutTimeout, c.Clean)
	case c.MaxPayload < 0 || c.MaxPayload > HardMaxPayload:
		return fmt.Errorf("config: MaxPayload %d: 1 to %d", c.MaxPayload, HardMaxPayload)
	}
	return checkCodec(c.Codec)
}

func (c Config) withDefaults() Config {
	c.Logger = or(c.Logger, slog.Default())
	c.Concurrency = or(c.Concurrency, 128)
	c.Lease = or(c.Lease, 10*time.Second)
	c.Poll = or(c.Poll, 500*time.Millisecond)
	c.DrainTimeout = or(c.DrainTimeout, 25*time.Second)
	c.CutTimeout = or(c.CutTimeout, 5*time.Second)
	c.Clean = or(c.Clean, time.Minute)
	c.MaxPayload = or(c.MaxPayload, 1<<20)
	return c
}

// or returns v, or d if v is the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// StepEvent tells what became of one attempt of a step.
type StepEvent struct {
	WorkflowID string
	Branch     string // the path of the branch whose step it is; "" for the workflow's own
	Definition string
	Step       string
	Key        string
	Attempt    int
	Outcome    StepOutcome
	Error      string // of a failed attempt
	Took       time.Duration
	Worker     string // the worker's id
}

// StepOutcome says how an attempt ended.
type StepOutcome string

// The outcomes of an attempt.
const (
	OutcomeDone    StepOutcome = "done"
	OutcomeRetry   StepOutcome = "retry"   // failed, will be tried again
	OutcomeRefused StepOutcome = "refused" // failed, certainly without effect
	OutcomeFailed  StepOutcome = "failed"  // failed for good, its effect unknown
	OutcomeAsked   StepOutcome = "asked"   // a probe has asked what became of the attempts before
	OutcomeCut     StepOutcome = "cut"     // cut off by a cancellation, its effect unknown
)
