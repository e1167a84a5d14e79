package statemachine

import (
	"reflect"
	"time"

	"github.com/pawlhq/pawl/step"
)

// Node is what happens in a state, and where it leads. The functions of this
// package make one: [Do] and [Sleep] by way of a [Task], [Await] by way of a
// [Wait], [If] and [Switch] at once.
//
// The functions that a node is built from read and change the workflow's data,
// and nothing else: they may be called again with the same arguments, and must
// then give the same answer.
type Node[S any] struct{ node node }

// Task is work that ends by itself. It becomes a [Node] by saying where it
// leads.
type Task[S any] struct{ node node }

// Then makes the task a node that leads to s.
func (t Task[S]) Then(s State) Node[S] {
	t.node.edges = []edge{{to: s}}
	return Node[S](t)
}

// Do runs st. Its input is taken from the workflow's data by in, and its result
// merged into the data by out; a nil out drops the result.
//
// A step belongs to one state: use [step.Step.As] for a second one.
func Do[S, In, Out any](st step.Step[In, Out], in func(S) In, out func(*S, Out)) Task[S] {
	return Task[S]{node{kind: doStep, step: st.Spec(), input: encodes(in), merge: merges(out)}}
}

// All runs tasks at the same time, each in a branch of its own, and goes on once
// all of them are done. The results are merged then, in the order in which the
// tasks stand here, whatever order they came in: a task sees the data as it was
// when the state was entered.
//
// The first task that is refused or fails for good stops the others. Those that
// have not begun never will, those that run are cut off, and once all have ended
// the workflow is rolled back: what the tasks have done is undone in the reverse
// order of its completion, together with all that was done before.
//
// Each task is a [Do], and none of its steps may be a pivot.
func All[S any](tasks ...Task[S]) Task[S] {
	n := node{kind: all}
	for _, t := range tasks {
		n.parts = append(n.parts, t.node)
	}
	return Task[S]{n}
}

// Sleep waits for the duration that d reads from the workflow's data. One that
// is not positive is over at once.
func Sleep[S any](d func(S) time.Duration) Task[S] {
	return Task[S]{node{kind: sleep, pause: reads(d)}}
}

// If leads to yes or no at once, as cond says of the workflow's data.
func If[S any](cond func(S) bool, yes, no State) Node[S] {
	n := node{kind: choice, function: "cond", edges: []edge{{yes, "yes"}, {no, "no"}}}
	if cond != nil {
		n.pick = reads(func(s S) State {
			if cond(s) {
				return yes
			}
			return no
		})
	}
	return Node[S]{n}
}

// Switch leads at once to the state that pick names, which must be one of
// targets.
func Switch[S any](pick func(S) State, targets ...State) Node[S] {
	n := node{kind: choice, function: "pick", pick: reads(pick)}
	for _, s := range targets {
		n.edges = append(n.edges, edge{to: s})
	}
	return Node[S]{n}
}

// Signal is a named message from outside that carries a T, encoded as JSON.
// In one definition a name always stands for the same T.
type Signal[T any] struct{ Name string }

// Wait is a wait for a signal. It becomes a [Node] by saying where it leads.
type Wait[S any] struct {
	node node
	late State
}

// Await waits for sig and merges its value into the workflow's data. A signal
// that came early is kept until its wait.
func Await[S, T any](sig Signal[T], merge func(*S, T)) Wait[S] {
	return Wait[S]{node: node{kind: await, signal: sig.Name, carries: reflect.TypeFor[T](), fits: decodes[T], merge: merges(merge)}}
}

// Within bounds the wait: if no signal has come after d, the workflow goes to
// late. Without it the wait has no end.
func (w Wait[S]) Within(d time.Duration, late State) Wait[S] {
	w.node.bounded, w.node.within, w.late = true, d, late
	return w
}

// Then makes the wait a node that leads to s once the signal has come.
func (w Wait[S]) Then(s State) Node[S] {
	w.node.edges = []edge{{s, w.node.signal}}
	if w.node.bounded {
		w.node.edges = append(w.node.edges, edge{w.late, "timeout"})
	}
	return Node[S]{w.node}
}
