package statemachine_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// trip is booked with whoever answers first.
type trip struct{ City, Booking string }

func (t trip) city() string        { return t.City }
func (t *trip) booked(id string)   { t.Booking = id }
func (t *trip) called(text string) { t.Booking = text }

func book(context.Context, step.Key, string) (string, error)            { return "b-1", nil }
func unbook(context.Context, step.Key, step.Done[string, string]) error { return nil }
func booking(name string) step.Step[string, string] {
	return step.Call(name, book).Undo(step.UndoCall("un"+name, unbook))
}

// Two airlines are asked at once; the first booking counts, and the other is undone.
// If neither has a seat a person calls, within a day, or else it is off.
func ExampleAny() {
	call := statemachine.Signal[string]{Name: "call"}
	off := statemachine.Signal[bool]{Name: "off"}
	d := statemachine.Definition[trip]{
		Name: "trip", Version: 1, Start: "booking", OnFailure: "cancelled", Deadline: 72 * time.Hour,
		States: statemachine.States[trip]{
			"booking": statemachine.Any(
				statemachine.Do(booking("book-east"), trip.city, (*trip).booked),
				statemachine.Do(booking("book-west"), trip.city, (*trip).booked),
			).Then("booked").Else("calling"),
			"calling": statemachine.AwaitAny(
				statemachine.On(call, (*trip).called, "booked"),
				statemachine.On(off, func(*trip, bool) {}, "cancelled"),
			).Within(24*time.Hour, "cancelled").Node(),
		},
		Ends: statemachine.Ends{"booked": statemachine.Completed, "cancelled": statemachine.RolledBack},
	}
	fmt.Println(d.Validate())
	fmt.Print(d.Mermaid())
	// Output:
	// <nil>
	// stateDiagram-v2
	//     [*] --> booking
	//     booking: booking / any of book-east (call, undo unbook-east), book-west (call, undo unbook-west)
	//     booking --> booked
	//     booking --> calling: else
	//     booked: booked (completed)
	//     booked --> [*]
	//     calling: calling / await call or off
	//     calling --> booked: call
	//     calling --> cancelled: off
	//     calling --> cancelled: after 24h
	//     cancelled: cancelled (rolled back, also on failure)
	//     cancelled --> [*]
}
