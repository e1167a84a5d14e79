package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// bodies keeps the ways to cut off what is running, by workflow id.
type bodies struct {
	mu      sync.Mutex
	running map[string]*running
}

// running is one job under way.
type running struct{ cancel context.CancelCauseFunc }

// begin returns the context of a job's body and what to call at its end. From
// then on interrupt reaches it, so it must be called before the reactor can
// decide anything more about the workflow.
func (b *bodies) begin(ctx context.Context, id string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &running{cancel}
	b.mu.Lock()
	b.running[id] = r
	b.mu.Unlock()
	return ctx, func() {
		b.mu.Lock()
		if b.running[id] == r { // else another job has begun on the same workflow
			delete(b.running, id)
		}
		b.mu.Unlock()
		cancel(nil)
	}
}

func (b *bodies) interrupt(id string, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.running[id]; r != nil {
		r.cancel(cause)
	}
}

// abandonAfter is how long a body may go on after its context has ended before
// the engine goes on without it. It is fenced then, not stopped: whatever it
// returns is not looked at.
const abandonAfter = 250 * time.Millisecond

// PanicError is the failure of a body that panicked, or that called
// runtime.Goexit.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error. It holds the stack, since nobody else will tell it.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// errGoexit stands for the value of a panic in a body that ended its goroutine.
var errGoexit = errors.New("the body ended its goroutine (runtime.Goexit)")

// guarded calls fn in a goroutine of its own, so that whatever fn does to that
// goroutine (panic, Goexit, never returning) is only a failure of this attempt.
// It returns when fn does, or soon after ctx has ended, with the cause.
func guarded(ctx context.Context, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: &PanicError{Value: errGoexit}}
		defer func() {
			if v := recover(); v != nil {
				r = result{err: &PanicError{v, debug.Stack()}}
			}
			done <- r
		}()
		out, err := fn(ctx)
		r = result{out, err}
	}()
	select {
	case r := <-done:
		return r.out, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(abandonAfter)
	defer late.Stop()
	select {
	case r := <-done:
		return r.out, r.err
	case <-late.C:
		return nil, context.Cause(ctx)
	}
}
