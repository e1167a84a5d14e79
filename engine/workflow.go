package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Workflow is a registered definition: the typed handle by which its workflows
// are started and read. It is safe for concurrent use.
type Workflow[S any] struct {
	eng *Engine
	reg *registered
}

// Started is the answer to a start.
type Started struct {
	ID      string
	Created bool         // false if the workflow was there before
	Status  store.Status // how it stands now
}

// Snapshot is a workflow as it stood when it was read.
type Snapshot[S any] struct {
	Info
	Data S
}

// Info is a workflow as it stood when it was read, with its data encoded.
type Info struct {
	ID         string
	Definition store.Def
	Status     store.Status
	State      statemachine.State
	Raw        []byte             // the data, encoded; as a codec wrote it, if that cannot be undone: see Encoded
	Cause      statemachine.Cause // why it is or was rolled back, if so
	Reason     string             // the last failure, or why it is HELD
	Mark       store.Mark         // the step under way, if any
	Item       int                // the item that the step under way is for, from 1; 0 if there are none
	Awaits     string             // the signal it waits for, if any
	Queue      string             // the queue that it waits in for a worker; "" for none
	QueueKey   string
	Priority   int
	Open       int       // how many branches it waits for
	WakeAt     time.Time // when it wakes by itself; zero if it does not
	Owner      store.WorkerID
	Revision   int64 // how many transitions, claims and releases it has seen
	CreatedAt  time.Time
	UpdatedAt  time.Time
	EndedAt    time.Time // zero unless ended

	origin string // of a fork: whose keys it keeps
	kept   map[string]int
}

// Start starts the workflow id with data, or finds it. The id is the business
// key: a second start with the same id and data gives the same workflow with
// Created false, whatever has become of it; with other data it is an
// ErrConflict, and once the workflow has expired an ErrExpired. It never runs
// twice.
func (w *Workflow[S]) Start(ctx context.Context, id string, data S, opts ...StartOption) (Started, error) {
	enc, err := encodeInput(data)
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", cutText(id, MaxIDBytes), err)
	}
	return w.eng.start(ctx, w.reg, id, enc, opts...)
}

// StartTx is Start inside a transaction of the caller's: the workflow exists if
// and only if that commits. A worker finds it at its next poll.
func (w *Workflow[S]) StartTx(ctx context.Context, tx store.Tx, id string, data S, opts ...StartOption) (Started, error) {
	enc, err := encodeInput(data)
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", cutText(id, MaxIDBytes), err)
	}
	return w.eng.startTx(ctx, tx, w.reg, id, enc, opts...)
}

// Get returns the workflow as it stands, or ErrNotFound, or an ErrConflict if it
// is of another definition.
func (w *Workflow[S]) Get(ctx context.Context, id string) (Snapshot[S], error) {
	info, err := w.eng.Get(ctx, id)
	if err != nil {
		return Snapshot[S]{}, err
	}
	return w.snapshot(info)
}

// Wait returns the workflow once it has ended, however it ended, or the error
// of ctx. A HELD workflow has not ended. A workflow of another definition is an
// ErrConflict.
func (w *Workflow[S]) Wait(ctx context.Context, id string) (Snapshot[S], error) {
	info, err := w.eng.Wait(ctx, id)
	if err != nil {
		return Snapshot[S]{}, err
	}
	return w.snapshot(info)
}

// snapshot decodes the data of a workflow of this definition. Another one's data
// might well decode into an S, and mean something else.
func (w *Workflow[S]) snapshot(info Info) (Snapshot[S], error) {
	info.State = w.reg.machine.NameOf(info.State)
	s := Snapshot[S]{Info: info}
	if info.Definition.Name != w.reg.def.Name {
		return s, &ConflictError{info.ID, "definition", info.Definition, w.reg.def}
	}
	if len(info.Raw) == 0 {
		return s, nil
	}
	if isCoded(info.Raw) {
		return s, codecErrorOf(ofWorkflow(info.ID), info.Raw)
	}
	if err := json.Unmarshal(info.Raw, &s.Data); err != nil {
		return s, fmt.Errorf("decode data of workflow %q: %w", info.ID, err)
	}
	return s, nil
}
