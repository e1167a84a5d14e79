package calendar_test

import (
	"fmt"
	"time"

	"github.com/pawlhq/pawl/calendar"
)

func Example() {
	cal, err := calendar.Spec{Cron: "30 2 * * *", Zone: "America/New_York"}.Compile()
	if err != nil {
		panic(err)
	}
	fmt.Println(cal.Describe())
	for _, slot := range cal.Slots(time.Date(2025, time.March, 8, 0, 0, 0, 0, time.UTC), 3) {
		fmt.Println(slot.Format(time.RFC3339))
	}

	_, err = calendar.Spec{Cron: "0 0 30 2 *"}.Compile()
	fmt.Println(err)
	// Output:
	// every day at 02:30 (America/New_York)
	// 2025-03-08T07:30:00Z
	// 2025-03-09T07:00:00Z
	// 2025-03-10T06:30:00Z
	// bad schedule: cron: it never fires: there is no such date
}
