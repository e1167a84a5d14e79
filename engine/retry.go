package engine

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// clientPatience bounds how long a client's call is repeated while the database
// cannot take it.
const clientPatience = 15 * time.Second

// retry repeats a client's call, which must be safe to repeat, while the
// database asks for it or its answers are lost.
func retry(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	return insist(ctx, fn)
}

// insist is retry without an end of its own: only ctx ends it.
func insist(ctx context.Context, fn func() error) error {
	for n := 1; ; n++ {
		err := fn()
		if !errors.Is(err, store.ErrRetry) && !errors.Is(err, store.ErrUnsure) {
			return err
		}
		select {
		case <-time.After(backoff(n)):
		case <-ctx.Done():
			return err
		}
	}
}
