package statemachine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Change says what a difference between two graphs means for the workflows that are
// under way.
type Change uint8

const (
	// Same means that the graphs are equal.
	Same Change = iota

	// Safe means that whatever is under way could go on in the new graph as it
	// stands; but the graph of a version must not change, so it is a new version
	// that new workflows begin with.
	Safe

	// NeedsRenamed means that a state is gone, and another one looks like it. If it
	// was renamed, Definition.Renamed makes it the same; if not, it needs a new version.
	NeedsRenamed

	// NeedsVersion means that something under way could not go on: the old version
	// must stay registered beside the new one for as long as it has workflows.
	NeedsVersion
)

// String returns what people are told.
func (c Change) String() string {
	return [...]string{"the same", "safe", "needs Renamed", "needs a new version"}[c]
}

// Difference is one thing that is not as it was.
type Difference struct {
	Change Change
	State  State // empty if it is the definition's as a whole
	Text   string
}

// String says it in one line.
func (d Difference) String() string {
	if d.State == "" {
		return d.Text
	}
	return fmt.Sprintf("state %q: %s", d.State, d.Text)
}

// Diff compares two graphs, as [Machine.Graph] gives them, and returns in what the
// new one differs, state by state. It knows no code: a graph whose program is gone
// will do.
func Diff(before, after []byte) ([]Difference, error) {
	var a, b graph
	for _, g := range []struct {
		raw  []byte
		into *graph
	}{{before, &a}, {after, &b}} {
		if err := json.Unmarshal(g.raw, g.into); err != nil {
			return nil, fmt.Errorf("read a graph: %w", err)
		}
	}
	d := differ{}
	d.heads(a, b)
	d.states(a, b)
	d.ends(a, b)
	return d.all, nil
}

// Worst returns what the differences together mean.
func Worst(ds []Difference) Change {
	worst := Same
	for _, d := range ds {
		worst = max(worst, d.Change)
	}
	return worst
}

// differ collects differences.
type differ struct{ all []Difference }

func (d *differ) add(c Change, s State, format string, args ...any) {
	d.all = append(d.all, Difference{c, s, fmt.Sprintf(format, args...)})
}

func (d *differ) heads(a, b graph) {
	if a.Start != b.Start {
		d.add(Safe, "", "starts in %q, not in %q", b.Start, a.Start)
	}
	if a.OnFailure != b.OnFailure {
		d.add(NeedsVersion, "", "fails to %q, not to %q", b.OnFailure, a.OnFailure)
	}
}

func (d *differ) states(a, b graph) {
	for _, was := range a.States {
		i := slices.IndexFunc(b.States, func(s graphState) bool { return s.Name == was.Name })
		if i < 0 {
			if now, ok := d.lookalike(was, a, b); ok {
				d.add(NeedsRenamed, was.Name, "is gone, and %q looks like it: if that is its new name, say so in Renamed", now)
				continue
			}
			d.add(NeedsVersion, was.Name, "is gone")
			continue
		}
		d.state(was, b.States[i])
	}
	for _, is := range b.States {
		if !slices.ContainsFunc(a.States, func(s graphState) bool { return s.Name == is.Name }) {
			d.add(Safe, is.Name, "is new")
		}
	}
}

func (d *differ) state(was, is graphState) {
	switch {
	case was.Kind != is.Kind:
		d.add(NeedsVersion, was.Name, "is a %s, not a %s", is.Kind, was.Kind)
		return
	case was.Polls != is.Polls:
		d.add(NeedsVersion, was.Name, "asks again and again: %t, not %t", is.Polls, was.Polls)
	case was.Signal != is.Signal:
		d.add(NeedsVersion, was.Name, "waits for %q, not for %q", is.Signal, was.Signal)
	}
	before, after := stepTexts(was), stepTexts(is)
	for _, text := range before {
		if !slices.Contains(after, text) {
			d.add(NeedsVersion, was.Name, "no longer has %s", text)
		}
	}
	for _, text := range after {
		if !slices.Contains(before, text) {
			d.add(NeedsVersion, was.Name, "has %s", text)
		}
	}
	if a, b := edgeTexts(was.Edges), edgeTexts(is.Edges); a != b {
		d.add(Safe, was.Name, "leads to %s, not to %s", b, a)
	}
}

// stepTexts are the steps of a state as they are compared.
func stepTexts(s graphState) (texts []string) {
	if s.Step != nil {
		texts = append(texts, stepText(s.Step))
	}
	if s.Pages != nil {
		texts = append(texts, "pages of "+stepText(s.Pages))
	}
	for _, task := range s.Tasks {
		texts = append(texts, stepText(task.Step))
	}
	return texts
}

func stepText(s *graphStep) string {
	text := fmt.Sprintf("step %s (%s", s.Name, s.Kind)
	switch {
	case s.Undo != nil:
		text += ", undo " + s.Undo.Name
	case s.Pivot:
		text += ", pivot"
	}
	if s.Left {
		text += ", left to itself"
	}
	if s.Child != nil {
		text += fmt.Sprintf(" %s v%d", s.Child.Name, s.Child.Version)
	}
	return text + ")"
}

func edgeTexts(edges []graphEdge) string {
	var texts []string
	for _, e := range edges {
		text := string(e.To)
		if e.Label != "" {
			text += " (" + e.Label + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func (d *differ) ends(a, b graph) {
	for _, was := range a.Ends {
		i := slices.IndexFunc(b.Ends, func(e graphEnd) bool { return e.Name == was.Name })
		switch {
		case i < 0:
			d.add(NeedsVersion, "", "end %q is gone", was.Name)
		case b.Ends[i].End != was.End:
			d.add(NeedsVersion, "", "end %q is %s, not %s", was.Name, b.Ends[i].End, was.End)
		}
	}
}

// CanStand reports whether a workflow that stands in a state, with that step marked
// ("" for none), could go on by this machine.
func (m *Machine) CanStand(s State, marked string) bool {
	n, ok := m.states[s]
	if !ok {
		return false
	}
	if marked == "" {
		return true
	}
	if m.undone[marked] != "" {
		return true
	}
	return slices.ContainsFunc(n.tasks(), func(task node) bool { return task.step.Name == marked })
}
