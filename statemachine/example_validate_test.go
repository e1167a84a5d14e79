package statemachine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// All faults of a definition are found at once, before it is ever used.
func ExampleDefinition_Validate() {
	type order struct{ Cents int }
	charge := step.Call("charge-card", func(ctx context.Context, key step.Key, cents int) (string, error) {
		return "payment 1", nil
	})
	def := statemachine.Definition[order]{
		Name:    "order",
		Version: 1,
		Start:   "charging",
		States: statemachine.States[order]{
			"charging": statemachine.Do(charge, func(o order) int { return o.Cents }, nil).Then("packing"),
		},
		Ends:      statemachine.Ends{"paid": statemachine.Completed, "cancelled": statemachine.RolledBack},
		OnFailure: "cancelled",
	}
	err := def.Validate()
	fmt.Println(err)
	fmt.Println(errors.Is(err, statemachine.ErrInvalid))

	// Output:
	// definition "order": state "charging": step "charge-card" has an effect, so it needs one of Undo, Pivot and NoUndo
	// definition "order": state "charging": leads to "packing", which is not defined
	// definition "order": end "paid" cannot be reached
	// true
}
