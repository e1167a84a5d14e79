package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/store"
)

// client places orders and watches them. It runs none: that is what workers are
// for.
type client struct {
	db     *database
	eng    *engine.Engine
	orders *engine.Workflow[order.Order]
}

// newClient opens the database and prepares it: the engine's schema, the shop's
// tables, and some stock.
func newClient(ctx context.Context, databaseURL string, stock map[string]int) (*client, error) {
	db, err := openDatabase(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	c := &client{db: db}
	if err := c.prepare(ctx, stock); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *client) prepare(ctx context.Context, stock map[string]int) (err error) {
	if err := c.db.prepare(ctx, stock); err != nil {
		return err
	}
	c.eng, err = engine.New(c.db, engine.Config{Poll: poll, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	c.orders, err = engine.Register(c.eng, new(order.Shop).Workflow())
	return err
}

func (c *client) close() { _ = c.db.Close() }

// place accepts an order and starts its workflow, in one transaction.
func (c *client) place(ctx context.Context, o order.Order) (started engine.Started, err error) {
	err = c.db.inTx(ctx, func(tx store.Tx) error {
		started, err = order.Place(ctx, tx, c.orders, o)
		return err
	})
	return started, err
}

// keys returns the keys of all steps that an order has recorded.
func (c *client) keys(ctx context.Context, id string) ([]string, error) {
	steps, err := c.eng.Steps(ctx, id)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, s := range steps {
		if s.Step != "invoicing" { // a workflow: no worker tells of an attempt
			keys = append(keys, s.Key.String())
		}
	}
	return keys, nil
}
