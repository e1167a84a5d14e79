package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/aescodec"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// aes is a codec that writes with one key and reads with several, by their ids.
func (w *world) aes(write string, others ...string) engine.Codec {
	w.Helper()
	keys := map[string][]byte{}
	for _, id := range append(others, write) {
		keys[id] = fmt.Appendf(nil, "%-32s", id)
	}
	c, err := aescodec.New(aescodec.Keys{Write: write, ByID: keys, Fingerprint: fmt.Appendf(nil, "%-32s", "fingerprint")})
	require.NoError(w, err)
	return c
}

// coded is a node with a codec, and with a log of all levels.
func (w *world) coded(c engine.Codec) *node {
	w.Helper()
	kept := newLogs()
	n := w.client(nodeOptions{tune: func(cfg *engine.Config) {
		cfg.Codec = c
		cfg.Logger = slog.New(slog.NewJSONHandler(kept, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}})
	n.log = kept
	return n
}

// chart is the data of the ward's workflows.
type chart struct {
	Name   string
	Items  []string
	Notes  []string
	Refuse bool // the last step is refused
}

func (c chart) name() string                   { return c.Name }
func (c chart) items() []string                { return c.Items }
func (c chart) bill() bill                     { return bill{c.Name} }
func (c chart) itself() chart                  { return c }
func (c *chart) note(text string)              { c.Notes = append(c.Notes, text) }
func (c *chart) billed(b bill)                 { c.note(b.For) }
func (c *chart) treated(_ int, _, text string) { c.note(text) }

type bill struct{ For string }

func (b bill) whom() string      { return b.For }
func (b *bill) paid(text string) { b.For = text }

var verdict = statemachine.Signal[string]{Name: "verdict"}

// ward is a definition that has a payload of every kind, and bodies that put a word
// of their own into each.
type ward struct {
	mu    sync.Mutex
	tried map[string]bool
}

// once reports whether it is the first attempt of a key.
func (d *ward) once(key step.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tried == nil {
		d.tried = map[string]bool{}
	}
	before := d.tried[key.String()]
	d.tried[key.String()] = true
	return !before
}

// Words that must not be found where payloads are encoded.
var wardWords = []string{
	"zq-input-name", "zq-input-item", "zq-result-admit", "zq-error-admit", "zq-result-record", "zq-result-lab", "zq-result-bill",
	"zq-result-treat", "zq-signal-value", "zq-error-discharge", "zq-error-undo", "zq-error-held", "zq-order-reason", "zq-order-actor",
	"zq-cancel-reason", "zq-schedule-data", "zq-schedule-note",
}

func (d *ward) admit(_ context.Context, key step.Key, _ string) (string, error) {
	if d.once(key) {
		return "", errors.New("zq-error-admit")
	}
	return "zq-result-admit", nil
}

func (d *ward) unadmit(_ context.Context, key step.Key, _ step.Done[string, string]) error {
	if d.once(key) {
		return errors.New("zq-error-undo")
	}
	return nil
}

func (d *ward) discharge(_ context.Context, _ step.Key, c chart) (string, error) {
	if c.Refuse {
		return "", step.Reject(errors.New("zq-error-discharge"))
	}
	return "gone", nil
}

func says(text string) func(context.Context, step.Key, string) (string, error) {
	return func(context.Context, step.Key, string) (string, error) { return text, nil }
}

func (d *ward) billing() statemachine.Definition[bill] {
	pay := step.Call("own-pay", says("zq-result-bill")).With(quick).NoUndo("it is paid")
	return statemachine.Definition[bill]{
		Name: "billing", Version: 1, Start: "paying", Ends: ends, OnFailure: "undone",
		States: statemachine.States[bill]{"paying": statemachine.Do(pay, bill.whom, (*bill).paid).Then("good")},
	}
}

func (d *ward) definition() statemachine.Definition[chart] {
	admit := step.Call("own-admit", d.admit).With(quick).Undo(step.UndoCall("own-unadmit", d.unadmit).With(quick))
	record := step.InTx("own-record", func(context.Context, store.Tx, string) (string, error) { return "zq-result-record", nil }).
		Undo(step.UndoInTx("own-unrecord", func(context.Context, store.Tx, step.Done[string, string]) error {
			return errors.New("zq-error-held")
		}).With(step.Policy{Attempts: 1}))
	lab := step.Call("own-lab", says("zq-result-lab")).With(quick).Undo(step.UndoCall("own-unlab", d.nothing).With(quick))
	child := statemachine.Child(d.billing()).As("child-billing").NoUndo("a bill stays")
	treat := step.Call("own-treat", says("zq-result-treat")).With(quick).Undo(step.UndoCall("own-untreat", d.nothing).With(quick))
	discharge := step.Call("own-discharge", d.discharge).With(quick).NoUndo("gone is gone")
	return statemachine.Definition[chart]{
		Name: "ward", Version: 1, Start: "admitting", Ends: ends, OnFailure: "undone",
		States: statemachine.States[chart]{
			"admitting": statemachine.Do(admit, chart.name, (*chart).note).Then("recording"),
			"recording": statemachine.Do(record, chart.name, (*chart).note).Then("fanning"),
			"fanning": statemachine.All(
				statemachine.Do(lab, chart.name, (*chart).note),
				statemachine.Do(child, chart.bill, (*chart).billed),
			).Then("treating"),
			"treating":    statemachine.Each(chart.items, treat, (*chart).treated).Then("waiting"),
			"waiting":     statemachine.Await(verdict, (*chart).note).Then("discharging"),
			"discharging": statemachine.Do(discharge, chart.itself, (*chart).note).Then("good"),
		},
	}
}

func (d *ward) nothing(context.Context, step.Key, step.Done[string, string]) error { return nil }

// wardFlow registers the ward with a node.
func (d *ward) on(n *node) *engine.Workflow[chart] {
	n.w.Helper()
	flow, err := engine.Register(n.Engine, d.definition())
	require.NoError(n.w, err)
	return flow
}

// patientOf is the input of the ward's workflows.
func patientOf(refuse bool) chart {
	return chart{Name: "zq-input-name", Items: []string{"zq-input-item", "zq-input-item-2"}, Refuse: refuse}
}

// allOfIt has a worker go through everything that has payloads, and checks that it
// comes out right.
func (d *ward) allOfIt(n *node) {
	w := n.w
	w.Helper()
	ctx := w.ctx()
	flow := d.on(n)
	n.run()
	for id, refuse := range map[string]bool{"good": false, "bad": true, "cancelled": false} {
		_, err := flow.Start(ctx, id, patientOf(refuse))
		require.NoError(w, err)
	}
	waits := func(id string) {
		w.Helper()
		w.eventually(id+" waits", func() bool { s, err := n.Get(ctx, id); return err == nil && s.Awaits == verdict.Name })
	}
	waits("good")
	done, err := n.Operate(ctx, "good", engine.Order{Verb: engine.Pause, Actor: "zq-order-actor", Reason: "zq-order-reason"})
	require.NoError(w, err)
	require.Equal(w, "HELD in waiting", done.After)
	_, err = n.Operate(ctx, "good", engine.Order{Verb: engine.Resume})
	require.NoError(w, err)
	for _, id := range []string{"good", "bad"} {
		require.NoError(w, engine.Signal(ctx, n.Engine, id, verdict, "zq-signal-value"))
	}
	waits("cancelled")
	require.NoError(w, n.Cancel(ctx, "cancelled", "zq-cancel-reason"))

	good, err := flow.Wait(ctx, "good")
	require.NoError(w, err)
	require.Equal(w, store.Completed, good.Status)
	notes := []string{
		"zq-result-admit", "zq-result-record", "zq-result-lab", "zq-result-bill", "zq-result-treat", "zq-result-treat", "zq-signal-value", "gone",
	}
	require.ElementsMatch(w, notes, good.Data.Notes)
	for _, id := range []string{"bad", "cancelled"} {
		w.eventually(id+" is held by its undo", func() bool { s, err := n.Get(ctx, id); return err == nil && s.Status == store.Held })
		held, err := n.Get(ctx, id)
		require.NoError(w, err)
		require.Contains(w, held.Reason, "zq-error-held")
		_, err = n.Operate(ctx, id, engine.Order{Verb: engine.Skip, Reason: "zq-order-reason"})
		require.NoError(w, err)
		over, err := flow.Wait(ctx, id)
		require.NoError(w, err)
		require.Equal(w, store.Compensated, over.Status)
	}
	d.looksRight(n)
	d.schedules(n, flow)
}

// looksRight checks what is told of the workflows afterwards.
func (d *ward) looksRight(n *node) {
	w, ctx := n.w, n.w.ctx()
	w.Helper()
	over, err := n.Get(ctx, "bad")
	require.NoError(w, err)
	require.Contains(w, over.Reason, "zq-error-discharge")
	steps, err := n.Steps(ctx, "bad")
	require.NoError(w, err)
	at := slices.IndexFunc(steps, func(s engine.Step) bool { return s.Step == "own-admit" })
	require.Equal(w, `"zq-input-name"`, string(steps[at].Input))
	require.Equal(w, `"zq-result-admit"`, string(steps[at].Output))
	audit, err := n.Audit(ctx, "cancelled")
	require.NoError(w, err)
	require.Equal(w, "zq-cancel-reason", audit[0].Reason)
	audit, err = n.Audit(ctx, "good")
	require.NoError(w, err)
	require.Equal(w, "zq-order-actor", audit[0].Actor)
	require.Equal(w, "HELD in waiting", audit[0].After)
}

// schedules has a schedule start a workflow with a payload.
func (d *ward) schedules(n *node, flow *engine.Workflow[chart]) {
	w, ctx := n.w, n.w.ctx()
	w.Helper()
	spec := engine.ScheduleSpec{Every: time.Hour}
	created, err := flow.Schedule(ctx, "rounds", spec, chart{Name: "zq-schedule-data"})
	require.NoError(w, err)
	require.True(w, created)
	created, err = flow.Schedule(ctx, "rounds", spec, chart{Name: "zq-schedule-data"})
	require.NoError(w, err)
	require.False(w, created, "it is the same one")
	_, err = flow.Schedule(ctx, "rounds", spec, chart{Name: "another"})
	require.ErrorIs(w, err, engine.ErrScheduleExists)
	require.NoError(w, n.PauseSchedule(ctx, "rounds", "zq-schedule-note"))
	id, err := n.TriggerSchedule(ctx, "rounds")
	require.NoError(w, err)
	require.NoError(w, engine.Signal(ctx, n.Engine, id, verdict, "well"))
	run, err := flow.Wait(ctx, id)
	require.NoError(w, err)
	require.Equal(w, "zq-schedule-data", run.Data.Name)
	info, err := n.GetSchedule(ctx, "rounds")
	require.NoError(w, err)
	require.Equal(w, "zq-schedule-note", info.Note)
}
