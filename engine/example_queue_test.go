package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

type payment struct{ Cents int }

// Three wait for one slot: the one of the highest priority goes first.
func ExampleInQueue() {
	eng, end := exampleEngine()
	defer end()
	pay := step.Call("pay", func(ctx context.Context, _ step.Key, _ payment) (string, error) {
		fmt.Println("runs", step.WorkflowID(ctx))
		return "", nil
	}).NoUndo("it is an example")
	orders, err := engine.Register(eng, statemachine.Definition[payment]{
		Name: "payment", Version: 1, Start: "paying", OnFailure: "failed",
		States: statemachine.States[payment]{
			"paying": statemachine.Do(pay, func(p payment) payment { return p }, nil).Then("paid"),
		},
		Ends: statemachine.Ends{"paid": statemachine.Completed, "failed": statemachine.Failed},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := eng.SetQueue(ctx, "payments", engine.QueueLimits{Concurrency: 1}); err != nil {
		log.Fatal(err)
	}
	for _, o := range []struct {
		id       string
		priority int
	}{{"low", 0}, {"high", 50}, {"middle", 20}} {
		if _, err := orders.Start(ctx, o.id, payment{}, engine.InQueue("payments"), engine.Priority(o.priority)); err != nil {
			log.Fatal(err)
		}
	}
	run, drain := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- eng.Run(run) }()
	for _, id := range []string{"low", "high", "middle"} {
		if _, err := orders.Wait(ctx, id); err != nil {
			log.Fatal(err)
		}
	}
	drain()
	fmt.Println(<-done)
	// Output:
	// runs high
	// runs middle
	// runs low
	// <nil>
}
