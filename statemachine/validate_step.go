package statemachine

import (
	"strings"

	"github.com/pawlhq/pawl/step"
)

// checkStep checks one step, and its undo, by themselves.
func (c *checker) checkStep(s State, sp step.Spec) {
	c.checkBody(s, "step", sp)
	if sp.Undo != nil {
		c.checkBody(s, "undo", *sp.Undo)
	}
	c.checkAnswer(s, sp)
	if sp.Abandon && sp.Kind != step.KindChild {
		c.fault(s, "step %q has an Abandon, but is no child", sp.Name)
	}
	c.checkUnknown(s, sp)
}

// checkUnknown checks what a step does about an unknown outcome. A probe must not
// be overtaken by the call that it asks about, so that must end.
func (c *checker) checkUnknown(s State, sp step.Spec) {
	switch {
	case sp.Unknown == step.Resend:
	case sp.Kind != step.KindCall:
		c.fault(s, "step %q declares %q for an unknown outcome, but only a Call has one", sp.Name, sp.Unknown)
	case sp.Policy.AttemptTimeout() == 0:
		c.fault(s, "step %q declares %q for an unknown outcome: it needs a Timeout", sp.Name, sp.Unknown)
	case sp.Unknown == step.Probe && sp.Ask == nil:
		c.fault(s, "step %q has no function to probe with", sp.Name)
	}
}

// checkTasks checks the tasks of an All.
func (c *checker) checkTasks(s State, n node) {
	if len(n.parts) == 0 {
		c.fault(s, "%s has no tasks", nameOfFan(n))
	}
	for i, p := range n.parts {
		if p.kind != doStep {
			c.fault(s, "task %d of %s is none: it takes Do, not %s", i+1, nameOfFan(n), p.kind)
			continue
		}
		c.checkGiven(s, p.input != nil, "in of step "+p.step.Name)
		c.checkStep(s, p.step)
		if p.step.Pivot {
			c.fault(s, "the pivot %q is a task of %s: make it a state of its own", p.step.Name, nameOfFan(n))
		}
	}
}

// nameOfFan is what the definition calls it.
func nameOfFan(n node) string {
	if n.kind == anyOf {
		return "Any"
	}
	return "All"
}

// checkItems checks an Each.
func (c *checker) checkItems(s State, n node) {
	c.checkGiven(s, n.items != nil, "items of step "+n.step.Name)
	c.checkStep(s, n.step)
	if n.pages != nil {
		c.checkPages(s, n)
	}
	switch {
	case n.atMost < 0:
		c.fault(s, "AtMost %d: at least 1", n.atMost)
	case n.tolerate < 0:
		c.fault(s, "Tolerate %d: not below 0", n.tolerate)
	}
	if n.step.Pivot {
		c.fault(s, "the pivot %q is the step of an Each: make it a state of its own", n.step.Name)
	}
	if n.step.Kind == step.KindChild {
		c.fault(s, "the child %q is the step of an Each: it takes a Func, a Call or an InTx", n.step.Name)
	}
}

// checkChild checks the definition of a child as its own, and says in what it
// cannot be a child.
func (c *checker) checkChild(s State, sp step.Spec, child table) {
	if err := child.validate(); err != nil {
		c.fault(s, "child %q: %v", sp.Name, err)
	}
	if sp.Pivot {
		c.fault(s, "the child %q is a pivot: put a step behind it that is one", sp.Name)
	}
}

// checkBody checks what a step and an undo have in common.
func (c *checker) checkBody(s State, what string, sp step.Spec) {
	if !step.ValidName(sp.Name) {
		c.fault(s, "bad %s name %q: %s", what, sp.Name, ruleOfNames)
	}
	if child, ok := childOf(sp); ok {
		c.checkChild(s, sp, child)
	} else if sp.Run == nil {
		c.fault(s, "%s %q has no body", what, sp.Name)
	}
	if err := sp.Policy.Check(); err != nil {
		c.fault(s, "policy of %s %q: %v", what, sp.Name, err)
	}
}

// checkAnswer checks that the step says what becomes of its effect in a
// rollback, once and only if it has one.
func (c *checker) checkAnswer(s State, sp step.Spec) {
	var said []string
	if sp.Undo != nil {
		said = append(said, "Undo")
	}
	if sp.Pivot {
		said = append(said, "Pivot")
	}
	if sp.NoUndoSet {
		said = append(said, "NoUndo")
	}
	switch {
	case len(said) == 0 && sp.Kind.Effectful():
		c.fault(s, "step %q has an effect, so it needs one of Undo, Pivot and NoUndo", sp.Name)
	case len(said) > 1:
		c.fault(s, "step %q has %s: only one of them can hold", sp.Name, strings.Join(said, " and "))
	case sp.Undo != nil && !sp.Kind.Effectful():
		c.fault(s, "step %q is a Func, which has no effect to undo: make it a Call or an InTx", sp.Name)
	}
	if sp.NoUndoSet && strings.TrimSpace(sp.NoUndo) == "" {
		c.fault(s, "step %q has a NoUndo without a reason", sp.Name)
	}
}

// checkStepNames checks that no two steps, undos included, share a name: it is
// what tells their keys apart.
func (c *checker) checkStepNames() {
	user := map[string]State{}
	claim := func(s State, name string) {
		switch first, taken := user[name]; {
		case name == "": // found by checkBody
		case !taken:
			user[name] = s
		case first == s:
			c.fault(s, "uses the step name %q twice", name)
		default:
			c.fault(s, "uses the step name %q, as state %q does", name, first)
		}
	}
	for _, s := range c.names() {
		for _, task := range c.states[s].tasks() {
			claim(s, task.step.Name)
			if task.step.Undo != nil {
				claim(s, task.step.Undo.Name)
			}
		}
	}
}
