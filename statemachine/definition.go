package statemachine

import (
	"fmt"
	"time"
)

// State names a place in a workflow. It is what the workflow's row says, so
// renaming one calls for a new version, or for [Definition.Renamed].
type State string

// End says what reaching a final state means.
type End uint8

const (
	// Completed keeps the effects of the workflow.
	Completed End = iota + 1

	// RolledBack first undoes the workflow's steps, newest first.
	RolledBack

	// Failed is over, with nothing undone, on purpose.
	Failed
)

// String returns the end's name as people see it.
func (e End) String() string {
	switch e {
	case Completed:
		return "completed"
	case RolledBack:
		return "rolled back"
	case Failed:
		return "failed"
	default:
		return fmt.Sprintf("end %d", uint8(e))
	}
}

type (
	// States maps each working state to what happens in it. In a map literal
	// with constant names, a state given twice does not compile.
	States[S any] map[State]Node[S]

	// Ends maps each final state to its meaning.
	Ends map[State]End
)

// Definition is one version of a workflow whose durable data is an S. It is
// plain data; nothing is checked before [Definition.Validate] or
// [Definition.Compile] is called.
//
// S must survive a round trip through encoding/json.
type Definition[S any] struct {
	// Name is 1 to 64 bytes of a-z, 0-9 and '-', like every name here.
	Name string

	// Version counts from 1. A workflow stays with the version that it was
	// started with, so a changed graph needs a new one. Policies, timeouts and
	// function bodies may change without.
	Version int

	// Start is the state in which every workflow begins.
	Start State

	States States[S]
	Ends   Ends

	// OnFailure is the end of a workflow that is cancelled, or in which a step
	// was refused or has failed for good before the point of no return. It is a
	// RolledBack end or, where nothing is to be undone, a Failed one.
	OnFailure State

	// Deadline, if not zero, is how long a workflow may take from its start. Once it
	// has passed, and before the point of no return, the workflow is rolled back as
	// by a cancellation; behind it, it is HELD. Branches have none of their own. It
	// may be changed without a new version.
	Deadline time.Duration

	// Renamed says what states and ends that have another name in the code by now are
	// called in the database: their first name, by the one that they have here. It
	// makes a new name no change of the graph, so workflows that are under way go
	// on, and programs of both names run side by side. Whatever shows rows or graphs
	// shows the first name.
	Renamed map[State]State
}

// Validate returns every fault of the definition at once, joined; each is a
// [*Fault]. It returns nil if the definition can be compiled.
func (d Definition[S]) Validate() error { return d.table().validate() }

// Compile validates the definition and returns its machine.
func (d Definition[S]) Compile() (*Machine, error) {
	t := d.table()
	if err := t.validate(); err != nil {
		return nil, err
	}
	return newMachine(t)
}

// Mermaid draws the definition as a Mermaid state diagram. It also draws one
// that is not valid, as far as it goes.
func (d Definition[S]) Mermaid() string { return d.table().mermaid() }

// table returns the definition without its type parameter.
func (d Definition[S]) table() table {
	t := table{
		name:      d.Name,
		version:   d.Version,
		start:     d.Start,
		states:    make(map[State]node, len(d.States)),
		ends:      make(map[State]End, len(d.Ends)),
		onFailure: d.OnFailure,
		deadline:  d.Deadline,
		strict:    strict[S],
	}
	for s, n := range d.States {
		t.states[s] = n.node
	}
	for s, e := range d.Ends {
		t.ends[s] = e
	}
	return t.renamed(d.Renamed)
}
