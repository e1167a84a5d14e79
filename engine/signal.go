package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// SendOption tunes one call of Signal or Cancel.
type SendOption func(*store.Message)

// MessageID names the message: a second one of that id for the same workflow
// is a duplicate and changes nothing, even after the first was consumed.
// Without it each call is a message of its own.
func MessageID(id string) SendOption { return func(m *store.Message) { m.ID = id } }

// Signal sends v to a workflow that waits, or will come to wait, for sig. It is
// kept until then. A signal that was sent before the wait's time was over beats
// the timeout. Errors: ErrNotFound, ErrEnded; ErrUnknownSignal and ErrBadInput if
// the workflow's definition is registered with this engine, which can tell.
func Signal[T any](ctx context.Context, e *Engine, id string, sig statemachine.Signal[T], v T, opts ...SendOption) error {
	enc, err := encodeInput(v)
	if err != nil {
		return fmt.Errorf("signal workflow %q: %w", id, err)
	}
	return e.SignalJSON(ctx, id, sig.Name, enc, opts...)
}

// SignalTx is Signal inside a transaction of the caller's: the signal is there if and
// only if that commits. A worker finds it at its next poll. A workflow that was started
// in the same transaction can be sent one. One that ends before the commit never sees
// it, though it was accepted. Whether the workflow ever waits for sig is not checked.
func SignalTx[T any](ctx context.Context, tx store.Tx, e *Engine, id string, sig statemachine.Signal[T], v T, opts ...SendOption) error {
	enc, err := encodeInput(v)
	if err != nil {
		return fmt.Errorf("signal workflow %q: %w", cutText(id, MaxIDBytes), err)
	}
	if len(enc) > e.cfg.MaxPayload {
		return fmt.Errorf("signal workflow %q: %w: %d bytes, at most %d", cutText(id, MaxIDBytes), ErrTooLarge, len(enc), e.cfg.MaxPayload)
	}
	m := store.Message{WorkflowID: id, Kind: store.MessageSignal, Name: sig.Name, Payload: enc}
	if err := named(&m, opts); err != nil {
		return fmt.Errorf("signal workflow %q: %w", cutText(id, MaxIDBytes), err)
	}
	r, err := e.store.SendTx(ctx, tx, m)
	if err == nil {
		err = sendError(r)
	}
	if err != nil {
		return fmt.Errorf("signal workflow %q: %w", id, err)
	}
	return nil
}

// named gives a message its id, and checks that and the workflow's.
func named(m *store.Message, opts []SendOption) error {
	m.ID = NewID()
	for _, opt := range opts {
		opt(m)
	}
	if err := CheckID(m.WorkflowID); err != nil {
		return err
	}
	if err := CheckID(m.ID); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return nil
}

// SignalJSON is Signal for a signal known only by name, with its value as JSON.
// If the workflow's definition is registered here, the value must fit.
func (e *Engine) SignalJSON(ctx context.Context, id, name string, value []byte, opts ...SendOption) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if len(value) > e.cfg.MaxPayload {
		return fmt.Errorf("signal workflow %q: %w: %d bytes, at most %d", id, ErrTooLarge, len(value), e.cfg.MaxPayload)
	}
	var wf store.Workflow
	err := retry(ctx, func() (err error) {
		wf, err = e.store.Get(ctx, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("signal workflow %q: %w", id, err)
	}
	if !json.Valid(value) {
		return fmt.Errorf("signal workflow %q: %w: the value of signal %q is not JSON", id, ErrBadInput, name)
	}
	if reg, err := e.lookup(wf.Definition); err == nil {
		if err := reg.checkSignal(name, value); err != nil {
			return fmt.Errorf("signal workflow %q: %w", id, err)
		}
	}
	return e.send(ctx, "signal", store.Message{WorkflowID: id, Kind: store.MessageSignal, Name: name, Payload: value}, opts)
}

// checkSignal returns an error if the definition has no such signal or its
// value does not decode.
func (r *registered) checkSignal(name string, value []byte) error {
	known, err := r.machine.CheckSignal(name, value)
	switch {
	case !known:
		return fmt.Errorf("%w: %s does not wait for %q", ErrUnknownSignal, r.def.Name, name)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	return nil
}

// Cancel asks for a workflow to be rolled back: its steps are undone, newest
// first, and it ends COMPENSATED. It returns once the request is durable; the
// rollback begins when the step under way has ended or was cut off. Errors:
// ErrNotFound, ErrEnded, ErrPastPivot.
func (e *Engine) Cancel(ctx context.Context, id, reason string, opts ...SendOption) error {
	if err := CheckID(id); err != nil {
		return err
	}
	m := store.Message{WorkflowID: id, Kind: store.MessageCancel, Payload: []byte(storable(reason))}
	return e.send(ctx, "cancel", m, opts)
}

func (e *Engine) send(ctx context.Context, verb string, m store.Message, opts []SendOption) error {
	if err := named(&m, opts); err != nil {
		return fmt.Errorf("%s workflow %q: %w", verb, m.WorkflowID, err)
	}
	var results []store.SendResult
	err := retry(ctx, func() (err error) {
		results, err = e.store.Send(ctx, []store.Message{m})
		return err
	})
	if err == nil {
		err = sendError(results[0])
	}
	if err != nil {
		return fmt.Errorf("%s workflow %q: %w", verb, m.WorkflowID, err)
	}
	e.hints.tell(store.TopicReady)
	return nil
}

func sendError(r store.SendResult) error {
	switch r {
	case store.SendNotFound:
		return ErrNotFound
	case store.SendEnded:
		return ErrEnded
	case store.SendPastPivot:
		return ErrPastPivot
	}
	return nil // accepted, or a duplicate of what was
}
