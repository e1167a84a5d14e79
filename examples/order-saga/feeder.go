package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/store"
)

const (
	// maxOpen bounds how many orders are on their way at once.
	maxOpen = 200

	// feedPause is the longest pause between two orders.
	feedPause = 60 * time.Millisecond
)

// stock is what is on the shelf: enough lamps, and too few rugs.
func (c *chaos) stock() map[string]int {
	return map[string]int{c.scope.name("sku", "lamp"): 1_000_000, c.scope.name("sku", "rug"): 5}
}

// kinds are the orders that a chaos is made of, each as often as it says.
var kinds = []struct {
	weight int
	change func(*order.Order)
}{
	{40, func(*order.Order) {}},
	{10, func(o *order.Order) { o.Address = order.Nowhere }},
	{12, func(o *order.Order) { o.Cents += order.NeedsApprovalAbove }},
	{10, func(o *order.Order) { o.Card = bank.FailBefore }},
	{10, func(o *order.Order) { o.Card = bank.FailAfter }},
	{10, func(o *order.Order) { o.Card = bank.DropReply }},
	{3, func(o *order.Order) { o.Card = bank.Declined }},
	{2, func(o *order.Order) { o.Card = bank.Silent }},
	{3, func(o *order.Order) { o.Card, o.Address = bank.DropReply, order.Nowhere }},
}

// randomOrder makes up the nth order.
func (c *chaos) randomOrder(n int, chance *rand.Rand) order.Order {
	o := order.Order{
		ID: c.scope.name("order", n), SKU: c.scope.name("sku", "lamp"), Quantity: 1 + chance.IntN(3),
		Cents: 1 + chance.Int64N(20_000), Card: "4242", Address: "12 Harbour Road",
	}
	if chance.IntN(20) == 0 {
		o.SKU = c.scope.name("sku", "rug")
	}
	pick := chance.IntN(100)
	for _, k := range kinds {
		if pick -= k.weight; pick < 0 {
			k.change(&o)
			break
		}
	}
	return o
}

// feed places orders until there are enough of them and enough workers were
// killed, or until failed is closed.
func (c *chaos) feed(ctx context.Context, failed <-chan struct{}) error {
	chance := c.random(3)
	for n := 1; ; n++ {
		enough, err := c.enough(ctx)
		if err != nil || enough {
			return err
		}
		o := c.randomOrder(n, chance)
		if _, err := c.client.place(ctx, o); err != nil {
			return err
		}
		c.placed.Add(1)
		select {
		case <-failed:
			return nil // end says why
		default:
		}
		if o.Cents > order.NeedsApprovalAbove {
			c.ask(o.ID)
		}
		if err := sleep(ctx, time.Duration(chance.Float64()*float64(feedPause))); err != nil {
			return err
		}
	}
}

// enough reports whether all has happened that is to happen. It waits while too
// many orders are on their way.
func (c *chaos) enough(ctx context.Context) (bool, error) {
	if int(c.placed.Load()) >= c.orders && int(c.killed.Load()) >= c.kills {
		a, err := takeAudit(ctx, c.client.db, c.stage.bankFile, c.scope)
		if err != nil || a.caught > 0 || c.kills == 0 {
			return true, err
		}
	}
	for {
		open, _, err := c.open(ctx)
		if err != nil || open < maxOpen {
			return false, err
		}
		if err := sleep(ctx, poll); err != nil {
			return false, err
		}
	}
}

// open returns how many orders have not ended, and how many of those wait for a
// person.
func (c *chaos) open(ctx context.Context) (open, held int, err error) {
	err = c.client.db.view(ctx, func(tx store.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf(`
			SELECT count(*), coalesce(sum(CASE WHEN w.status = 'HELD' THEN 1 ELSE 0 END), 0)
			FROM shop_order o
			LEFT JOIN %s.workflow w ON w.id = o.order_id
			WHERE o.order_id LIKE $1 AND w.ended_at IS NULL`, c.client.db.schema), c.scope.orders()).Scan(&open, &held)
	})
	return open, held, err
}

// ask puts an order on the clerk's desk. A desk that is full means that there
// is no clerk any more, and the audit will tell.
func (c *chaos) ask(id string) {
	select {
	case c.waiting <- id:
	default:
	}
}

// clerk decides about the orders that need it, some before they ask.
func (c *chaos) clerk(ctx context.Context) error {
	chance := c.random(4)
	for {
		select {
		case id := <-c.waiting:
			if err := sleep(ctx, time.Duration(chance.Float64()*float64(100*time.Millisecond))); err != nil {
				return err
			}
			d := order.Decision{Approved: chance.IntN(3) > 0, By: "ada"}
			err := engine.Signal(ctx, c.client.eng, id, order.Approval, d, engine.MessageID("decision"))
			if err != nil && !errors.Is(err, engine.ErrEnded) {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// progress says once a second how far things are.
func (c *chaos) progress(ctx context.Context) error {
	began := time.Now()
	for {
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		open, _, err := c.open(ctx)
		if err != nil {
			return err
		}
		placed := int(c.placed.Load())
		c.print.say("%4ds  placed %4d  ended %4d  kills %3d", int(time.Since(began).Seconds()), placed, placed-open, c.killed.Load())
	}
}

// settle waits until every order has ended, or waits for a person.
func (c *chaos) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		open, held, err := c.open(ctx)
		switch {
		case ctx.Err() == context.DeadlineExceeded:
			return nil // the audit says which ones
		case err != nil:
			return err
		case open == held:
			return nil
		}
		if err := sleep(ctx, poll); err != nil && ctx.Err() != context.DeadlineExceeded {
			return err
		}
	}
}
