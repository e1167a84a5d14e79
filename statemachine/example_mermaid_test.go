package statemachine_test

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
)

// A definition can be drawn before a single workflow has started.
func ExampleDefinition_Mermaid() {
	type booking struct{ Confirmed bool }
	confirm := statemachine.Signal[bool]{Name: "confirmation"}

	def := statemachine.Definition[booking]{
		Name:    "booking",
		Version: 1,
		Start:   "asking",
		States: statemachine.States[booking]{
			"asking": statemachine.Await(confirm, func(b *booking, yes bool) { b.Confirmed = yes }).
				Within(36*time.Hour, "lapsed").
				Then("weighing"),
			"weighing":   statemachine.If(func(b booking) bool { return b.Confirmed }, "holding-on", "lapsed"),
			"holding-on": statemachine.Sleep(func(booking) time.Duration { return 15 * time.Minute }).Then("booked"),
		},
		Ends:      statemachine.Ends{"booked": statemachine.Completed, "lapsed": statemachine.RolledBack},
		OnFailure: "lapsed",
	}
	fmt.Print(def.Mermaid())

	// Output:
	// stateDiagram-v2
	//     [*] --> asking
	//     asking: asking / await confirmation
	//     asking --> weighing: confirmation
	//     asking --> lapsed: after 36h
	//     weighing: weighing / choice
	//     weighing --> holding_on: yes
	//     weighing --> lapsed: no
	//     lapsed: lapsed (rolled back, also on failure)
	//     lapsed --> [*]
	//     holding_on: holding-on / sleep
	//     holding_on --> booked
	//     booked: booked (completed)
	//     booked --> [*]
}
