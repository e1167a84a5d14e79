package statemachine

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/step"
)

// table is a definition without its type parameter.
type table struct {
	name      string
	version   int
	start     State
	states    map[State]node
	ends      map[State]End
	onFailure State
	deadline  time.Duration
	strict    func(raw []byte) ([]byte, error)
	aliases   map[State]State // Definition.Renamed
	lost      int             // states and ends whose first name is another's too
}

// kind says what a node does. The zero kind does nothing and is a fault.
type kind uint8

const (
	doStep kind = iota + 1
	choice
	sleep
	await
	all
	each
	anyOf
)

func (k kind) String() string {
	return [...]string{"nothing", "step", "choice", "sleep", "await", "all", "each", "any"}[k]
}

// node is what happens in a state, with its types erased.
type node struct {
	kind  kind
	edges []edge // for await: the signal's, then the late one if bounded

	step  step.Spec // doStep
	input func(data []byte) (in []byte, err error)
	merge func(data, value []byte) (merged []byte, err error) // nil for a step: the result is dropped

	pick     func(data []byte) (State, error) // choice
	function string                           // what the definition calls pick

	pause   func(data []byte) (time.Duration, error) // sleep
	untilOf func(data []byte) (time.Time, error)     // sleep, await: in place of a duration

	poll *polling // doStep: what has it run again, if anything

	parts []node // all: its tasks, each in a branch of its own

	items    func(data []byte) ([]json.RawMessage, error) // each
	pages    *step.Spec                                   // each: asks for the items page by page, in place of items
	mergeAll func(data []byte, results []itemResult) (merged []byte, err error)
	atMost   int
	tolerate int

	arms     []arm // await: the signals, in the order of their edges
	bounded  bool  // the wait ends after within
	within   time.Duration
	withinOf func(data []byte) (time.Duration, error) // nil for within

	otherwise State // where it leads when its work fails for good; "" for the rollback
}

// arm is one of the signals that a wait takes.
type arm struct {
	signal  string
	carries reflect.Type             // the type of its value
	fits    func(value []byte) error // tells a value that is not the signal's
	merge   func(data, value []byte) (merged []byte, err error)
	to      State
}

// edge leads to another state or to an end.
type edge struct {
	to    State
	label string
}

// tasks returns the nodes that run a step: the node itself, or its parts.
func (n node) tasks() []node {
	switch n.kind {
	case doStep:
		return []node{n}
	case all, anyOf:
		return n.parts
	case each:
		if n.pages != nil {
			return []node{n.lane(), n.asker()}
		}
		return []node{n.lane()}
	default:
		return nil
	}
}

// fans reports whether the node works in other rows than the workflow's own: in
// branches, in a child, or in both.
func (n node) fans() bool {
	return n.kind == all || n.kind == anyOf || n.kind == each || n.kind == doStep && n.step.Kind == step.KindChild
}

// next is where the node leads when its work is done or its signal has come.
func (n node) next() State { return n.edges[0].to }

// late is where a bounded wait leads when no signal has come.
func (n node) late() State { return n.edges[len(n.arms)].to }

// awaited are the names of the signals that it waits for, as Cursor.Awaits has them.
func (n node) awaited() string {
	names := make([]string, len(n.arms))
	for i, a := range n.arms {
		names[i] = a.signal
	}
	return strings.Join(names, AwaitsSeparator)
}

// armOf is the arm of a signal.
func (n node) armOf(signal string) (arm, bool) {
	i := slices.IndexFunc(n.arms, func(a arm) bool { return a.signal == signal })
	if i < 0 {
		return arm{}, false
	}
	return n.arms[i], true
}

// AwaitsSeparator parts the names of several signals in Cursor.Awaits. No name holds
// it.
const AwaitsSeparator = "|"

// leadsTo reports whether one of the node's edges goes to s.
func (n node) leadsTo(s State) bool {
	return slices.ContainsFunc(n.edges, func(e edge) bool { return e.to == s })
}

// names returns the working states in alphabetical order.
func (t table) names() []State { return slices.Sorted(maps.Keys(t.states)) }

// endNames returns the ends in alphabetical order.
func (t table) endNames() []State { return slices.Sorted(maps.Keys(t.ends)) }

// behind returns all that can be reached from s by at least one edge, passing
// only through states whose node satisfies through. So s itself is among it
// exactly if it lies on a cycle of such states.
func (t table) behind(s State, through func(node) bool) map[State]bool {
	seen := map[State]bool{}
	for queue := []State{s}; len(queue) > 0; queue = queue[1:] {
		n := t.states[queue[0]]
		if !through(n) {
			continue
		}
		for _, e := range n.edges {
			if !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	return seen
}

func anyNode(node) bool { return true }

func isChoice(n node) bool { return n.kind == choice }
