package statemachine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/step"
)

// DrawGraph draws a graph, as [Machine.Graph] gives it, as a Mermaid state diagram. It
// knows no code: a workflow whose program is gone can be drawn. How long a wait is
// bounded to is not part of a graph.
func DrawGraph(raw []byte) (string, error) {
	var g graph
	if err := json.Unmarshal(raw, &g); err != nil {
		return "", fmt.Errorf("read a graph: %w", err)
	}
	t := table{name: g.Name, version: g.Version, start: g.Start, onFailure: g.OnFailure, states: map[State]node{}, ends: map[State]End{}}
	for _, s := range g.States {
		t.states[s.Name] = s.node()
	}
	for _, e := range g.Ends {
		t.ends[e.Name] = endNamed(e.End)
	}
	return t.mermaid(), nil
}

// node is what can be drawn of a state.
func (s graphState) node() node {
	n := node{kind: kindNamed(s.Kind), step: s.Step.spec()}
	if s.Pages != nil {
		sp := s.Pages.spec()
		n.pages = &sp
	}
	if s.Polls {
		n.poll = &polling{}
	}
	for _, task := range s.Tasks {
		n.parts = append(n.parts, node{kind: doStep, step: task.Step.spec()})
	}
	if s.Signal != "" {
		for _, name := range strings.Split(s.Signal, AwaitsSeparator) {
			n.arms = append(n.arms, arm{signal: name})
		}
	}
	for _, e := range s.Edges {
		n.edges = append(n.edges, edge{e.To, e.Label})
	}
	return n
}

func (s *graphStep) spec() step.Spec {
	if s == nil {
		return step.Spec{}
	}
	sp := step.Spec{Name: s.Name, Kind: stepKindNamed(s.Kind), Pivot: s.Pivot, Abandon: s.Left}
	if s.Undo != nil {
		undo := s.Undo.spec()
		sp.Undo = &undo
	}
	return sp
}

func kindNamed(name string) kind {
	kinds := []kind{doStep, choice, sleep, await, all, each, anyOf}
	return kinds[max(slices.IndexFunc(kinds, func(k kind) bool { return k.String() == name }), 0)]
}

func stepKindNamed(name string) step.Kind {
	kinds := []step.Kind{step.KindFunc, step.KindCall, step.KindInTx, step.KindChild}
	return kinds[max(slices.IndexFunc(kinds, func(k step.Kind) bool { return k.String() == name }), 0)]
}

func endNamed(name string) End {
	ends := []End{Completed, RolledBack, Failed}
	return ends[max(slices.IndexFunc(ends, func(e End) bool { return e.String() == name }), 0)]
}
