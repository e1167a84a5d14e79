package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/step"
)

// lease is how long a worker's orders are safe from the others after its last
// sign of life. It is short, so that a newcomer need not wait long to see a
// takeover.
const lease = 2 * time.Second

// poll is how often a worker looks for work when nothing wakes it.
const poll = 200 * time.Millisecond

// worker is what one worker process is told.
type worker struct {
	databaseURL string
	bank        order.Bank
	log         *slog.Logger
	onStep      func(engine.StepEvent)
	onReady     func()
}

// run works on orders until ctx is done.
func (w worker) run(ctx context.Context) error {
	db, err := openDatabase(ctx, w.databaseURL)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // everything that matters is committed
	eng, err := engine.New(db, engine.Config{
		Logger:       w.log,
		Lease:        lease,
		Poll:         poll,
		DrainTimeout: 3 * time.Second,
		CutTimeout:   time.Second,
		OnStep:       w.onStep,
	})
	if err != nil {
		return err
	}
	shop := &order.Shop{Bank: w.bank}
	if _, err := engine.Register(eng, shop.Workflow()); err != nil {
		return err
	}
	w.onReady()
	return eng.Run(ctx)
}

// stallingBank is a bank whose answer to one order's charge the worker holds in
// its hands, and does nothing more: the moment in which a crash hurts most.
type stallingBank struct {
	order.Bank
	order   string
	onStall func(stalled)
}

// Charge implements order.Bank.
func (b stallingBank) Charge(ctx context.Context, key step.Key, bill order.Bill) (string, error) {
	charge, err := b.Bank.Charge(ctx, key, bill)
	if err == nil && bill.OrderID == b.order {
		b.onStall(stalled{bill.OrderID, key.String()})
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return charge, err
}
