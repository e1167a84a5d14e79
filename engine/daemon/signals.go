package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// watchSignals returns a context that is done at the first SIGTERM or SIGINT,
// and a channel that holds the second. Stop gives the signals their usual
// meaning back.
func watchSignals(ctx context.Context) (drain context.Context, second <-chan os.Signal, stop func()) {
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	drain, cancel := context.WithCancelCause(ctx)
	again := make(chan os.Signal, 1)
	done := make(chan struct{})
	go func() {
		select {
		case sig := <-heard:
			cancel(&signalError{sig: sig})
		case <-done:
			return
		}
		select {
		case sig := <-heard:
			again <- sig
		case <-done:
		}
	}()
	return drain, again, func() {
		signal.Stop(heard)
		close(done)
		cancel(nil)
	}
}
