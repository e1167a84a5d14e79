package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Verb is what a person may want of a workflow.
type Verb = statemachine.Verb

// The verbs; package statemachine says what each does.
const (
	Retry      = statemachine.Retry
	NewIntent  = statemachine.NewIntent
	Pause      = statemachine.Pause
	Resume     = statemachine.Resume
	Skip       = statemachine.Skip
	Force      = statemachine.Force
	Applied    = statemachine.Applied
	NotApplied = statemachine.NotApplied
	Terminate  = statemachine.Terminate

	// Delete makes a tombstone of a workflow that has ended: its payloads and
	// records go, and its id stays taken.
	Delete Verb = "delete"
)

// Order is what somebody wants of a workflow, and why. It is kept with the
// workflow, for as long as that is.
type Order struct {
	Verb   Verb
	Actor  string // who wants it; "somebody" if empty
	Reason string // for people

	// RequestID names the order: another one of that id for the same workflow is a
	// repetition, and gets the first answer. A new one is made up if it is empty.
	RequestID string

	// Result is the step's result as JSON, for Applied.
	Result []byte

	// Branch is the path of the branch that is meant. If it is empty, and the
	// workflow itself is not HELD but one branch of it is, that one is.
	Branch string

	// DryRun says what would come of it, and does nothing.
	DryRun bool
}

// Operated is what came of an order.
type Operated struct {
	Before   string // how the workflow stood
	After    string // how it stands
	Note     string // what else there is to know: what was left undone, say; often ""
	Repeated bool   // the order was carried out before, and nothing was done now
}

// RefusedError says why an order makes no sense as the workflow stands. Nothing
// has changed. It matches ErrRefused.
type RefusedError struct {
	ID   string
	Verb Verb
	Why  string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s workflow %q: %s", e.Verb, e.ID, e.Why)
}

// Is makes the error match ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }

// orderTries bounds how often an order is decided anew because the workflow has
// moved meanwhile.
const orderTries = 50

// takenPoll is how often Operate looks whether a worker has taken up an order.
const takenPoll = 50 * time.Millisecond

// Operate carries out an order and returns what came of it. It decides by the
// workflow's definition, which must be registered with this engine, and writes
// by compare-and-swap: whatever the workflow does meanwhile is never lost.
// Terminate and Delete work without the definition, too.
//
// A workflow that a worker is at work on takes up Pause and Terminate by itself;
// Operate waits for that until ctx is done. Errors: ErrNotFound, a *RefusedError,
// ErrUnknownDefinition, ErrBadInput.
func (e *Engine) Operate(ctx context.Context, id string, o Order) (Operated, error) {
	if err := CheckID(id); err != nil {
		return Operated{}, err
	}
	if o.RequestID == "" {
		o.RequestID = NewID()
	}
	if err := CheckID(o.RequestID); err != nil {
		return Operated{}, fmt.Errorf("%s workflow %q: request: %w", o.Verb, id, err)
	}
	if o.Actor == "" {
		o.Actor = "somebody"
	}
	for range orderTries {
		done, err := e.operate(ctx, id, o)
		if errors.Is(err, ErrRefused) {
			// As the workflow stands now: because the very same order was carried out
			// by somebody else meanwhile?
			if before, known, again := e.answered(ctx, id, o); again == nil && known {
				return before, nil
			}
		}
		if !errors.Is(err, errMoved) {
			return done, err
		}
	}
	return Operated{}, fmt.Errorf("%s workflow %q: it keeps moving: %w", o.Verb, id, store.ErrRetry)
}

// errMoved says that a workflow has gone on since it was read.
var errMoved = errors.New("workflow went on")

func (e *Engine) operate(ctx context.Context, id string, o Order) (Operated, error) {
	if done, known, err := e.answered(ctx, id, o); err != nil || known {
		return done, err
	}
	wf, err := e.targetOf(ctx, id, o)
	if err != nil {
		return Operated{}, err
	}
	if o.Verb == Delete {
		return e.expire(ctx, wf, o)
	}
	if !wf.Owner.IsZero() {
		return e.askOwner(ctx, wf, o)
	}
	t, done, err := e.decideOrder(ctx, wf, o)
	if err != nil || o.DryRun {
		return done, err
	}
	verdict, err := e.store.Amend(ctx, t, store.Request{Message: o.message(wf.ID), Answer: answerText(done, "")})
	switch {
	case errors.Is(err, store.ErrRetry), errors.Is(err, store.ErrUnsure), err == nil && verdict == store.Lost:
		return Operated{}, errMoved // what became of it is read back first
	case err != nil:
		return Operated{}, fmt.Errorf("%s workflow %q: %w", o.Verb, id, err)
	}
	if o.Verb == Terminate {
		e.terminateBranches(ctx, wf, o)
	}
	e.hints.tell(store.TopicReady)
	if t.Status.Ended() {
		e.hints.tell(store.TopicEnded)
	}
	e.logOrder(id, o, done)
	return done, nil
}

// logOrder leaves out what somebody has written where payloads are encoded.
func (e *Engine) logOrder(id string, o Order, done Operated) {
	args := []any{"workflow", id, "verb", string(o.Verb), "before", done.Before, "after", done.After}
	if e.cfg.Codec == nil {
		args = append(args, "actor", o.Actor, "reason", o.Reason)
	}
	e.log.Debug("verb carried out", args...)
}

// targetOf returns the row that is meant: the workflow's, or a branch's.
func (e *Engine) targetOf(ctx context.Context, id string, o Order) (store.Workflow, error) {
	if o.Branch != "" {
		wf, err := e.store.Get(ctx, store.BranchID(id, o.Branch))
		if err != nil {
			return wf, fmt.Errorf("%s branch %s of workflow %q: %w", o.Verb, o.Branch, id, err)
		}
		return wf, nil
	}
	wf, err := e.store.Get(ctx, id)
	if err != nil {
		return wf, fmt.Errorf("%s workflow %q: %w", o.Verb, id, err)
	}
	if wf.Status == store.Held || wf.Status.Ended() || o.Verb == Pause || o.Verb == Terminate || o.Verb == Delete {
		return wf, nil
	}
	held, err := e.store.List(ctx, store.Query{BranchesOf: id, Statuses: []store.Status{store.Held}, Limit: 2})
	switch {
	case err != nil:
		return wf, fmt.Errorf("%s workflow %q: %w", o.Verb, id, err)
	case len(held) == 1:
		return e.store.Get(ctx, held[0].ID)
	case len(held) > 1:
		return wf, &RefusedError{id, o.Verb, fmt.Sprintf("several branches are held, such as %s and %s: name one",
			store.BranchOf(held[0].ID), store.BranchOf(held[1].ID))}
	}
	return wf, nil
}

// decideOrder computes what an order does to a workflow that nobody owns.
func (e *Engine) decideOrder(ctx context.Context, wf store.Workflow, o Order) (store.Transition, Operated, error) {
	reg, err := e.lookup(wf.Definition)
	if err != nil && o.Verb == Terminate {
		return e.terminateUnknown(ctx, wf, o)
	}
	if err != nil {
		return store.Transition{}, Operated{}, fmt.Errorf("%s workflow %q: %w", o.Verb, wf.ID, err)
	}
	a, err := e.advanceOf(ctx, reg, wf)
	if errors.Is(err, ErrCodec) && o.Verb == Terminate {
		return e.terminateUnknown(ctx, wf, o)
	}
	if err != nil {
		return store.Transition{}, Operated{}, fmt.Errorf("%s workflow %q: %w", o.Verb, wf.ID, err)
	}
	if wf.Parent != "" && a.cursor.Phase == statemachine.Ended && o.Verb == NewIntent {
		return store.Transition{}, Operated{}, &RefusedError{store.RootOf(wf.ID), o.Verb, fmt.Sprintf("its parent %q was told of its end", wf.Parent)}
	}
	now, err := e.store.Now(ctx)
	if err != nil {
		return store.Transition{}, Operated{}, err
	}
	refused, err := a.obey(ctx, o, statemachine.Asked{Begun: wf.Mark.Attempt > 0, At: now})
	if err != nil {
		return store.Transition{}, Operated{}, fmt.Errorf("%s workflow %q: %w", o.Verb, wf.ID, err)
	}
	if refused != "" {
		return store.Transition{}, Operated{}, &RefusedError{store.RootOf(wf.ID), o.Verb, refused}
	}
	if err := tooEarly(reg, wf, o, now); err != nil {
		return store.Transition{}, Operated{}, err
	}
	out := a.finish(ctx)
	if out.stuck {
		return store.Transition{}, Operated{}, &RefusedError{store.RootOf(wf.ID), o.Verb, out.cursor.Reason}
	}
	t := out.transition
	t.Place, t.Release = unowned(t.Place), true
	done := Operated{Before: standsAt(wf.Status, wf.State), After: standsAt(t.Status, t.State)}
	if o.Verb == Terminate {
		done.Note = leftUndone(reg.machine, a.cursor.Past)
	}
	return t, done, nil
}

// advanceOf is an advance of a workflow outside of any worker: it decides, and
// runs nothing.
func (e *Engine) advanceOf(ctx context.Context, reg *registered, wf store.Workflow) (*advance, error) {
	cur, err := cursorOf(wf)
	if err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	inbox, err := e.store.Inbox(ctx, wf.ID)
	if err != nil {
		return nil, fmt.Errorf("read inbox of workflow %q: %w", wf.ID, err)
	}
	j := job{left: noDeadline, id: wf.ID, def: wf.Definition, rev: wf.Revision, parent: wf.Parent, cursor: cur, inbox: inbox, wakeAt: wf.WakeAt}
	a := &advance{shell: &shell{eng: e, store: e.store}, cut: ctx, m: reg.machine, job: j, cursor: cur, inbox: inbox}
	return a, a.loadPast(ctx)
}

// tooEarly refuses to settle the outcome of a call that may still be under way:
// "it has not happened" could be overtaken by the call itself.
func tooEarly(reg *registered, wf store.Workflow, o Order, now time.Time) error {
	if o.Verb != Applied && o.Verb != NotApplied {
		return nil
	}
	spec, ok := reg.machine.Spec(wf.Mark.Step)
	if !ok {
		return nil
	}
	// The last attempt began before the workflow was held.
	if sure := wf.UpdatedAt.Add(spec.Policy.AttemptTimeout()); now.Before(sure) {
		return &RefusedError{store.RootOf(wf.ID), o.Verb, fmt.Sprintf("its last call may be under way until %s", sure.UTC().Format(time.RFC3339))}
	}
	return nil
}

func unknownNote(wf store.Workflow) string {
	if err := readable(wf); err != nil {
		return "its values cannot be decoded here"
	}
	return "its definition is not known here"
}

// askOwner has the worker that is at work on a workflow take up an order.
func (e *Engine) askOwner(ctx context.Context, wf store.Workflow, o Order) (Operated, error) {
	if wf.Status == store.Held { // claimed for a message that it does not take up
		select {
		case <-time.After(takenPoll):
		case <-ctx.Done():
		}
		return Operated{}, errMoved
	}
	if o.Verb != Pause && o.Verb != Terminate {
		return Operated{}, &RefusedError{store.RootOf(wf.ID), o.Verb, "a worker is at work on it: it is not held"}
	}
	if o.DryRun {
		return Operated{Before: standsAt(wf.Status, wf.State), After: "to be decided by worker " + wf.Owner.String() + ", which is at work on it"}, nil
	}
	var results []store.SendResult
	err := retry(ctx, func() (err error) {
		results, err = e.store.Send(ctx, []store.Message{o.message(wf.ID)})
		return err
	})
	if err == nil {
		err = sendError(results[0])
	}
	if err != nil {
		return Operated{}, fmt.Errorf("%s workflow %q: %w", o.Verb, wf.ID, err)
	}
	e.hints.tell(store.TopicReady)
	tick := time.NewTicker(takenPoll)
	defer tick.Stop()
	for {
		if done, known, err := e.answered(ctx, store.RootOf(wf.ID), o); err != nil || known {
			done.Repeated = results[0] == store.SendDuplicate
			return done, err
		}
		now, err := e.store.Get(ctx, wf.ID)
		if err == nil && now.Owner.IsZero() {
			return Operated{}, errMoved // decided here, then
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Operated{}, fmt.Errorf("%s workflow %q: asked for, and not yet taken up by its worker: %w", o.Verb, wf.ID, context.Cause(ctx))
		}
	}
}

// expire makes a tombstone of a workflow that has ended.
func (e *Engine) expire(ctx context.Context, wf store.Workflow, o Order) (Operated, error) {
	done := Operated{Before: standsAt(wf.Status, wf.State), After: string(store.Expired)}
	switch {
	case wf.Status == store.Expired:
		done.Repeated = true
		return done, nil
	case !wf.Status.Ended():
		return Operated{}, &RefusedError{wf.ID, o.Verb, "it has not ended: cancel or terminate it first"}
	case o.DryRun:
		return done, nil
	}
	// The request first, as a transition that changes nothing: so it is on record
	// whoever asks, and stays beside the tombstone.
	t := store.Transition{Guard: store.Guard{ID: wf.ID, Revision: wf.Revision}, Place: wf.Place}
	t.Data = nil
	verdict, err := e.store.Amend(ctx, t, store.Request{Message: o.message(wf.ID), Answer: answerText(done, "")})
	if err != nil || verdict == store.Lost {
		return Operated{}, errors.Join(errMoved, err)
	}
	if _, err := e.store.Expire(ctx, []string{wf.ID}); err != nil {
		return Operated{}, fmt.Errorf("delete workflow %q: %w", wf.ID, err)
	}
	return done, nil
}

func standsAt(s store.Status, state string) string {
	if state == "" {
		return string(s)
	}
	return string(s) + " in " + state
}

// by says for people who wants it, and why.
func (o Order) by() string {
	if o.Reason == "" {
		return o.Actor
	}
	return o.Actor + ": " + o.Reason
}

// orderPayload is what an order looks like in the inbox.
type orderPayload struct {
	Actor  string          `json:"actor"`
	Reason string          `json:"reason,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

func (o Order) message(row string) store.Message {
	p := orderPayload{Actor: storable(o.Actor), Reason: storable(o.Reason)}
	if json.Valid(o.Result) {
		p.Result = o.Result
	}
	payload, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("encode order: %v", err)) // texts and valid JSON always encode
	}
	return store.Message{WorkflowID: row, ID: o.RequestID, Kind: store.MessageVerb, Name: string(o.Verb), Payload: payload}
}
