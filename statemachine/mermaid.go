package statemachine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/step"
)

// mermaid draws the table, state by state in the order in which they are
// reached.
func (t table) mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stateDiagram-v2\n    [*] --> %s\n", drawn(t.start))
	for _, s := range t.reading() {
		if _, ok := t.ends[s]; ok {
			fmt.Fprintf(&b, "    %s: %s (%s)\n    %[1]s --> [*]\n", drawn(s), s, t.meaning(s))
			continue
		}
		n := t.states[s]
		fmt.Fprintf(&b, "    %s: %s / %s\n", drawn(s), s, n.caption())
		for i, e := range n.edges {
			fmt.Fprintf(&b, "    %s --> %s%s\n", drawn(s), drawn(e.to), n.edgeCaption(i))
		}
	}
	return b.String()
}

// reading returns the states and ends breadth first from the start, then the
// failure's end if no edge leads there.
func (t table) reading() []State {
	order, seen := []State{t.start}, map[State]bool{t.start: true}
	for i := 0; i < len(order); i++ {
		for _, e := range t.states[order[i]].edges {
			if !seen[e.to] {
				seen[e.to], order = true, append(order, e.to)
			}
		}
	}
	if t.onFailure != "" && !seen[t.onFailure] {
		order = append(order, t.onFailure)
	}
	return order
}

// meaning says what an end means.
func (t table) meaning(s State) string {
	if s == t.onFailure {
		return t.ends[s].String() + ", also on failure"
	}
	return t.ends[s].String()
}

// caption says what happens in a state.
func (n node) caption() string {
	switch n.kind {
	case doStep:
		if n.poll != nil {
			return "poll " + stepCaption(n.step)
		}
		return stepCaption(n.step)
	case await:
		return "await " + strings.ReplaceAll(n.awaited(), AwaitsSeparator, " or ")
	case each:
		if n.pages != nil {
			return "each " + stepCaption(n.step) + ", by pages of " + stepCaption(*n.pages)
		}
		return "each " + stepCaption(n.step)
	case all, anyOf:
		var tasks []string
		for _, p := range n.parts {
			tasks = append(tasks, p.caption())
		}
		return n.kind.String() + " of " + strings.Join(tasks, ", ")
	default:
		return n.kind.String()
	}
}

// stepCaption names a step with its kind and what becomes of it in a rollback.
func stepCaption(sp step.Spec) string {
	switch {
	case sp.Undo != nil:
		return fmt.Sprintf("%s (%s, undo %s)", sp.Name, sp.Kind, sp.Undo.Name)
	case sp.Pivot:
		return fmt.Sprintf("%s (%s, pivot)", sp.Name, sp.Kind)
	case sp.Abandon:
		return fmt.Sprintf("%s (%s, left to itself)", sp.Name, sp.Kind)
	default:
		return fmt.Sprintf("%s (%s)", sp.Name, sp.Kind)
	}
}

// edgeCaption says when the i-th edge is taken.
func (n node) edgeCaption(i int) string {
	switch {
	case n.bounded && i == len(n.arms) && (n.withinOf != nil || n.untilOf != nil):
		return ": in time no more"
	case n.bounded && i == len(n.arms):
		return ": after " + brief(n.within)
	case n.edges[i].label == "":
		return ""
	default:
		return ": " + n.edges[i].label
	}
}

// brief writes 48h0m0s as 48h.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// drawn turns a state's name into an identifier of Mermaid's, where '-' is not
// allowed and some words mean something else. Different names stay different,
// since none has a capital.
func drawn(s State) string {
	id := strings.ReplaceAll(string(s), "-", "_")
	if slices.Contains(reserved, id) {
		return id + "_S"
	}
	return id
}

// reserved are the words that Mermaid 11 does not take for a state.
var reserved = []string{
	"accdescr", "acctitle", "class", "classdef", "click", "default", "href", "note", "scale", "state", "statediagram", "style",
}
