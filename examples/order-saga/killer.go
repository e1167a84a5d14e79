package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
)

const (
	// aimEvery is which part of the kills is aimed at the moment between the
	// bank's effect and the commit. The others happen whenever they happen.
	aimEvery = 3

	// aimTimeout bounds how long a killer waits for such a moment.
	aimTimeout = 2 * time.Second
)

// effect is what the bank has just done for a worker.
type effect = bank.Effect

// hearBank passes an effect on to the killer, if it waits for one.
func (c *chaos) hearBank(m message) {
	if m.Effect == nil {
		return
	}
	select {
	case c.effects <- *m.Effect:
	default:
	}
}

// killer kills a worker about every killEvery and starts another in its place,
// until ctx is done.
func (c *chaos) killer(ctx context.Context) error {
	chance := c.random(2)
	for n := 1; ; n++ {
		pause := time.Duration((0.5 + chance.Float64()) * float64(c.killEvery))
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		victim := c.pick(chance)
		if n%aimEvery == 0 {
			victim = c.aim(ctx, victim)
		}
		// A kill that has begun is written down, and made up for, even if there
		// are to be no more.
		whole := context.WithoutCancel(ctx)
		if err := c.fleet.kill(whole, victim); err != nil {
			return err
		}
		c.killed.Add(1)
		if _, err := c.fleet.startWorker(whole); err != nil {
			return err
		}
	}
}

// pick picks a worker at random.
func (c *chaos) pick(chance *rand.Rand) *child {
	workers := c.fleet.workers()
	return workers[chance.IntN(len(workers))]
}

// aim waits until the bank has done something for a worker, and returns that
// worker: its step has had its effect, and the bank's answer is still on its
// way. If nothing happens for a while it returns other.
func (c *chaos) aim(ctx context.Context, other *child) *child {
	ctx, cancel := context.WithTimeout(ctx, aimTimeout)
	defer cancel()
	for {
		select {
		case e := <-c.effects:
			if w := c.fleet.worker(e.Caller); w != nil {
				return w
			}
		case <-ctx.Done():
			return other
		}
	}
}

// sleep returns when d has passed, or the reason why ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
