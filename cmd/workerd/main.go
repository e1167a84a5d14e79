package main

import (
	"context"
	"os"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/examples/order-saga/order"
)

func main() {
	shop := &order.Shop{Bank: order.PaperBank{}}
	if url := os.Getenv("BANK_URL"); url != "" {
		shop.Bank = &order.HTTPBank{URL: url, Caller: "workerd"}
	}
	register := func(e *engine.Engine) error {
		if _, err := engine.Register(e, shop.Workflow()); err != nil {
			return err
		}
		_, err := engine.Register(e, shop.Stocking())
		return err
	}
	daemon.Main(register, daemon.WithSetup(stockLamps))
}

// stockLamps starts the workflow that opens the shop, once for all workers.
func stockLamps(ctx context.Context, e *engine.Engine) error {
	_, err := e.StartJSON(ctx, "stocking", "stocking-lamp", []byte(`{"sku":"lamp","quantity":1000}`))
	return err
}
