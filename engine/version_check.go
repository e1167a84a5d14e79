package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Stranded is a place where workflows stand that could not go on by the definitions
// that are registered.
type Stranded struct {
	store.Standing
	Why string
}

// VersionCheck compares the registered definitions with everything that has not
// ended, and returns where something stands that could not go on: its version is not
// registered, or it is and lacks the state or the step. Run it in the program that is
// about to be deployed. It reads all open rows once.
func (e *Engine) VersionCheck(ctx context.Context) ([]Stranded, error) {
	open, err := e.store.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("check versions: %w", err)
	}
	var stranded []Stranded
	for _, o := range open {
		reg, err := e.lookup(o.Def)
		switch {
		case errors.Is(err, ErrUnknownDefinition):
			stranded = append(stranded, Stranded{o, "this version is not registered"})
		case err != nil:
			return nil, err
		case !reg.machine.CanStand(statemachine.State(o.State), o.Step):
			stranded = append(stranded, Stranded{o, "its graph has no such place"})
		}
	}
	return stranded, nil
}

// DefinitionDiff says in what a registered definition differs from a recorded graph.
type DefinitionDiff struct {
	Old, New    store.Def
	Differences []statemachine.Difference
	Worst       statemachine.Change
}

// DefinitionDiffs compares definitions with the newest of their name that is recorded
// and no newer. One that nobody has recorded yet has nothing to be compared with.
func DefinitionDiffs(ctx context.Context, st store.Store, defs []store.Definition) ([]DefinitionDiff, error) {
	recorded, err := st.Definitions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	var diffs []DefinitionDiff
	for _, d := range defs {
		var base *store.Definition
		for i, old := range recorded {
			if old.Name == d.Name && old.Version <= d.Version {
				base = &recorded[i] // by version: the last one counts
			}
		}
		if base == nil {
			continue
		}
		ds, err := statemachine.Diff(base.Graph, d.Graph)
		if err != nil {
			return nil, fmt.Errorf("compare %s v%d with v%d: %w", d.Name, d.Version, base.Version, err)
		}
		diffs = append(diffs, DefinitionDiff{Old: base.Def, New: d.Def, Differences: ds, Worst: statemachine.Worst(ds)})
	}
	return diffs, nil
}

// whatChanged says in what a definition differs from the one that is recorded under
// its version; "" if that cannot be told.
func (e *Engine) whatChanged(ctx context.Context, d store.Definition) string {
	diffs, err := DefinitionDiffs(ctx, e.store, []store.Definition{d})
	if err != nil || len(diffs) == 0 || diffs[0].Old != d.Def || len(diffs[0].Differences) == 0 {
		return ""
	}
	text := diffs[0].Differences[0].String()
	if more := len(diffs[0].Differences) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
