package statemachine_test

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// journey is the data of a workflow that books two things at the same time.
type journey struct{ City, Flight, Hotel string }

func (j journey) city() string       { return j.City }
func (j *journey) flying(id string)  { j.Flight = id }
func (j *journey) staying(id string) { j.Hotel = id }

type booker string

func (b booker) book(_ context.Context, _ step.Key, city string) (string, error) {
	return string(b) + " in " + city, nil
}

func (b booker) release(context.Context, step.Key, step.Done[string, string]) error { return nil }

// Both bookings run at the same time, each in a branch. Should one be refused,
// the other is released.
func ExampleAll() {
	booking := func(what string) step.Step[string, string] {
		undo := step.UndoCall("release-"+what, booker(what).release)
		return step.Call("book-"+what, booker(what).book).Undo(undo)
	}
	d := statemachine.Definition[journey]{
		Name: "journey", Version: 1, Start: "booking",
		States: statemachine.States[journey]{
			"booking": statemachine.All(
				statemachine.Do(booking("flight"), journey.city, (*journey).flying),
				statemachine.Do(booking("hotel"), journey.city, (*journey).staying),
			).Then("booked"),
		},
		Ends:      statemachine.Ends{"booked": statemachine.Completed, "released": statemachine.RolledBack},
		OnFailure: "released",
	}
	m, err := d.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	root, _, _ := m.Next(statemachine.Cursor{ID: "j1", Data: []byte(`{"City":"Porto"}`)}, statemachine.Started{})
	root, cmds, _ := m.Next(root, statemachine.Resumed{})
	fmt.Println(root.Phase, "for", root.Open)
	for _, cmd := range cmds {
		branch := cmd.(statemachine.StartBranch).Cursor
		_, run, _ := m.Next(branch, statemachine.Resumed{})
		fmt.Printf("%s: %s\n", branch.Branch, run[0].(statemachine.RunStep).Key)
	}
	// Output:
	// waiting for 2
	// booking/1/book-flight: j1/book-flight/1
	// booking/1/book-hotel: j1/book-hotel/1
}
