package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// fleet is the bank and the workers of one tour or chaos, each a process of its
// own. Its methods may be called by several goroutines, except for startBank,
// which comes first, and stop, which comes last.
type fleet struct {
	scope  scope // names the workers
	db     *database
	stage  stage
	stderr io.Writer
	hear   func(message) // what the workers say

	bank   *child
	bankAt string // its URL

	mu    sync.Mutex
	count int // of the workers that were started
	alive []*child
}

// stage says where everything is.
type stage struct {
	databaseURL string
	bankFile    string
}

// startBank starts the bank with its own flags. hear gets what it says.
func (f *fleet) startBank(ctx context.Context, hear func(message), flags ...string) error {
	args := append([]string{"bank", "--bank-file", f.stage.bankFile}, flags...)
	c, r, err := startChild(ctx, "bank", f.how(hear), args...)
	if err != nil {
		return err
	}
	f.bank, f.bankAt = c, r.URL
	return nil
}

// startWorker starts one more worker, with further flags.
func (f *fleet) startWorker(ctx context.Context, flags ...string) (*child, error) {
	f.mu.Lock()
	f.count++
	name := f.scope.name("worker", f.count)
	f.mu.Unlock()

	args := append([]string{"worker", "--name", name, "--bank-url", f.bankAt}, flags...)
	c, _, err := startChild(ctx, name, f.how(f.hear), args...)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive = append(f.alive, c)
	return c, nil
}

// how says how the fleet's processes are to be started.
func (f *fleet) how(hear func(message)) childConfig {
	return childConfig{env: []string{databaseEnv + "=" + f.stage.databaseURL}, stderr: f.stderr, hear: hear}
}

// workers returns the workers that were not killed, the oldest first.
func (f *fleet) workers() []*child {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*child(nil), f.alive...)
}

// kill ends a worker with SIGKILL, and writes down what it owned when it died.
func (f *fleet) kill(ctx context.Context, victim *child) error {
	at := time.Now()
	victim.kill()
	f.mu.Lock()
	for i, c := range f.alive {
		if c == victim {
			f.alive = append(f.alive[:i:i], f.alive[i+1:]...)
			break
		}
	}
	f.mu.Unlock()
	err := f.db.inTx(ctx, func(tx store.Tx) error { return noteKill(ctx, tx, f.db.schema, victim.name, victim.pid(), at) })
	if err != nil {
		return fmt.Errorf("note the end of %s: %w", victim.name, err)
	}
	return nil
}

// stop lets all processes end in good order, the bank last.
func (f *fleet) stop() {
	var all sync.WaitGroup
	for _, c := range f.workers() {
		all.Go(c.stop)
	}
	all.Wait()
	if f.bank != nil {
		f.bank.stop()
	}
}

// worker returns the worker of that name, or nil if there is none or it was
// killed.
func (f *fleet) worker(name string) *child {
	for _, c := range f.workers() {
		if c.name == name {
			return c
		}
	}
	return nil
}
