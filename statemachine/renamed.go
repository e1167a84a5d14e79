package statemachine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlhq/pawl/step"
)

// A renamed state keeps its first name wherever it is stored: in rows, in the paths
// of branches, in graphs. So a table is built with first names only, and the names of
// the code are known at its edges: where a definition is read, and where a handle of
// it tells where a workflow stands.

// renamed returns the table by the first names of its states and ends.
func (t table) renamed(names map[State]State) table {
	t.aliases = names
	if len(names) == 0 {
		return t
	}
	first := func(s State) State {
		if f, ok := names[s]; ok {
			return f
		}
		return s
	}
	states, ends := make(map[State]node, len(t.states)), make(map[State]End, len(t.ends))
	for s, n := range t.states {
		states[first(s)] = n.renamed(first)
	}
	for s, e := range t.ends {
		ends[first(s)] = e
	}
	t.lost = len(t.states) + len(t.ends) - len(states) - len(ends)
	t.states, t.ends, t.start, t.onFailure = states, ends, first(t.start), first(t.onFailure)
	return t
}

// renamed returns the node with the first names of where it leads.
func (n node) renamed(first func(State) State) node {
	edges := make([]edge, len(n.edges))
	for i, e := range n.edges {
		edges[i] = edge{first(e.to), e.label}
	}
	n.edges = edges
	n.arms = slices.Clone(n.arms)
	for i := range n.arms {
		n.arms[i].to = first(n.arms[i].to)
	}
	if n.otherwise != "" {
		n.otherwise = first(n.otherwise)
	}
	if pick := n.pick; pick != nil {
		n.pick = func(data []byte) (State, error) {
			s, err := pick(data)
			return first(s), err
		}
	}
	return n
}

// checkRenamed checks that each name of the code has one first name, which is
// nobody else's.
func (c *checker) checkRenamed() {
	if c.lost > 0 {
		c.fault("", "Renamed gives a state a first name that another state has")
	}
	whose := map[State]State{}
	for _, now := range slices.Sorted(maps.Keys(c.aliases)) {
		first := c.aliases[now]
		_, taken := whose[first]
		switch {
		case now == first:
			c.fault("", "Renamed: %q is its own first name", now)
		case !step.ValidName(string(now)) || !step.ValidName(string(first)):
			c.fault("", "Renamed: %q and %q: %s", now, first, ruleOfNames)
		case taken:
			c.fault("", "Renamed: %q and %q have the same first name %q", whose[first], now, first)
		case !c.working(first) && !c.final(first):
			c.fault("", "Renamed: %q is no state and no end", now)
		}
		whose[first] = now
	}
}

// NameOf returns what the definition's code calls a state or an end, by the name that
// it has where it is stored.
func (m *Machine) NameOf(stored State) State {
	for now, first := range m.aliases {
		if first == stored {
			return now
		}
	}
	return stored
}

// lookalike returns the state of the new graph that has taken the place of one that is
// gone, as far as can be told: the only new one in which the same happens.
func (d *differ) lookalike(was graphState, a, b graph) (State, bool) {
	var found []State
	for _, is := range b.States {
		known := slices.ContainsFunc(a.States, func(s graphState) bool { return s.Name == is.Name })
		same := was.Kind == is.Kind && was.Signal == is.Signal && was.Polls == is.Polls &&
			fmt.Sprint(stepTexts(was)) == fmt.Sprint(stepTexts(is)) && (len(stepTexts(was)) > 0 || was.Signal != "")
		if !known && same {
			found = append(found, is.Name)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}
