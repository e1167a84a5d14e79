package statemachine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pawlhq/pawl/step"
)

// Child is another workflow as a step: [Do] starts it, waits for its end and
// merges its final data. In an [All] it runs beside the other tasks.
//
//	Do(Child(invoicing).NoUndo("an invoice stays"), Order.invoice, (*Order).invoiced).Then(Delivered)
//
// The step has the definition's name; use [step.Step.As] to run a child of one
// definition in a second state. What becomes of a completed child in a rollback
// is said as for any step that has an effect: by Undo, which is given the
// child's first and last data, or by NoUndo. A child that was rolled back has had
// no effect; its parent is rolled back too. One that has reached a Failed end
// may have had.
//
// The child is a workflow of its own: it has an id (the key of its step, as a
// rule), can be read, signalled and cancelled, and goes on with the version that
// it was started with. When its parent is cancelled, or another task of the
// same All fails, it is cancelled as well, and its end awaited; by
// [step.Step.Abandon] it is left to go on by itself instead.
func Child[C any](d Definition[C]) step.Step[C, C] {
	return step.Child[C](d.Name, childTable{d.table()})
}

// childTable is what a step of KindChild holds.
type childTable struct{ table }

// childOf returns the table of the child that sp is, if it is one.
func childOf(sp step.Spec) (table, bool) {
	c, ok := sp.Child.(childTable)
	return c.table, ok && sp.Kind == step.KindChild
}

// Children returns the machines of the children that this one starts, by the
// names of their steps. The caller must not change it.
func (m *Machine) Children() map[string]*Machine { return m.children }

// maxChildID is how long an id may be that others can use.
const maxChildID = 200

// childID is the id of the child that a step starts: the step's key, or a hash
// of the parent's id in it where that would be too long.
func childID(parent, name string, group int) string {
	id := step.NewKey(parent, name, group).String()
	if len(id) <= maxChildID {
		return id
	}
	sum := sha256.Sum256([]byte(parent))
	return step.NewKey("sha256:"+hex.EncodeToString(sum[:]), name, group).String()
}

// partOfChild is the task of this entry of the state that has started a child.
func (t *turn) partOfChild(id string) (node, bool) {
	for _, p := range t.node().tasks() {
		if p.step.Kind == step.KindChild && childID(t.c.ID, p.step.Name, t.group()) == id {
			return p, true
		}
	}
	return node{}, false
}

// childEnded records how a child has ended as the outcome of its step.
func (t *turn) childEnded(e ChildEnded) error {
	if !t.fanned() || t.c.Phase != Waiting {
		return t.unexpected(e)
	}
	p, ok := t.partOfChild(e.ID)
	if !ok || p.step.Abandon && t.stopping() {
		return nil // see branchEnded; or it was left to itself
	}
	r := Record{Step: p.step.Name, Group: t.group(), Attempt: 1, Outcome: Done, Out: e.Out}
	var cause Cause
	reason := fmt.Sprintf("child %s has ended %s", e.ID, e.End)
	if e.Reason != "" {
		reason += ": " + e.Reason
	}
	switch {
	case e.End != Completed && t.c.Pivoted:
		t.hold(reason)
		return nil
	case e.End == RolledBack:
		r.Outcome, r.Out, r.Error, cause = NoEffect, nil, reason, Refused
	case e.End != Completed:
		r.Outcome, r.Out, r.Error, cause = Unknown, nil, reason, Exhausted
	}
	if p.step.Undo != nil && r.Outcome != NoEffect {
		in, err := p.input(t.c.Data) // the same as at its start: the data has not changed
		if err != nil {
			return t.codeErrorIn(p, "in", err)
		}
		r.In = in
	}
	t.do(r)
	if t.c.PastKnown {
		t.c.Past = append(t.c.Past[:len(t.c.Past):len(t.c.Past)], Past{Step: r.Step, Group: r.Group, Outcome: r.Outcome, In: r.In, Out: r.Out})
	}
	return t.closed(p.step.Name, cause, reason)
}

// strict returns a function that checks that raw is one JSON value that fits S,
// and encodes it as the data of a workflow is encoded.
func strict[S any](raw []byte) ([]byte, error) {
	var s S
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return json.Marshal(s)
}

// Encode checks that raw is one JSON value that fits the definition's data
// exactly, and encodes it as that data is encoded.
func (m *Machine) Encode(raw []byte) ([]byte, error) { return m.strict(raw) }
