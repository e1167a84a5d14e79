// Approval is a purchase that a person must approve within a deadline. Two are
// asked for: one is approved, and the money reserved for it is spent; the other
// is never answered, and once its deadline has passed the reservation is undone.
// With real people the deadline would be days: the workflow's row waits, and no
// process needs to.
//
//	go run ./examples/approval
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

// Purchase is the workflow's data.
type Purchase struct {
	What     string
	Cents    int
	Approver string
}

func (p Purchase) itself() Purchase    { return p }
func (p *Purchase) approved(by string) { p.Approver = by }

var approval = statemachine.Signal[string]{Name: "approval"}

func reserve(_ context.Context, key step.Key, p Purchase) (step.None, error) {
	fmt.Printf("%-8s reserve %d cents, key %s\n", p.What, p.Cents, key)
	return step.None{}, nil
}

func release(_ context.Context, key step.Key, d step.Done[Purchase, step.None]) error {
	fmt.Printf("%-8s release %d cents, key %s\n", d.In.What, d.In.Cents, key)
	return nil
}

func spend(_ context.Context, key step.Key, p Purchase) (step.None, error) {
	fmt.Printf("%-8s spend %d cents, approved by %s, key %s\n", p.What, p.Cents, p.Approver, key)
	return step.None{}, nil
}

// purchasing reserves the money, waits for as long as it takes, and spends it. The
// deadline is the whole purchase's, so the wait has none of its own.
func purchasing(deadline time.Duration) statemachine.Definition[Purchase] {
	hold := step.Call("reserve", reserve).Undo(step.UndoCall("release", release))
	pay := step.Call("spend", spend).Pivot()
	return statemachine.Definition[Purchase]{
		Name: "purchase", Version: 1, Start: "reserving", Deadline: deadline,
		States: statemachine.States[Purchase]{
			"reserving": statemachine.Do(hold, Purchase.itself, nil).Then("waiting"),
			"waiting":   statemachine.Await(approval, (*Purchase).approved).Then("spending"),
			"spending":  statemachine.Do(pay, Purchase.itself, nil).Then("bought"),
		},
		Ends:      statemachine.Ends{"bought": statemachine.Completed, "dropped": statemachine.RolledBack},
		OnFailure: "dropped",
	}
}

func main() {
	if err := run(context.Background(), 2*time.Second); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, deadline time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "pawl-approval")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, filepath.Join(dir, "purchases.db"))
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // nothing is kept
	eng, err := engine.New(st, engine.Config{Poll: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	purchases, err := engine.Register(eng, purchasing(deadline))
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	worked := make(chan error, 1)
	go func() { worked <- eng.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-worked)
	}()

	if err := see(ctx, purchases, "chair", func() error { return engine.Signal(ctx, eng, "chair", approval, "ada") }); err != nil {
		return err
	}
	return see(ctx, purchases, "yacht", func() error { return nil })
}

// how says for people how a purchase came to its end.
func how(end engine.Snapshot[Purchase]) string {
	if end.Cause == statemachine.Overdue {
		return end.Reason
	}
	return "approved by " + end.Data.Approver
}

// see asks for a purchase, has it answered, and tells how it has ended.
func see(ctx context.Context, purchases *engine.Workflow[Purchase], what string, answer func() error) error {
	if _, err := purchases.Start(ctx, what, Purchase{What: what, Cents: 4990}); err != nil {
		return err
	}
	if err := answer(); err != nil {
		return err
	}
	end, err := purchases.Wait(ctx, what)
	if err != nil {
		return err
	}
	fmt.Printf("%-8s %s, %s\n", what, end.Status, how(end))
	return nil
}
