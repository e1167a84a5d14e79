package statemachine

import (
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// graph is the stored form of a definition. Its fields are written in the
// order in which they stand, its lists in alphabetical order, so equal graphs
// are equal bytes.
type graph struct {
	Name      string       `json:"name"`
	Version   int          `json:"version"`
	Start     State        `json:"start"`
	OnFailure State        `json:"onFailure"`
	States    []graphState `json:"states"`
	Ends      []graphEnd   `json:"ends"`
}

type graphState struct {
	Name   State       `json:"name"`
	Kind   string      `json:"kind"`
	Polls  bool        `json:"polls,omitempty"`
	Step   *graphStep  `json:"step,omitempty"`
	Pages  *graphStep  `json:"pages,omitempty"`
	Tasks  []graphTask `json:"tasks,omitempty"`
	Signal string      `json:"signal,omitempty"`
	Edges  []graphEdge `json:"edges"`
}

// graphTask is one of the tasks of a state that works on several at once, in
// their order.
type graphTask struct {
	Kind string     `json:"kind"`
	Step *graphStep `json:"step,omitempty"`
}

type graphStep struct {
	Name   string     `json:"name"`
	Kind   string     `json:"kind"`
	Pivot  bool       `json:"pivot,omitempty"`
	NoUndo string     `json:"noUndo,omitempty"`
	Child  *graphDef  `json:"child,omitempty"`
	Left   bool       `json:"abandon,omitempty"`
	Undo   *graphStep `json:"undo,omitempty"`
}

// graphDef names the definition of a child.
type graphDef struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

type graphEdge struct {
	To    State  `json:"to"`
	Label string `json:"label,omitempty"`
}

type graphEnd struct {
	Name State  `json:"name"`
	End  string `json:"end"`
}

// encode returns the graph as JSON.
func (t table) encode() ([]byte, error) {
	g := graph{Name: t.name, Version: t.version, Start: t.start, OnFailure: t.onFailure}
	for _, s := range t.names() {
		g.States = append(g.States, newGraphState(s, t.states[s]))
	}
	for _, s := range t.endNames() {
		g.Ends = append(g.Ends, graphEnd{s, t.ends[s].String()})
	}
	enc, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("encode graph of %q: %w", t.name, err)
	}
	return enc, nil
}

func newGraphState(s State, n node) graphState {
	g := graphState{Name: s, Kind: n.kind.String(), Signal: n.awaited(), Polls: n.poll != nil}
	if n.kind == doStep || n.kind == each {
		g.Step = newGraphStep(n.step)
	}
	if n.pages != nil {
		g.Pages = newGraphStep(*n.pages)
	}
	for _, p := range n.parts {
		g.Tasks = append(g.Tasks, graphTask{p.kind.String(), newGraphStep(p.step)})
	}
	for _, e := range n.edges {
		g.Edges = append(g.Edges, graphEdge{e.to, e.label})
	}
	return g
}

func newGraphStep(sp step.Spec) *graphStep {
	g := &graphStep{Name: sp.Name, Kind: sp.Kind.String(), Pivot: sp.Pivot, NoUndo: sp.NoUndo, Left: sp.Abandon}
	if child, ok := childOf(sp); ok {
		g.Child = &graphDef{child.name, child.version}
	}
	if sp.Undo != nil {
		g.Undo = newGraphStep(*sp.Undo)
	}
	return g
}
