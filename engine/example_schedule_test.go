package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlhq/pawl/calendar"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

type report struct{ Title, Day string }

// A schedule is created once, however often the program is started. A step learns
// from its key which slot it works for, even if it is triggered or late.
func ExampleWorkflow_Schedule() {
	eng, end := exampleEngine()
	defer end()
	write := step.Call("write", func(_ context.Context, key step.Key, _ report) (string, error) {
		_, slot, _ := engine.SlotOf(key)
		return slot.Format(time.DateOnly), nil
	}).NoUndo("what was read cannot be unread")
	reports, err := engine.Register(eng, statemachine.Definition[report]{
		Name: "report", Version: 1, Start: "writing", OnFailure: "failed",
		States: statemachine.States[report]{
			"writing": statemachine.Do(write, func(r report) report { return r }, func(r *report, day string) { r.Day = day }).Then("written"),
		},
		Ends: statemachine.Ends{"written": statemachine.Completed, "failed": statemachine.Failed},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	done := make(chan error)
	go func() { done <- eng.Run(ctx) }()
	for range 2 {
		created, err := reports.Schedule(ctx, "nightly", engine.ScheduleSpec{Cron: "30 2 * * *", Zone: "America/New_York"}, report{Title: "sales"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("created:", created)
	}
	info, err := eng.GetSchedule(ctx, "nightly")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Description)

	day := time.Date(2025, time.March, 9, 12, 0, 0, 0, time.UTC)
	ids, err := eng.BackfillSchedule(ctx, "nightly", day.Add(-24*time.Hour), day)
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range ids {
		final, err := reports.Wait(ctx, id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, final.Status, final.Data.Day)
	}

	_, err = reports.Schedule(ctx, "never", engine.ScheduleSpec{Cron: "0 0 30 2 *"}, report{})
	var refused *calendar.Error
	fmt.Println(errors.As(err, &refused), refused.Fault)
	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// created: true
	// created: false
	// every day at 02:30 (America/New_York)
	// nightly/2025-03-09T07:00:00Z COMPLETED 2025-03-09
	// true it never fires: there is no such date
}
