package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// settleTimeout bounds how long the orders may take to end after the last kill.
const settleTimeout = 90 * time.Second

// chaosConfig is what the chaos is told.
type chaosConfig struct {
	stage         stage
	orders        int           // to place at least
	workers       int           // at work at once
	kills         int           // to happen at least
	killEvery     time.Duration // on average
	seed          uint64
	noIdempotency bool
}

// chaos places orders while workers are killed, waits until all orders have
// ended, and audits.
type chaos struct {
	chaosConfig
	scope   scope
	client  *client
	fleet   *fleet
	print   *printer
	effects chan effect // what the bank does, while a killer waits for it

	placed  atomic.Int64
	killed  atomic.Int64
	waiting chan string // orders that wait for a clerk
}

func runChaos(ctx context.Context, cfg chaosConfig, stdout, stderr io.Writer) error {
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.seed == 0 {
		cfg.seed = rand.Uint64N(1_000_000) + 1
	}
	c := &chaos{chaosConfig: cfg, scope: newScope(), effects: make(chan effect), waiting: make(chan string, 1024)}
	c.print = newPrinter(stdout, 0)
	var err error
	c.client, err = newClient(ctx, cfg.stage.databaseURL, c.stock())
	if err != nil {
		return err
	}
	defer c.client.close()
	c.fleet = &fleet{scope: c.scope, db: c.client.db, stage: cfg.stage, stderr: stderr, hear: func(message) {}}
	defer c.fleet.stop()
	if err := c.run(ctx); err != nil {
		return err
	}
	c.fleet.stop()
	return c.audit(ctx)
}

func (c chaosConfig) check() error {
	switch {
	case c.orders < 1:
		return fmt.Errorf("%w: --orders %d: at least 1", errUsage, c.orders)
	case c.workers < 1:
		return fmt.Errorf("%w: --workers %d: at least 1", errUsage, c.workers)
	case c.kills < 0:
		return fmt.Errorf("%w: --kills %d: at least 0", errUsage, c.kills)
	case c.killEvery < 50*time.Millisecond:
		return fmt.Errorf("%w: --kill-every %v: at least 50ms", errUsage, c.killEvery)
	}
	return nil
}

// feedTimeout bounds the time until all orders are placed and all kills have
// happened.
func (c chaosConfig) feedTimeout() time.Duration {
	return time.Minute + time.Duration(c.orders)*100*time.Millisecond + time.Duration(c.kills)*2*(c.killEvery+aimTimeout)
}

// random returns a source of chance for one part of the chaos.
func (c chaosConfig) random(part uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, part)) }

// run goes through the chaos until the orders have settled.
func (c *chaos) run(ctx context.Context) error {
	c.print.say("chaos %s: %d orders, %d workers, a kill every %v, seed %d, %s", c.scope.run, c.orders, c.workers, c.killEvery, c.seed, describe(c.stage.databaseURL))
	if c.noIdempotency {
		c.print.say("the bank ignores idempotency keys")
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	clerk := c.begin(ctx, c.clerk)
	defer clerk.end() //nolint:errcheck // a clerk that failed shows in the audit
	progress := c.begin(ctx, c.progress)
	defer progress.end() //nolint:errcheck // it only prints

	feeding, cancel := context.WithTimeoutCause(ctx, c.feedTimeout(), errors.New("the orders could not be placed in time"))
	defer cancel()
	killer := c.begin(feeding, c.killer)
	if err := errors.Join(c.feed(feeding, killer.failed), killer.end()); err != nil {
		return err
	}
	c.print.say("%d orders placed, %d workers killed; waiting for the orders to end", c.placed.Load(), c.killed.Load())
	return c.settle(ctx)
}

func (c *chaos) start(ctx context.Context) error {
	flags := []string{"--min-delay", "20ms", "--max-delay", "200ms", "--seed", strconv.FormatUint(c.seed, 10)}
	if c.noIdempotency {
		flags = append(flags, "--no-idempotency")
	}
	if err := c.fleet.startBank(ctx, c.hearBank, flags...); err != nil {
		return err
	}
	for range c.workers {
		if _, err := c.fleet.startWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// part is a part of the chaos that goes on in a goroutine of its own.
type part struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	err    error
	failed chan struct{} // closed if it ended with an error
}

func (c *chaos) begin(ctx context.Context, fn func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(ctx)
	p := &part{cancel: cancel, failed: make(chan struct{})}
	p.all.Go(func() {
		if err := fn(ctx); err != nil && ctx.Err() == nil {
			p.err = err
			close(p.failed)
		}
	})
	return p
}

// end stops the part and returns what it failed with.
func (p *part) end() error {
	p.cancel()
	p.all.Wait()
	return p.err
}

// audit prints what the databases hold of this chaos.
func (c *chaos) audit(ctx context.Context) error {
	a, err := takeAudit(ctx, c.client.db, c.stage.bankFile, c.scope)
	if err != nil {
		return err
	}
	a.expect(a.kills >= c.kills, "%d workers were killed, %d were to be", a.kills, c.kills)
	a.expect(a.caught > 0 || c.kills == 0, "no worker was killed between the bank's effect and the commit")
	c.print.say("%d times a worker died after the bank had acted and before that was recorded", a.caught)
	return a.print(c.print.out)
}
