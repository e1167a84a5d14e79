package engine_test

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
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// exampleEngine returns an engine on a new file.
func exampleEngine() (eng *engine.Engine, end func()) {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	st, err := sqlite.Open(context.Background(), filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	eng, err = engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	return eng, func() {
		st.Close()
		os.RemoveAll(dir)
	}
}

type journey struct{ Hotel, Flight string }

func book(what string) func(context.Context, step.Key, journey) (string, error) {
	return func(_ context.Context, key step.Key, _ journey) (string, error) {
		fmt.Println("book", what, "with key", key)
		return what + " booked", nil
	}
}

func cancelHotel(_ context.Context, key step.Key, d step.Done[journey, string]) error {
	fmt.Println("undo:", d.Out, "with key", key)
	return nil
}

func soldOut(context.Context, step.Key, journey) (string, error) {
	return "", step.Reject(errors.New("sold out"))
}

// A trip whose flight is refused gives its hotel back. A second start of the
// same id is the same workflow.
func Example() {
	eng, end := exampleEngine()
	defer end()
	hotel := step.Call("book-hotel", book("hotel")).Undo(step.UndoCall("cancel-hotel", cancelHotel))
	flight := step.Call("book-flight", soldOut).NoUndo("a refused flight leaves nothing behind")
	self := func(t journey) journey { return t }
	trips, err := engine.Register(eng, statemachine.Definition[journey]{
		Name: "trip", Version: 1, Start: "hotel", OnFailure: "given-back",
		States: statemachine.States[journey]{
			"hotel":  statemachine.Do(hotel, self, func(t *journey, s string) { t.Hotel = s }).Then("flight"),
			"flight": statemachine.Do(flight, self, func(t *journey, s string) { t.Flight = s }).Then("booked"),
		},
		Ends: statemachine.Ends{"booked": statemachine.Completed, "given-back": statemachine.RolledBack},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	done := make(chan error)
	go func() { done <- eng.Run(ctx) }()
	for range 2 {
		started, err := trips.Start(ctx, "trip-7", journey{})
		if err != nil {
			log.Fatal(err)
		}
		final, err := trips.Wait(ctx, "trip-7")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(started.Created, final.Status, final.Reason)
	}
	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// book hotel with key trip-7/book-hotel/1
	// undo: hotel booked with key trip-7/cancel-hotel/1
	// true COMPENSATED step book-flight was refused: sold out
	// false COMPENSATED step book-flight was refused: sold out
}

// A signal is kept until the workflow waits for it; one of an id that was sent
// before changes nothing.
func ExampleSignal() {
	eng, end := exampleEngine()
	defer end()
	type request struct{ By string }
	approval := statemachine.Signal[string]{Name: "approval"}
	requests, err := engine.Register(eng, statemachine.Definition[request]{
		Name: "request", Version: 1, Start: "waiting", OnFailure: "refused",
		States: statemachine.States[request]{
			"waiting": statemachine.Await(approval, func(r *request, by string) { r.By = by }).Within(time.Hour, "refused").Then("approved"),
		},
		Ends: statemachine.Ends{"approved": statemachine.Completed, "refused": statemachine.RolledBack},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if _, err := requests.Start(ctx, "request-1", request{}); err != nil {
		log.Fatal(err)
	}
	for _, by := range []string{"ann", "bob"} {
		fmt.Println(engine.Signal(ctx, eng, "request-1", approval, by, engine.MessageID("the only one")))
	}

	done := make(chan error)
	go func() { done <- eng.Run(ctx) }()
	final, err := requests.Wait(ctx, "request-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Status == store.Completed, final.Data.By)
	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// <nil>
	// <nil>
	// true ann
}
