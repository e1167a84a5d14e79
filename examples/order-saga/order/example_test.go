package order_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/store/sqlite"
)

// An order is placed, worked on, and waited for.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	dir, err := os.MkdirTemp("", "order-saga")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	payments, err := bank.Open(ctx, bank.Config{File: filepath.Join(dir, "bank.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer payments.Close()
	server := httptest.NewServer(payments)
	defer server.Close()

	st, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	eng, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	shop := &order.Shop{Bank: &order.HTTPBank{URL: server.URL}}
	orders, err := engine.Register(eng, shop.Workflow())
	if err != nil {
		log.Fatal(err)
	}

	tx, err := st.DB().BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := order.CreateTables(ctx, sqlite.Tx(tx)); err != nil {
		log.Fatal(err)
	}
	if err := order.Stock(ctx, sqlite.Tx(tx), "lamp", 10); err != nil {
		log.Fatal(err)
	}
	dear := order.Order{ID: "order-42", SKU: "lamp", Quantity: 2, Cents: 250_000, Card: "4242", Address: "12 Harbour Road"}
	if _, err := order.Place(ctx, sqlite.Tx(tx), orders, dear); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}

	working, drain := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- eng.Run(working) }()
	if err := engine.Signal(ctx, eng, "order-42", order.Approval, order.Decision{Approved: true, By: "ada"}); err != nil {
		log.Fatal(err)
	}
	end, err := orders.Wait(ctx, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	drain()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Status, end.Data.Payment.Charge, "approved by", end.Data.Decision.By)
	// Output: COMPLETED ch_1 approved by ada
}

// The definition draws itself.
func ExampleShop_Workflow() {
	d := new(order.Shop).Workflow()
	if err := d.Validate(); err != nil {
		log.Fatal(err)
	}
	fmt.Print(d.Mermaid())
	// Output:
	// stateDiagram-v2
	//     [*] --> reserving
	//     reserving: reserving / reserve-stock (in-tx, undo release-stock)
	//     reserving --> charging
	//     charging: charging / charge-card (call, undo refund-card)
	//     charging --> reviewing
	//     reviewing: reviewing / choice
	//     reviewing --> approving: yes
	//     reviewing --> shipping: no
	//     approving: approving / await approval
	//     approving --> weighing: approval
	//     approving --> cancelled: after 48h
	//     shipping: shipping / print-label (call, pivot)
	//     shipping --> fulfilling
	//     weighing: weighing / choice
	//     weighing --> shipping: yes
	//     weighing --> cancelled: no
	//     cancelled: cancelled (rolled back, also on failure)
	//     cancelled --> [*]
	//     fulfilling: fulfilling / all of mail-receipt (call), invoicing (child)
	//     fulfilling --> delivered
	//     delivered: delivered (completed)
	//     delivered --> [*]
}
