package statemachine

import (
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// checker collects the faults of a table. Each fault is found by one check, and
// a check keeps quiet about what another has found already.
type checker struct {
	table
	faults []error
}

// validate returns all faults of the table, joined: first those of the
// definition as a whole, then state by state in alphabetical order.
func (t table) validate() error {
	c := checker{table: t}
	c.checkHead()
	c.checkRenamed()
	for _, s := range c.names() {
		c.checkState(s)
	}
	for _, s := range c.endNames() {
		c.checkEnd(s)
	}
	c.checkStepNames()
	c.checkSignals()
	c.checkReached()
	for _, s := range c.names() {
		c.checkWayOut(s)
		c.checkPivot(s)
	}
	return errors.Join(c.faults...)
}

// fault adds a fault of the state s, or of the whole definition if s is empty.
func (c *checker) fault(s State, format string, args ...any) {
	c.faults = append(c.faults, &Fault{Definition: c.name, State: s, Text: fmt.Sprintf(format, args...)})
}

// ruleOfNames says what step.ValidName checks.
const ruleOfNames = "a name is 1 to 64 of a-z, 0-9 and '-'"

// working reports whether s is a state in which something happens.
func (c *checker) working(s State) bool { _, ok := c.states[s]; return ok }

// final reports whether s is an end.
func (c *checker) final(s State) bool { _, ok := c.ends[s]; return ok }

func (c *checker) checkHead() {
	if !step.ValidName(c.name) {
		c.fault("", "bad name: %s", ruleOfNames)
	}
	if c.version < 1 {
		c.fault("", "version %d: versions count from 1", c.version)
	}
	switch {
	case c.start == "":
		c.fault("", "no Start")
	case c.final(c.start):
		c.fault("", "Start %q is an end", c.start)
	case !c.working(c.start):
		c.fault("", "Start %q is not defined", c.start)
	}
	if len(c.ends) == 0 {
		c.fault("", "no Ends")
	}
	if c.deadline < 0 {
		c.fault("", "Deadline %v is no time to take", c.deadline)
	}
	switch {
	case c.onFailure == "":
		c.fault("", "no OnFailure: say where a cancelled workflow ends")
	case !c.final(c.onFailure):
		c.fault("", "OnFailure %q is not an end", c.onFailure)
	case c.ends[c.onFailure] == Completed:
		c.fault("", "OnFailure %q is a Completed end", c.onFailure)
	}
}

func (c *checker) checkEnd(s State) {
	if !step.ValidName(string(s)) {
		c.fault("", "bad end %q: %s", s, ruleOfNames)
	}
	if e := c.ends[s]; e < Completed || e > Failed {
		c.fault("", "end %q is none of Completed, RolledBack and Failed", s)
	}
}

// checkState checks one state by itself.
func (c *checker) checkState(s State) {
	if !step.ValidName(string(s)) {
		c.fault(s, "bad name: %s", ruleOfNames)
	}
	if c.final(s) {
		c.fault(s, "is an end as well")
	}
	n := c.states[s]
	switch n.kind {
	case doStep:
		c.checkGiven(s, n.input != nil, "in of step "+n.step.Name)
		c.checkStep(s, n.step)
		if n.poll != nil {
			c.checkPoll(s, n)
		}
	case all, anyOf:
		c.checkTasks(s, n)
	case each:
		c.checkItems(s, n)
	case choice:
		c.checkGiven(s, n.pick != nil, n.function)
		if len(n.edges) == 0 {
			c.fault(s, "Switch has no targets")
		}
	case sleep:
		if n.function == "at" {
			c.checkGiven(s, n.untilOf != nil, "at")
		} else {
			c.checkGiven(s, n.pause != nil, "duration")
		}
	case await:
		c.checkWait(s, n)
	default:
		c.fault(s, "nothing happens in it")
	}
	if n.otherwise != "" && len(n.tasks()) == 0 {
		c.fault(s, "has an Else, but no step that could fail")
	}
	for _, e := range n.edges {
		if !c.working(e.to) && !c.final(e.to) {
			c.fault(s, "leads to %q, which is not defined", e.to)
		}
	}
}

func (c *checker) checkGiven(s State, given bool, what string) {
	if !given {
		c.fault(s, "%s is nil", what)
	}
}

func (c *checker) checkWait(s State, n node) {
	if len(n.arms) == 0 {
		c.fault(s, "AwaitAny waits for nothing")
	}
	seen := map[string]bool{}
	for _, a := range n.arms {
		c.checkGiven(s, a.merge != nil, "merge of signal "+a.signal)
		if !step.ValidName(a.signal) {
			c.fault(s, "bad signal %q: %s", a.signal, ruleOfNames)
		}
		if seen[a.signal] {
			c.fault(s, "waits for signal %q twice", a.signal)
		}
		seen[a.signal] = true
	}
	if n.bounded && n.withinOf == nil && n.untilOf == nil && n.within <= 0 {
		c.fault(s, "Within %v is no time to wait", n.within)
	}
}

// checkSignals checks that a signal's name stands for one type, since a sender
// cannot know which state it will reach.
func (c *checker) checkSignals() {
	first, where := map[string]arm{}, map[string]State{}
	for _, s := range c.names() {
		for _, a := range c.states[s].arms {
			other, seen := first[a.signal]
			switch {
			case !seen:
				first[a.signal], where[a.signal] = a, s
			case other.carries != a.carries:
				c.fault(s, "signal %q carries %v here, and %v in state %q", a.signal, a.carries, other.carries, where[a.signal])
			}
		}
	}
}
