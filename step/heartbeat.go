package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxProgress is the most bytes that progress may take, encoded.
const MaxProgress = 64 << 10

// Returned by Heartbeat and Progress.
var (
	// ErrNoHeartbeat says that a context is none of a Call's or Func's body, or of
	// an undo's of these. What an InTx body has done is all or nothing: there is no
	// progress to keep.
	ErrNoHeartbeat = errors.New("not the context of a Call or Func body")

	// ErrProgressTooLarge says that progress takes more than MaxProgress bytes.
	ErrProgressTooLarge = errors.New("progress too large")
)

// Beater keeps the progress of one attempt; the engine gives one to each body.
type Beater interface {
	// Beat makes progress durable.
	Beat(ctx context.Context, progress []byte) error

	// Last returns the progress that was made durable last under the attempt's key,
	// by this attempt or one before; nil if there is none.
	Last(ctx context.Context) ([]byte, error)
}

type beaterKey struct{}

// WithBeater returns a context in which Heartbeat and Progress use b: for the
// engine, and for tests of bodies.
func WithBeater(ctx context.Context, b Beater) context.Context {
	return context.WithValue(ctx, beaterKey{}, b)
}

// Heartbeat makes the progress of a long body durable, as JSON. The next attempt
// under the same key finds it by [Progress], wherever it runs. It is one write to
// the database: call it as often as losing what lies between is worth.
//
// An error means that this attempt is over, or that the write failed: return it. In
// particular a worker that is no longer the workflow's owner writes nothing, and
// gets engine.ErrLeaseLost.
func Heartbeat(ctx context.Context, progress any) error {
	b, ok := ctx.Value(beaterKey{}).(Beater)
	if !ok {
		return fmt.Errorf("heartbeat: %w", ErrNoHeartbeat)
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	enc, err := json.Marshal(progress)
	if err != nil {
		return fmt.Errorf("heartbeat: %w: %w", ErrEncode, err)
	}
	if len(enc) > MaxProgress {
		return fmt.Errorf("heartbeat: %w: %d bytes, at most %d", ErrProgressTooLarge, len(enc), MaxProgress)
	}
	if err := b.Beat(ctx, enc); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// Progress decodes what the last Heartbeat under this body's key has left into v,
// and reports whether there was one: false in the first attempt of a group.
func Progress(ctx context.Context, v any) (bool, error) {
	b, ok := ctx.Value(beaterKey{}).(Beater)
	if !ok {
		return false, fmt.Errorf("progress: %w", ErrNoHeartbeat)
	}
	enc, err := b.Last(ctx)
	if err != nil {
		return false, fmt.Errorf("progress: %w", err)
	}
	if enc == nil {
		return false, nil
	}
	if err := json.Unmarshal(enc, v); err != nil {
		return false, fmt.Errorf("progress: %w: %w", ErrDecode, err)
	}
	return true, nil
}
