package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

var portableTx = reflect.TypeFor[store.Tx]()

// Register makes a definition known to the engine and returns the typed handle
// by which its workflows are started and read. It reports every fault of the
// definition at once, refuses a graph that changed without a new version, and
// writes nothing then. Register before Run.
func Register[S any](e *Engine, d statemachine.Definition[S]) (*Workflow[S], error) {
	m, err := d.Compile()
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	reg := &registered{def: store.Def{Name: m.Name(), Version: m.Version()}, machine: m, canonical: canonical[S]}
	if err := e.add(reg); err != nil {
		return nil, fmt.Errorf("register %q v%d: %w", d.Name, d.Version, err)
	}
	return &Workflow[S]{e, reg}, nil
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
	err := e.store.PutDefinition(ctx, store.Definition{Def: reg.def, Fingerprint: m.Fingerprint(), Graph: m.Graph()})
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
	case e.defs[d] != nil:
		return ErrDuplicateDefinition
	}
	return nil
}

// canonical checks that raw is one JSON value that fits S, and encodes it as
// Start encodes an S, so that both give the same fingerprint.
func canonical[S any](raw []byte) ([]byte, error) {
	var s S
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the JSON value", ErrBadInput)
	}
	return encodeInput(s)
}

func encodeInput(v any) ([]byte, error) {
	enc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadInput, err)
	}
	return enc, nil
}
