package statemachine

import (
	"maps"
	"slices"
)

// checkReached checks that each state and end can be reached from the start.
func (c *checker) checkReached() {
	if !c.working(c.start) {
		return // found by checkHead, and then nothing can
	}
	reached := c.behind(c.start, anyNode)
	reached[c.start], reached[c.onFailure] = true, true
	for _, s := range c.names() {
		if !reached[s] {
			c.fault(s, "cannot be reached")
		}
	}
	for _, s := range c.endNames() {
		if !reached[s] {
			c.fault("", "end %q cannot be reached", s)
		}
	}
}

// checkWayOut checks that the workflow cannot get stuck in s: some end can be
// reached, and choices lead to something else than themselves.
func (c *checker) checkWayOut(s State) {
	n := c.states[s]
	if len(n.edges) > 0 && !c.leadsOut(s) {
		c.fault(s, "no end can be reached from it")
	}
	if c.behind(s, isChoice)[s] {
		c.fault(s, "its choices lead back to it without work or a wait between")
	}
}

// leadsOut reports whether the workflow can get from s out of the working
// states. One that is not defined counts: it is found by checkState.
func (c *checker) leadsOut(s State) bool {
	for to := range c.behind(s, anyNode) {
		if !c.working(to) {
			return true
		}
	}
	return false
}

// checkPivot checks that behind a point of no return there is only forward.
func (c *checker) checkPivot(s State) {
	n := c.states[s]
	if n.kind != doStep || !n.step.Pivot {
		return
	}
	behind := c.behind(s, anyNode)
	if behind[s] {
		c.fault(s, "the pivot %q lies on a cycle: it can be passed only once", n.step.Name)
	}
	for _, to := range slices.Sorted(maps.Keys(behind)) {
		switch {
		case to == s: // said above
		case c.ends[to] == RolledBack:
			c.fault(s, "the pivot %q leads to %q, which is a RolledBack end", n.step.Name, to)
		default:
			c.checkLate(to, n.step.Name)
		}
	}
}

// checkLate checks that no step of the state is to be undone, or passed only
// once, since the pivot lies before it.
func (c *checker) checkLate(s State, pivot string) {
	if c.states[s].tolerate > 0 {
		c.fault(s, "tolerates failures, but lies behind the pivot %q, where they need a person", pivot)
	}
	for _, late := range c.states[s].tasks() {
		switch {
		case late.step.Undo != nil:
			c.fault(s, "step %q has an Undo, but lies behind the pivot %q: say NoUndo", late.step.Name, pivot)
		case late.step.Pivot:
			c.fault(s, "step %q is a pivot behind the pivot %q: say NoUndo", late.step.Name, pivot)
		}
	}
}
