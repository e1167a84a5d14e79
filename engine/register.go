package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

var portableTx = reflect.TypeFor[store.Tx]()

// Register makes a definition known to the engine and returns the typed handle
// by which its workflows are started and read. It reports every fault of the
// definition at once, refuses a graph that changed without a new version, and
// writes nothing of it then. It registers the definitions of children first, which
// stay registered whatever becomes of their parent; each may be registered by
// itself as well, for a handle of its own. Register before Run.
func Register[S any](e *Engine, d statemachine.Definition[S], opts ...RegisterOption) (*Workflow[S], error) {
	m, err := d.Compile()
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	reg, err := e.registerAll(m, opts...)
	if err != nil {
		return nil, fmt.Errorf("register %q v%d: %w", d.Name, d.Version, err)
	}
	return &Workflow[S]{e, reg}, nil
}

// registerAll registers a machine, and before it those of its children that are
// not registered yet.
func (e *Engine) registerAll(m *statemachine.Machine, opts ...RegisterOption) (*registered, error) {
	reg := newRegistered(m)
	for _, opt := range opts {
		opt(reg)
	}
	if err := reg.checkRetention(); err != nil {
		return nil, err
	}
	if reg.queue != "" {
		if err := checkQueueName(reg.queue); err != nil {
			return nil, err
		}
	}
	children := m.Children()
	for _, name := range slices.Sorted(maps.Keys(children)) {
		if err := e.addChild(children[name]); err != nil {
			return nil, fmt.Errorf("child %q: %w", name, err)
		}
	}
	return reg, e.add(reg)
}

// addChild registers a machine that some parent starts. It may be registered
// already, as a child or by itself, if it is the same.
func (e *Engine) addChild(m *statemachine.Machine) error {
	reg := newRegistered(m)
	have, err := e.lookup(reg.def)
	switch {
	case err == nil && have.machine.Fingerprint() != m.Fingerprint():
		return fmt.Errorf("%w: %s v%d", ErrGraphChanged, m.Name(), m.Version())
	case err == nil:
		return nil
	}
	reg, err = e.registerAll(m)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	reg.byParent = true
	return nil
}

func newRegistered(m *statemachine.Machine) *registered {
	return &registered{def: store.Def{Name: m.Name(), Version: m.Version()}, machine: m}
}

func (e *Engine) add(reg *registered) error {
	if err := e.fitsTx(reg.machine.Specs()); err != nil {
		return err
	}
	if err := e.free(reg.def); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	m := reg.machine
	def := store.Definition{Def: reg.def, Fingerprint: m.Fingerprint(), Graph: m.Graph()}
	err := e.store.PutDefinition(ctx, def)
	if errors.Is(err, store.ErrGraphChanged) {
		if text := e.whatChanged(ctx, def); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.defs[reg.def] = reg
	return nil
}

// free returns an error if d cannot be registered now.
func (e *Engine) free(d store.Def) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.worker != nil:
		return ErrRunning
	case e.defs[d] != nil && !e.defs[d].byParent:
		return ErrDuplicateDefinition
	}
	return nil
}

// canonical checks that raw is one JSON value that fits the definition's data,
// and encodes it as Start encodes it, so that both give the same fingerprint.
func (r *registered) canonical(raw []byte) ([]byte, error) {
	enc, err := r.machine.Encode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	return enc, nil
}

func encodeInput(v any) ([]byte, error) {
	enc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	return enc, nil
}
