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

// Else makes the node lead to s, rather than to the rollback, when its step is
// refused or has failed for good: what was done stays done, and can still be undone
// later on. In a state of several tasks that is once all of them have ended. A
// cancellation and a deadline do not take it. Behind the point of no return it is
// the way to go on without a person; it leads forward only, like every edge there.
func (n Node[S]) Else(s State) Node[S] {
	n.node.otherwise = s
	n.node.edges = append(n.node.edges[:len(n.node.edges):len(n.node.edges)], edge{s, "else"})
	return n
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

// Any runs tasks at the same time, like [All], and goes on with the result of the
// first that is done. The others are stopped then: those that have not begun never
// will, those that run are cut off, and whatever they have or may have done is
// undone, newest first, before the workflow goes on. If all of them fail, so does the
// state, for the reason of the first.
//
// Only the winner's result is merged.
func Any[S any](tasks ...Task[S]) Task[S] {
	t := All(tasks...)
	t.node.kind = anyOf
	return t
}

// Sleep waits for the duration that d reads from the workflow's data. One that
// is not positive is over at once.
func Sleep[S any](d func(S) time.Duration) Task[S] {
	return Task[S]{node{kind: sleep, pause: reads(d)}}
}

// SleepUntil waits until the time that at reads from the workflow's data when the
// sleep begins. One that has passed is over at once.
func SleepUntil[S any](at func(S) time.Time) Task[S] {
	return Task[S]{node{kind: sleep, function: "at", untilOf: reads(at)}}
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

// Wait is a wait for a signal, or for one of several. It becomes a [Node] by saying where it leads.
type Wait[S any] struct {
	node node
	late State
}

// Await waits for sig and merges its value into the workflow's data. A signal
// that came early is kept until its wait.
func Await[S, T any](sig Signal[T], merge func(*S, T)) Wait[S] {
	return Wait[S]{node: node{kind: await, arms: []arm{newArm(sig, merge)}}}
}

// Arm is one of the signals that [AwaitAny] waits for.
type Arm[S any] struct{ arm arm }

// On takes sig as one of the answers to a wait: its value is merged by merge, and
// leads to s.
func On[S, T any](sig Signal[T], merge func(*S, T), s State) Arm[S] {
	a := newArm(sig, merge)
	a.to = s
	return Arm[S]{a}
}

// AwaitAny waits for the first of several signals. Each leads to a state of its own,
// so the wait is a node at once; [Wait.Then] has nothing to add to it:
//
//	AwaitAny(On(paid, (*Order).paid, Shipping), On(withdrawn, (*Order).withdrawn, Cancelled)).
//		Within(time.Hour, Cancelled).Node()
//
// Of those that are there the one that was sent first is taken.
func AwaitAny[S any](arms ...Arm[S]) Wait[S] {
	n := node{kind: await}
	for _, a := range arms {
		n.arms = append(n.arms, a.arm)
	}
	return Wait[S]{node: n}
}

func newArm[S, T any](sig Signal[T], merge func(*S, T)) arm {
	return arm{signal: sig.Name, carries: reflect.TypeFor[T](), fits: decodes[T], merge: merges(merge)}
}

// Within bounds the wait: if no signal has come after d, the workflow goes to
// late. Without it the wait has no end.
func (w Wait[S]) Within(d time.Duration, late State) Wait[S] {
	w.node.bounded, w.node.within, w.late = true, d, late
	return w
}

// WithinFunc is Within for a duration that d reads from the workflow's data when
// the wait begins. One that is not positive is over at once.
func (w Wait[S]) WithinFunc(d func(S) time.Duration, late State) Wait[S] {
	w.node.bounded, w.node.withinOf, w.late = true, reads(d), late
	return w
}

// Until is Within for a time that at reads from the workflow's data when the wait
// begins. One that has passed leads to late at once, unless the signal is there.
func (w Wait[S]) Until(at func(S) time.Time, late State) Wait[S] {
	w.node.bounded, w.node.untilOf, w.late = true, reads(at), late
	return w
}

// Then makes the wait for one signal a node that leads to s once it has come.
func (w Wait[S]) Then(s State) Node[S] {
	for i := range w.node.arms {
		w.node.arms[i].to = s
	}
	return w.Node()
}

// Node makes the wait of [AwaitAny] a node.
func (w Wait[S]) Node() Node[S] {
	w.node.edges = nil
	for _, a := range w.node.arms {
		w.node.edges = append(w.node.edges, edge{a.to, a.signal})
	}
	if w.node.bounded {
		w.node.edges = append(w.node.edges, edge{w.late, "timeout"})
	}
	return Node[S]{w.node}
}
