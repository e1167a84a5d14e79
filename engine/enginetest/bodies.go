package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlhq/pawl/engine"
)

// Bodies stands in for the bodies of steps, and undos, by their names. The zero
// value leaves all of them alone. It is safe for concurrent use.
type Bodies struct {
	mu    sync.Mutex
	fakes map[string]Fake
	fails map[string][]error
	calls map[string][]engine.Body
}

// Fake is a body. Its result is encoded as JSON; in is the input so encoded, nil
// for an undo.
type Fake func(ctx context.Context, b engine.Body) (out any, err error)

// Fake has fn answer for a step from now on.
func (b *Bodies) Fake(step string, fn Fake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fakes == nil {
		b.fakes = map[string]Fake{}
	}
	b.fakes[step] = fn
}

// Return has a step return out from now on, without calling anybody.
func (b *Bodies) Return(step string, out any) {
	b.Fake(step, func(context.Context, engine.Body) (any, error) { return out, nil })
}

// Fail has the next attempts of a step fail, one with each error. What comes after
// them is answered as without it.
func (b *Bodies) Fail(step string, errs ...error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil {
		b.fails = map[string][]error{}
	}
	b.fails[step] = append(b.fails[step], errs...)
}

// Calls returns the attempts of a step so far, in their order.
func (b *Bodies) Calls(step string) []engine.Body {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls[step])
}

// Around is for engine.Config.
func (b *Bodies) Around(ctx context.Context, body engine.Body, run func(context.Context) ([]byte, error)) ([]byte, error) {
	fake, err := b.next(body)
	switch {
	case err != nil:
		return nil, err
	case fake == nil:
		return run(ctx)
	}
	out, err := fake(ctx, body)
	if err != nil {
		return nil, err
	}
	enc, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the fake result of step %s: %w", body.Step, err)
	}
	return enc, nil
}

// next notes a call and says what answers it.
func (b *Bodies) next(body engine.Body) (Fake, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls == nil {
		b.calls = map[string][]engine.Body{}
	}
	b.calls[body.Step] = append(b.calls[body.Step], body)
	if errs := b.fails[body.Step]; len(errs) > 0 {
		b.fails[body.Step] = errs[1:]
		return nil, errs[0]
	}
	return b.fakes[body.Step], nil
}
