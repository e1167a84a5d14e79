// Schedule starts a workflow every second, goes away in the middle, and shows
// that no slot was lost and none ran twice.
//
//	go run ./examples/schedule
//
// Two workers share one SQLite file. Both decide about each slot; one of them
// starts it. Then both stop for three slots, and others take their place. What
// became of each slot is in the schedule's ledger, which is printed at the end:
//
//	every second: report
//	2026-01-02T10:00:01Z  FIRED   report/2026-01-02T10:00:01Z
//	2026-01-02T10:00:02Z  FIRED   report/2026-01-02T10:00:02Z
//	…
//	slots=9 fired=9 runs=9 OK
//
// The catch-up policy is "all", so the slots that passed without a worker fire
// when there is one again. By default only the last of them does.
package main
