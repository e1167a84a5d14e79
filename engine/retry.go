package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// retryFor bounds how long a client's call is repeated while the database
// cannot take it.
const retryFor = 15 * time.Second

// retry repeats fn, which must be safe to repeat, while the database asks for
// it or its answers are lost.
func retry(ctx context.Context, fn func() error) error {
	until := time.Now().Add(retryFor)
	for n := 1; ; n++ {
		err := fn()
		again := errors.Is(err, store.ErrRetry) || errors.Is(err, store.ErrUnsure)
		if !again || ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(backoff(n)):
		case <-ctx.Done():
			return err
		}
	}
}
