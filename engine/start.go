package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// StartJSON starts a workflow of the newest registered version of a definition,
// known only by name, with its data as JSON. The data must fit the definition's
// type exactly. Otherwise it is [Workflow.Start].
func (e *Engine) StartJSON(ctx context.Context, definition, id string, data []byte, opts ...StartOption) (Started, error) {
	if err := CheckID(id); err != nil {
		return Started{}, err
	}
	reg, err := e.newest(definition)
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", id, err)
	}
	enc, err := reg.canonical(data)
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", id, err)
	}
	return e.start(ctx, reg, id, enc, opts...)
}

func (e *Engine) start(ctx context.Context, reg *registered, id string, data []byte, opts ...StartOption) (Started, error) {
	n, err := e.prepare(reg, id, data, opts...)
	if err != nil {
		return Started{}, err
	}
	res, err := e.insert(ctx, n)
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", id, err)
	}
	return judge(n, res)
}

// insert goes through the worker of this process, if there is one, so that the
// workflow may run at once and starts share commits.
func (e *Engine) insert(ctx context.Context, n newWorkflow) (store.StartResult, error) {
	if sh := e.working(); sh != nil {
		if res, err := sh.start(ctx, n); !errors.Is(err, errNotWorking) {
			return res, err
		}
	}
	var results []store.StartResult
	err := retry(ctx, func() (err error) {
		results, err = e.store.Start(ctx, []store.New{n.ownedBy(store.WorkerID{})})
		return err
	})
	if err != nil {
		return store.StartResult{}, err
	}
	e.hints.tell(store.TopicReady)
	return results[0], nil
}

func (e *Engine) startTx(ctx context.Context, tx store.Tx, reg *registered, id string, data []byte, opts ...StartOption) (Started, error) {
	n, err := e.prepare(reg, id, data, opts...)
	if err != nil {
		return Started{}, err
	}
	res, err := e.store.StartTx(ctx, tx, n.ownedBy(store.WorkerID{}))
	if err != nil {
		return Started{}, fmt.Errorf("start workflow %q: %w", id, err)
	}
	return judge(n, res)
}

// newWorkflow is a workflow about to be inserted: its row, and what its owner
// would do next.
type newWorkflow struct {
	store.New
	cursor statemachine.Cursor
	next   follow
	delay  time.Duration
	plain  [16]byte // the hash of its input without a codec
}

// mayBegin reports whether a worker may own the workflow from its start: it neither
// waits in a queue nor for a time.
func (n newWorkflow) mayBegin() bool {
	return n.next.run != nil && n.Queue == "" && n.delay == 0
}

// ownedBy is the row to insert: with an owner it begins at once, without one it
// waits to be claimed.
func (n newWorkflow) ownedBy(w store.WorkerID) store.New {
	row := n.New
	if row.Owner = w; w.IsZero() {
		row.Place = unowned(row.Place)
	}
	if row.Wake.Kind == store.WakeAfter {
		row.Wake.After += n.delay
	}
	return row
}

// prepare checks everything that can be checked without the database.
func (e *Engine) prepare(reg *registered, id string, data []byte, opts ...StartOption) (newWorkflow, error) {
	if err := CheckID(id); err != nil {
		return newWorkflow{}, err
	}
	o, err := optionsOf(reg, opts)
	if err != nil {
		return newWorkflow{}, fmt.Errorf("start workflow %q: %w", id, err)
	}
	if len(data) > e.cfg.MaxPayload {
		return newWorkflow{}, fmt.Errorf("start workflow %q: input: %w: %d bytes, at most %d", id, ErrTooLarge, len(data), e.cfg.MaxPayload)
	}
	cur, cmds, err := reg.machine.Next(statemachine.Cursor{ID: id, Data: data, PastKnown: true}, statemachine.Started{})
	if err != nil {
		return newWorkflow{}, fmt.Errorf("start workflow %q: %w: %w", id, ErrBadInput, err)
	}
	next := followOf(cmds)
	cur = capStart(reg.machine, cur, &next)
	return newWorkflow{
		New:    store.New{ID: id, Definition: reg.def, InputHash: e.inputHash(data), Line: o.line, Place: placeOf(reg.machine, cur, next)},
		cursor: cur,
		next:   next,
		delay:  o.delay,
		plain:  plainHash(data),
	}, nil
}

// capStart has a workflow that begins by waiting wake at its deadline at the latest.
func capStart(m *statemachine.Machine, c statemachine.Cursor, next *follow) statemachine.Cursor {
	limit := m.Deadline()
	if limit > 0 && c.Phase == statemachine.Waiting && (next.wake == nil || *next.wake > limit) {
		next.wake, next.at, c.Capped = &limit, time.Time{}, true
	}
	return c
}

// judge tells a duplicate start from a conflicting one. The first may have come
// before there was a codec.
func judge(n newWorkflow, res store.StartResult) (Started, error) {
	switch {
	case res.Created:
	case res.Status == store.Expired:
		return Started{}, fmt.Errorf("start workflow %q: %w", n.ID, ErrExpired)
	case res.Definition.Name != n.Definition.Name:
		return Started{}, &ConflictError{n.ID, "definition", res.Definition, n.Definition}
	case res.InputHash != n.InputHash && res.InputHash != n.plain:
		return Started{}, &ConflictError{n.ID, "input", res.Definition, n.Definition}
	}
	return Started{ID: n.ID, Created: res.Created, Status: res.Status}, nil
}
