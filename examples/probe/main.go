// Probe charges a card through a provider that knows no idempotency keys: whoever
// calls it twice has charged twice. The first call has its effect, and its answer
// is lost. Instead of calling again the workflow asks the provider's list of
// charges, by the reference that each charge carries, and takes what it finds.
//
//	go run ./examples/probe
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store/sqlite"
)

// Order is the workflow's data.
type Order struct {
	Cents   int
	Receipt string
}

func (o Order) cents() int          { return o.Cents }
func (o *Order) charged(rec string) { o.Receipt = rec }

// Provider takes money, once for each call. Its list can be searched.
type Provider struct{ charges []Charge }

// Charge is an entry of the provider's list.
type Charge struct {
	Reference, Receipt string
	Cents              int
}

var errLost = errors.New("the connection broke before the answer came")

// Charge charges the card; the answer to the first call is lost.
func (p *Provider) Charge(_ context.Context, key step.Key, cents int) (string, error) {
	c := Charge{Reference: key.String(), Receipt: fmt.Sprintf("R%d", len(p.charges)+1), Cents: cents}
	p.charges = append(p.charges, c)
	fmt.Printf("call   charge %d cents, reference %s\n", cents, key)
	if len(p.charges) == 1 {
		return "", errLost
	}
	return c.Receipt, nil
}

// Look searches the list for a charge of that reference.
func (p *Provider) Look(_ context.Context, key step.Key, _ int) (string, step.Applied, error) {
	for _, c := range p.charges {
		if c.Reference == key.String() {
			fmt.Printf("probe  %s has happened: %s\n", key, c.Receipt)
			return c.Receipt, step.Happened, nil
		}
	}
	return "", step.NotApplied, nil
}

// Refund gives the money back.
func (p *Provider) Refund(context.Context, step.Key, step.Done[int, string]) error { return nil }

// Workflow is one charge. Its timeout is how long a call may be under way: so long
// the probe waits before it asks.
func (p *Provider) Workflow() statemachine.Definition[Order] {
	patience := step.Policy{Attempts: 3, Timeout: 500 * time.Millisecond}
	charge := step.Call("charge", p.Charge).With(patience).Probe(p.Look).Undo(step.UndoCall("refund", p.Refund))
	return statemachine.Definition[Order]{
		Name: "payment", Version: 1, Start: "charging",
		States:    statemachine.States[Order]{"charging": statemachine.Do(charge, Order.cents, (*Order).charged).Then("paid")},
		Ends:      statemachine.Ends{"paid": statemachine.Completed, "cancelled": statemachine.RolledBack},
		OnFailure: "cancelled",
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "pawl-probe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, filepath.Join(dir, "probe.db"))
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // nothing is kept
	eng, err := engine.New(st, engine.Config{Poll: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var provider Provider
	payments, err := engine.Register(eng, provider.Workflow())
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	worked := make(chan error, 1)
	go func() { worked <- eng.Run(ctx) }()

	if _, err := payments.Start(ctx, "order-7/PAY", Order{Cents: 4990}); err != nil {
		return errors.Join(err, end(stop, worked))
	}
	final, err := payments.Wait(ctx, "order-7/PAY")
	if err != nil {
		return errors.Join(err, end(stop, worked))
	}
	fmt.Printf("done   order-7/PAY %s with receipt %s; charged %d time\n", final.Status, final.Data.Receipt, len(provider.charges))
	return end(stop, worked)
}

// end drains the worker.
func end(stop context.CancelFunc, worked <-chan error) error {
	stop()
	return <-worked
}
