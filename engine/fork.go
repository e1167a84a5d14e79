package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// ForkVerb is what a fork is called on record.
const ForkVerb Verb = "fork"

// ForkOrder is the wish for a copy of a workflow that goes on from a step.
type ForkOrder struct {
	From string // the workflow that is copied; it must have ended or be HELD
	To   string // the id of the copy
	Step string // the step that the copy begins with: where it began for the last time

	// Input is what From was started with, as JSON. It is needed if anything was done
	// after Step began, since then the data of that moment must be computed.
	Input []byte

	Actor     string // who wants it; "somebody" if empty
	Reason    string // for people
	RequestID string // names the order: a second one of that id is a repetition

	// DryRun says what would come of it, and does nothing.
	DryRun bool
}

// Forked is what came of a fork.
type Forked struct {
	State    statemachine.State // where the copy begins
	Repeated bool               // it was made before, and nothing was done now

	// Keeps are the keys under which the copy asks again what From has asked: whoever
	// honours them does it once.
	Keeps []step.Key

	// Repeats are the effects that no key protects: the copy has them a second time.
	Repeats []string
}

// Fork makes a copy of a workflow that begins with one of its steps, as if those before
// had just been done: their records are copied, and a rollback of the copy undoes them,
// with the keys that From would use. Of the steps that From has begun the copy keeps
// the keys too; later ones carry its own id. From stays as it is.
//
// It is refused (a *RefusedError) where that could not be told or would be wrong: while
// From goes on; if a call was undone, since its key would be answered as if it were
// not; among branches and children; if the data at Step does not follow from what is
// recorded; if To is taken. It is one transaction, and may be repeated.
func (e *Engine) Fork(ctx context.Context, o ForkOrder) (Forked, error) {
	for _, id := range []string{o.From, o.To} {
		if err := CheckID(id); err != nil {
			return Forked{}, err
		}
	}
	o.RequestID, o.Actor = or(o.RequestID, NewID()), or(o.Actor, "somebody")
	if err := CheckID(o.RequestID); err != nil {
		return Forked{}, fmt.Errorf("fork workflow %q: request: %w", o.From, err)
	}
	plan, err := e.planFork(ctx, o)
	if err != nil {
		return Forked{}, err
	}
	_, known, err := e.answered(ctx, o.To, Order{Verb: ForkVerb, RequestID: o.RequestID})
	switch {
	case err != nil:
		return Forked{}, err
	case known:
		plan.done.Repeated = true
		return plan.done, nil
	case o.DryRun:
		return plan.done, nil
	}
	var r store.StartResult
	err = retry(ctx, func() (err error) {
		r, err = e.store.Fork(ctx, plan.fork)
		return err
	})
	if err != nil {
		return Forked{}, fmt.Errorf("fork workflow %q: %w", o.From, err)
	}
	if !r.Created {
		if _, known, err := e.answered(ctx, o.To, Order{Verb: ForkVerb, RequestID: o.RequestID}); err != nil || !known {
			return Forked{}, errors.Join(&RefusedError{o.From, ForkVerb, fmt.Sprintf("the id %q is taken", o.To)}, err)
		}
		plan.done.Repeated = true
	}
	e.hints.tell(store.TopicReady)
	return plan.done, nil
}

// forkPlan is what a fork would write, and what is said of it.
type forkPlan struct {
	fork store.Fork
	done Forked
}

// forking is a fork that is being planned.
type forking struct {
	o       ForkOrder
	from    store.Workflow
	cursor  statemachine.Cursor // of from
	machine *statemachine.Machine
	recs    []store.StepRecord // of from
}

func (e *Engine) planFork(ctx context.Context, o ForkOrder) (forkPlan, error) {
	f := forking{o: o}
	var err error
	if f.from, err = e.store.Get(ctx, o.From); err != nil {
		return forkPlan{}, fmt.Errorf("fork workflow %q: %w", o.From, err)
	}
	reg, err := e.lookup(f.from.Definition)
	if err != nil {
		return forkPlan{}, fmt.Errorf("fork workflow %q: %w", o.From, err)
	}
	f.machine = reg.machine
	if f.cursor, err = cursorOf(f.from); err != nil {
		return forkPlan{}, fmt.Errorf("read workflow %q: %w", o.From, err)
	}
	if f.recs, err = e.store.History(ctx, o.From); err != nil {
		return forkPlan{}, fmt.Errorf("read steps of workflow %q: %w", o.From, err)
	}
	if err := f.readable(); err != nil {
		return forkPlan{}, fmt.Errorf("fork: %w", err)
	}
	if why := f.refusal(); why != "" {
		return forkPlan{}, &RefusedError{o.From, ForkVerb, why}
	}
	cur, copied, err := e.forkCursor(ctx, reg, &f)
	if err != nil {
		return forkPlan{}, err
	}
	cur.ID, cur.Origin, cur.Kept = o.To, o.From, f.kept()
	plan := f.plan(cur, copied)
	if why := f.undone(copied); why != "" {
		return forkPlan{}, &RefusedError{o.From, ForkVerb, why}
	}
	return plan, nil
}

// readable returns an error if a value that the copy would hold cannot be read here.
func (f *forking) readable() error {
	values := [][]byte{f.from.Data}
	for _, r := range f.recs {
		values = append(values, r.Input, r.Output)
	}
	for _, v := range values {
		if isCoded(v) {
			return codecErrorOf(ofWorkflow(f.o.From), v)
		}
	}
	return nil
}

// refusal says why the workflow cannot be forked at all.
func (f *forking) refusal() string {
	_, byItself := f.machine.StateOf(f.o.Step)
	_, known := f.machine.Spec(f.o.Step)
	switch {
	case f.from.Status == store.Expired:
		return "it has expired"
	case f.from.Parent != "":
		return fmt.Sprintf("it is a child: its parent %q waits for it, and for no copy", f.from.Parent)
	case !f.from.Status.Ended() && f.from.Status != store.Held:
		return "it goes on: a copy is made of what has ended or is held"
	case f.cursor.Origin != "":
		return fmt.Sprintf("it is a fork of %q itself", f.cursor.Origin)
	case !known:
		return fmt.Sprintf("its definition has no step %q", f.o.Step)
	case !byItself:
		return fmt.Sprintf("step %q runs in a branch, or is a child or an undo: name one that a state runs by itself", f.o.Step)
	case slices.ContainsFunc(f.recs, func(r store.StepRecord) bool { return r.Branch != "" || r.Item > 0 }):
		return "some of its steps have run in branches"
	case f.from.Status == store.Held && f.cursor.From == statemachine.RollingBack:
		return "it is held in its rollback"
	case !f.begun(f.o.Step):
		return fmt.Sprintf("it never came to step %q", f.o.Step)
	}
	return ""
}

// begun reports whether an attempt of a step was begun.
func (f *forking) begun(name string) bool {
	return f.from.Mark.Step == name || slices.ContainsFunc(f.recs, func(r store.StepRecord) bool { return r.Step == name })
}

// forkCursor is where the copy begins, and how many of the records lie before that.
func (e *Engine) forkCursor(ctx context.Context, reg *registered, f *forking) (statemachine.Cursor, []store.StepRecord, error) {
	if f.o.Input == nil {
		cur, copied, ok := f.asItStands()
		if !ok {
			return cur, nil, &RefusedError{f.o.From, ForkVerb, fmt.Sprintf("other steps came after %s: to compute the data of that moment its input is needed", f.o.Step)}
		}
		return cur, copied, nil
	}
	data, err := reg.canonical(f.o.Input)
	if err != nil {
		return statemachine.Cursor{}, nil, fmt.Errorf("fork workflow %q: %w", f.o.From, err)
	}
	if e.inputHash(data) != f.from.InputHash {
		return statemachine.Cursor{}, nil, &RefusedError{f.o.From, ForkVerb, "that is not the input that it was started with"}
	}
	played, err := e.played(ctx, f)
	if err != nil {
		return statemachine.Cursor{}, nil, err
	}
	cur, before, err := f.machine.Replay(f.o.From, data, played, f.o.Step)
	if err != nil {
		return statemachine.Cursor{}, nil, &RefusedError{f.o.From, ForkVerb, fmt.Sprintf("step %s: %v", f.o.Step, err)}
	}
	var copied []store.StepRecord
	for _, r := range f.recs {
		if slices.ContainsFunc(before, func(b statemachine.Record) bool { return b.Step == r.Step && b.Group == r.Group }) {
			copied = append(copied, r)
		}
	}
	return cur, copied, nil
}

// asItStands is for the step that was the last to begin on the way forward, and whose
// result was not taken up: the data is what it was then, since a rollback changes none.
func (f *forking) asItStands() (cur statemachine.Cursor, copied []store.StepRecord, ok bool) {
	group := 0
	if f.from.Mark.Step == f.o.Step {
		group = f.from.Mark.Group
	}
	for _, r := range f.recs {
		switch spec, _ := f.machine.Spec(r.Step); {
		case spec.IsUndo:
		case group > 0: // a step after the last that bears the name
			return cur, nil, false
		case r.Step == f.o.Step && r.Status != store.StepDone && f.isLast(r):
			group = r.Group
		default:
			copied = append(copied, r)
		}
	}
	if group == 0 {
		return cur, nil, false
	}
	s, _ := f.machine.StateOf(f.o.Step)
	return statemachine.Cursor{
		State: s, Phase: statemachine.Running, Data: f.from.Data, Pivoted: f.from.Pivoted, Groups: f.cursor.Groups,
		Mark: statemachine.Mark{Step: f.o.Step, Group: group},
	}, copied, true
}

// isLast reports whether no step was recorded after r on the way forward.
func (f *forking) isLast(r store.StepRecord) bool {
	return !slices.ContainsFunc(f.recs, func(o store.StepRecord) bool {
		spec, _ := f.machine.Spec(o.Step)
		return !spec.IsUndo && o.Revision > r.Revision
	}) && f.from.Mark.Step == ""
}

// played is what has happened to the workflow on its way forward, in order.
func (e *Engine) played(ctx context.Context, f *forking) ([]statemachine.Played, error) {
	requests, err := e.store.Requests(ctx, f.o.From)
	if err != nil {
		return nil, fmt.Errorf("read the requests of %q: %w", f.o.From, err)
	}
	var signals []store.Request
	for _, r := range requests {
		if r.Kind == store.MessageSignal && !r.TakenAt.IsZero() {
			if isCoded(r.Payload) {
				return nil, fmt.Errorf("fork: %w", codecErrorOf(ofWorkflow(f.o.From), r.Payload))
			}
			signals = append(signals, r)
		}
	}
	slices.SortStableFunc(signals, func(a, b store.Request) int { return a.TakenAt.Compare(b.TakenAt) })
	var all []statemachine.Played
	signal := func(r store.Request) { all = append(all, statemachine.Played{Signal: r.Name, Payload: r.Payload}) }
	for _, r := range f.recs {
		if spec, _ := f.machine.Spec(r.Step); spec.IsUndo {
			continue
		}
		for len(signals) > 0 && signals[0].TakenAt.Before(r.EndedAt) {
			signal(signals[0]) // one that was taken up with the record comes after it
			signals = signals[1:]
		}
		all = append(all, statemachine.Played{Record: statemachine.Record{Step: r.Step, Group: r.Group, Outcome: outcomeOf(r.Status), Out: r.Output}})
	}
	for _, r := range signals {
		signal(r)
	}
	if m := f.from.Mark; m.Step != "" {
		all = append(all, statemachine.Played{Record: statemachine.Record{Step: m.Step, Group: m.Group, Outcome: statemachine.Unknown}})
	}
	return all, nil
}

// kept says up to which group each step and undo keeps its key.
func (f *forking) kept() map[string]int {
	kept := map[string]int{}
	keep := func(name string, group int) {
		kept[name] = max(kept[name], group)
		if spec, ok := f.machine.Spec(name); ok && spec.Undo != nil {
			kept[spec.Undo.Name] = max(kept[spec.Undo.Name], group)
		}
	}
	for _, r := range f.recs {
		keep(r.Step, r.Group)
	}
	if f.from.Mark.Step != "" {
		keep(f.from.Mark.Step, f.from.Mark.Group)
	}
	return kept
}

// undone says which undone step forbids the copy. One in a transaction that comes
// again is simply done again.
func (f *forking) undone(copied []store.StepRecord) string {
	for _, u := range f.recs {
		spec, _ := f.machine.Spec(u.Step)
		if !spec.IsUndo || u.Status == store.StepFailed {
			continue
		}
		for _, r := range f.recs {
			of, _ := f.machine.Spec(r.Step)
			if of.Undo == nil || of.Undo.Name != u.Step || r.Group != u.Group {
				continue
			}
			before := slices.ContainsFunc(copied, func(c store.StepRecord) bool { return c.Step == r.Step && c.Group == r.Group })
			if before || of.Kind != step.KindInTx {
				return fmt.Sprintf("%s was undone by %s: the copy would take it for done; begin anew with retry --new-intent", r.Step, u.Step)
			}
		}
	}
	return ""
}

// plan puts together what is written and what is said.
func (f *forking) plan(cur statemachine.Cursor, copied []store.StepRecord) forkPlan {
	n := store.New{
		ID: f.o.To, Definition: f.from.Definition, InputHash: f.from.InputHash, Line: f.from.Line,
		Place: unowned(placeOf(f.machine, cur, follow{})),
	}
	n.Mark.Attempt = 0
	o := Order{Verb: ForkVerb, Actor: f.o.Actor, Reason: f.o.Reason, RequestID: f.o.RequestID}
	before := standsAt(f.from.Status, f.from.State)
	asked := func(id, after string) store.Request {
		return store.Request{Message: o.message(id), Answer: answerText(Operated{Before: before, After: after}, "")}
	}
	plan := forkPlan{
		fork: store.Fork{New: n, Steps: copied, Asked: []store.Request{
			asked(f.o.To, "made of "+f.o.From+", "+standsAt(n.Status, n.State)),
			asked(f.o.From, before+"; "+f.o.To+" is made of it"),
		}},
		done: Forked{State: cur.State},
	}
	f.consequences(&plan.done, cur, copied)
	return plan
}

// consequences lists what the copy asks again, and what it does again.
func (f *forking) consequences(done *Forked, cur statemachine.Cursor, copied []store.StepRecord) {
	seen := map[string]bool{}
	again := func(name string, group int) {
		spec, _ := f.machine.Spec(name)
		text := fmt.Sprintf("%s (%s)", name, spec.Kind)
		switch {
		case spec.IsUndo || seen[text+fmt.Sprint(group)]:
		case spec.Kind == step.KindCall:
			done.Keeps = append(done.Keeps, cur.Key(name, 0, group))
		case !slices.Contains(done.Repeats, text):
			done.Repeats = append(done.Repeats, text)
		}
		seen[text+fmt.Sprint(group)] = true
	}
	for _, r := range f.recs {
		if !slices.ContainsFunc(copied, func(c store.StepRecord) bool { return c.Step == r.Step && c.Group == r.Group }) {
			again(r.Step, r.Group)
		}
	}
	if f.from.Mark.Step != "" {
		again(f.from.Mark.Step, f.from.Mark.Group)
	}
}

// String says in one line what a fork means.
func (f Forked) String() string {
	text := "begins in " + string(f.State)
	if len(f.Keeps) > 0 {
		keys := make([]string, len(f.Keeps))
		for i, k := range f.Keeps {
			keys[i] = k.String()
		}
		text += "; asks again with the keys " + strings.Join(keys, ", ")
	}
	if len(f.Repeats) > 0 {
		text += "; does again " + strings.Join(f.Repeats, ", ")
	}
	return text
}
