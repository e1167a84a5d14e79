package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/order"
)

// orderFlags are the flags of the command order.
type orderFlags struct {
	total string
	wait  time.Duration
	order order.Order
}

func orderCommand(s *settings) *cobra.Command {
	var f orderFlags
	cmd := &cobra.Command{
		Use:   "order ID",
		Short: "Place an order and wait for its end; a worker and the bank must be running",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.total == "" {
				return fmt.Errorf("%w: --total is missing", errUsage)
			}
			cents, err := parseMoney(f.total)
			if err != nil {
				return err
			}
			f.order.ID, f.order.Cents = args[0], cents
			return placeOrder(cmd, s, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.total, "total", "", fmt.Sprintf("the price, like 49.90; above %s a clerk is asked", money(order.NeedsApprovalAbove)))
	fl.StringVar(&f.order.SKU, "sku", "lamp", "what is ordered")
	fl.IntVar(&f.order.Quantity, "quantity", 1, "how many")
	fl.StringVar(&f.order.Card, "card", "4242", "fail-before, fail-after, drop-reply, silent and declined are trouble")
	fl.StringVar(&f.order.Address, "address", "12 Harbour Road", fmt.Sprintf("where to; no courier goes to %q", order.Nowhere))
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long to wait for the end")
	return cmd
}

// placeOrder places one order and prints what becomes of it.
func placeOrder(cmd *cobra.Command, s *settings, f orderFlags) error {
	ctx := cmd.Context()
	c, err := newClient(ctx, s.databaseURL, map[string]int{"lamp": 1000})
	if err != nil {
		return err
	}
	defer c.close()
	started, err := c.place(ctx, f.order)
	if err != nil {
		return err
	}
	p := newPrinter(cmd.OutOrStdout(), len(f.order.ID))
	if !started.Created {
		p.say("order %s is there already: %s", f.order.ID, started.Status)
	}
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	end, err := c.orders.Wait(waiting, f.order.ID)
	if errors.Is(err, context.DeadlineExceeded) {
		return notEnded(ctx, c, f)
	}
	if err != nil {
		return err
	}
	return printOrder(ctx, c, p, end)
}

// notEnded is the error that says why an order has not ended, and what helps.
func notEnded(ctx context.Context, c *client, f orderFlags) error {
	why, err := c.eng.Why(ctx, f.order.ID)
	if err != nil {
		return err
	}
	now, err := c.orders.Get(ctx, f.order.ID)
	if err != nil {
		return err
	}
	help := ""
	if now.Awaits == order.Approval.Name {
		help = fmt.Sprintf(`; approve it: go run ./cmd/workerd workflow signal %s %s --input '{"approved":true,"by":"you"}' --database-url …`, now.ID, now.Awaits)
	}
	return fmt.Errorf("order %s has not ended after %v: %s%s", now.ID, f.wait, why, help)
}

// printOrder prints the recorded steps of an order that has ended.
func printOrder(ctx context.Context, c *client, p *printer, end engine.Snapshot[order.Order]) error {
	steps, err := c.eng.Steps(ctx, end.ID)
	if err != nil {
		return err
	}
	p.head()
	for _, s := range steps {
		p.row(row{at: s.EndedAt.Local(), id: end.ID, step: s.Step, outcome: outcomeOf(s.Status), took: s.Took, key: s.Key.String(), why: s.Error})
	}
	p.say("%s %s: %s", end.ID, end.Status, meaning(end))
	return nil
}
