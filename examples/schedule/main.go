package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store/sqlite"
)

func main() {
	if err := run(context.Background(), os.Stdout, time.Second); err != nil {
		log.Fatal(err)
	}
}

// report is the data of one run.
type report struct {
	Title string
	Slot  time.Time // learnt from the step's key
}

func (r report) title() string     { return r.Title }
func (r *report) made(t time.Time) { r.Slot = t }

// reports makes a report: one step, which knows its slot by its key.
func reports(runs *atomic.Int64) statemachine.Definition[report] {
	write := step.Call("write", func(_ context.Context, key step.Key, _ string) (time.Time, error) {
		runs.Add(1)
		_, slot, _ := engine.SlotOf(key)
		return slot, nil
	}).NoUndo("a report that was read cannot be unread")
	return statemachine.Definition[report]{
		Name: "report", Version: 1, Start: "writing",
		States:    statemachine.States[report]{"writing": statemachine.Do(write, report.title, (*report).made).Then("written")},
		Ends:      statemachine.Ends{"written": statemachine.Completed, "failed": statemachine.Failed},
		OnFailure: "failed",
	}
}

// run plays the story with slots that are every apart.
func run(ctx context.Context, out io.Writer, every time.Duration) error {
	folder, err := os.MkdirTemp("", "pawl-schedule-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	st, err := sqlite.Open(ctx, filepath.Join(folder, "schedule.db"))
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // nothing is written any more

	var runs atomic.Int64
	eng, reports, err := newEngine(st, &runs)
	if err != nil {
		return err
	}
	spec := engine.ScheduleSpec{Every: every, Overlap: engine.OverlapAllow, CatchUp: engine.CatchUpAll, CatchUpLimit: 100}
	if _, err := reports.Schedule(ctx, "report", spec, report{Title: "sales"}); err != nil {
		return err
	}
	info, err := eng.GetSchedule(ctx, "report")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", info.Description, info.Name)

	for range 2 {
		if err := workFor(ctx, st, &runs, 3*every); err != nil {
			return err
		}
		<-time.After(3 * every) // nobody is there
	}
	if err := workFor(ctx, st, &runs, every/2); err != nil {
		return err
	}
	if err := eng.PauseSchedule(ctx, "report", "the story is told"); err != nil {
		return err
	}
	return show(ctx, out, eng, &runs)
}

func newEngine(st *sqlite.Store, runs *atomic.Int64) (*engine.Engine, *engine.Workflow[report], error) {
	eng, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	wf, err := engine.Register(eng, reports(runs))
	return eng, wf, err
}

// workFor lets two workers work for a while.
func workFor(ctx context.Context, st *sqlite.Store, runs *atomic.Int64, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		eng, _, err := newEngine(st, runs)
		if err != nil {
			return err
		}
		wg.Go(func() { errs[i] = eng.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// show prints the ledger, and compares it with what has run once all of it has.
func show(ctx context.Context, out io.Writer, eng *engine.Engine, runs *atomic.Int64) error {
	slots, err := eng.Slots(ctx, "report", 1000)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- eng.Run(ctx) }()
	fired := 0
	for _, slot := range slices.Backward(slots) {
		fmt.Fprintf(out, "%s  %-7s %s\n", slot.Nominal.Format(time.RFC3339Nano), slot.Status, slot.WorkflowID+slot.Reason)
		if slot.WorkflowID == "" {
			continue
		}
		fired++
		if _, err := eng.Wait(ctx, slot.WorkflowID); err != nil {
			stop()
			return errors.Join(err, <-worked)
		}
	}
	stop()
	verdict := "OK"
	if fired != len(slots) || int64(fired) != runs.Load() {
		verdict = "NOT OK"
	}
	fmt.Fprintf(out, "slots=%d fired=%d runs=%d %s\n", len(slots), fired, runs.Load(), verdict)
	return <-worked
}
