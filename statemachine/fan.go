package statemachine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/step"
)

// A fan is a state that works in several places at once. Each place is a branch:
// a cursor of its own, which knows the input of its step and nothing else of the
// data, so that branches go on, crash and recover without one another. The
// workflow itself, the root, waits in the state and counts the branches that are
// open. What they record stays with them until the last one has ended: then the
// root reads the records, and merges the results in the order of the tasks or
// undoes them in the reverse order of their completion.

// branchPath names the branch of a task, for one entry of its state.
func branchPath(s State, group int, task string) string {
	return string(s) + "/" + strconv.Itoa(group) + "/" + task
}

// part is the task of the branch that path names.
func (n node) part(path string) node {
	if n.kind == each {
		return n.lane()
	}
	task := path[strings.LastIndexByte(path, '/')+1:]
	for _, p := range n.tasks() {
		if p.step.Name == task {
			return p
		}
	}
	return node{}
}

// fanned reports whether the workflow stands in a fan with branches open, be it
// Held there.
func (t *turn) fanned() bool {
	waits := t.c.Phase == Waiting || t.c.Phase == Held && t.c.From == Waiting
	return waits && t.c.Open > 0 && t.c.Branch == "" && t.node().fans()
}

// aboutToFan reports whether the workflow has been started in a fan whose
// branches are not.
func (t *turn) aboutToFan() bool {
	return t.c.Phase == Running && t.c.Mark == Mark{} && t.c.Branch == "" && t.node().fans()
}

// fanOut starts a branch or a child for each task of the state, and waits for
// them.
func (t *turn) fanOut(n node) error {
	t.c.Past, t.c.PastKnown = nil, false // the branches record what this cursor will not see
	if n.kind == each {
		return t.fanItems(n)
	}
	group := t.newGroup()
	t.c.Phase, t.c.Open = Waiting, len(n.tasks())
	for _, p := range n.tasks() {
		in, err := p.input(t.c.Data)
		if err != nil {
			return t.codeErrorIn(p, "in", err)
		}
		if child := t.m.children[p.step.Name]; child != nil {
			t.do(StartChild{ID: childID(t.c.ID, p.step.Name, group), Machine: child, Data: in})
			continue
		}
		t.do(StartBranch{t.branch(p.step.Name, p.step.Name, group, in)})
	}
	return nil
}

// branch is the cursor of a branch that begins with a step.
func (t *turn) branch(name, step string, group int, data []byte) Cursor {
	return Cursor{
		ID: t.c.ID, Branch: branchPath(t.c.State, group, name),
		State: t.c.State, Phase: Running, Data: data, Pivoted: t.c.Pivoted,
		Mark: Mark{Step: step, Group: group, Attempt: 1},
	}
}

// endBranch ends a branch and tells its root. Without a cause it has succeeded.
func (t *turn) endBranch(cause Cause, reason string) error {
	t.c.Phase, t.c.From, t.c.Mark = Ended, 0, Mark{}
	t.c.Paused, t.c.Alarm = false, 0
	t.c.Cause, t.c.Reason = cause, reason
	t.do(EndBranch{BranchEnded{Path: t.c.Branch, Cause: cause, Reason: reason, Failures: t.c.Failures}})
	return nil
}

// branchEnded counts a branch as closed. The first that fails stops the others;
// the last decides how the root goes on.
func (t *turn) branchEnded(e BranchEnded) error {
	if !t.fanned() || t.c.Phase != Waiting {
		return t.unexpected(e)
	}
	if !t.opened(e.Path) {
		return nil // of an entry before the workflow was terminated and begun anew
	}
	t.c.Failures += e.Failures
	if e.Cause == "" && t.c.Failures > t.node().tolerate {
		return t.closed(e.Path, Exhausted, fmt.Sprintf("%d items failed, the last: %s", t.c.Failures, e.Reason))
	}
	return t.closed(e.Path[strings.LastIndexByte(e.Path, '/')+1:], e.Cause, e.Reason)
}

// closed counts one branch or child less; with a cause it has failed.
func (t *turn) closed(part string, cause Cause, reason string) error {
	t.c.Open--
	n := t.node()
	switch {
	case n.kind == anyOf && t.c.Cause == "":
		if err := t.race(part, cause, reason); err != nil {
			return err
		}
	case cause != "" && t.c.Cause == "":
		if err := t.stopBranches(cause, reason); err != nil {
			return err
		}
	}
	return t.whenClosed(n)
}

// whenClosed goes on once all branches and children have ended.
func (t *turn) whenClosed(n node) error {
	switch {
	case t.c.Open > 0:
		return nil
	case t.c.Won != "":
		return t.undoLosers()
	case t.c.Cause != "" && n.otherwise != "" && t.c.Cause != Cancelled && t.c.Cause != Overdue:
		t.c.Cause, t.c.Reason = "", ""
		return t.enter(n.otherwise, Chosen, "")
	case t.c.Cause != "":
		return t.rollBack(t.m.onFailure, t.c.Cause, t.c.Reason)
	}
	return t.join(n)
}

// opened reports whether this entry of the state has started that branch.
func (t *turn) opened(path string) bool {
	if t.node().kind == each {
		return t.opensLane(path)
	}
	p := t.node().part(path)
	return p.kind != 0 && p.step.Kind != step.KindChild && path == branchPath(t.c.State, t.group(), p.step.Name)
}

// stopBranches asks the branches to end, for a rollback that begins once all of
// them have. One that has ended by itself will not see it.
func (t *turn) stopBranches(cause Cause, reason string) error {
	t.c.Phase, t.c.From = Waiting, 0
	t.c.Paused, t.c.Alarm = false, 0
	t.c.Cause, t.c.Reason = cause, reason
	return t.askToEnd(reason)
}

// stopping reports whether the branches of a fan were asked to end.
func (t *turn) stopping() bool { return t.c.Cause != "" || t.c.Won != "" }

// askToEnd asks the branches and children that are open to end. A child that is left
// to itself counts as closed from now on.
func (t *turn) askToEnd(reason string) error {
	if t.c.Open == 0 {
		return nil
	}
	if t.node().kind == each {
		for l := 1; l <= t.c.Lanes; l++ {
			t.do(StopBranch{t.lanePath(l), reason})
		}
		return nil
	}
	for _, p := range t.node().tasks() {
		if p.step.Abandon {
			if err := t.abandon(p.step.Name, reason); err != nil {
				return err
			}
			continue
		}
		if p.step.Kind == step.KindChild {
			t.do(StopChild{childID(t.c.ID, p.step.Name, t.group()), reason})
			continue
		}
		t.do(StopBranch{branchPath(t.c.State, t.group(), p.step.Name), reason})
	}
	return nil
}

// abandon leaves a child to itself, unless it has ended: whether it has, the records
// tell.
func (t *turn) abandon(name, reason string) error {
	if !t.c.PastKnown {
		return ErrNeedsPast
	}
	for _, p := range t.c.Past {
		if p.Step == name && p.Group == t.group() {
			return nil
		}
	}
	r := Record{Step: name, Group: t.group(), Attempt: 1, Outcome: NoEffect, Error: "left to go on by itself: " + reason}
	t.do(r)
	t.c.Past = append(t.c.Past[:len(t.c.Past):len(t.c.Past)], Past{Step: name, Group: r.Group, Outcome: NoEffect})
	t.c.Open--
	return nil
}

// join merges the results of the branches in the order of their tasks and
// follows the node's edge.
func (t *turn) join(n node) error {
	if err := t.joinItems(n); err != nil {
		return err
	}
	if n.pages != nil {
		t.c.Lanes = 0
		return t.afterPage()
	}
	for _, p := range n.tasks() {
		if p.merge == nil {
			continue
		}
		if !t.c.PastKnown {
			return ErrNeedsPast
		}
		out, ok := t.result(p.step.Name)
		if !ok {
			return fmt.Errorf("%w: branch %s has ended, but its step is not recorded", ErrUnexpected, p.step.Name)
		}
		data, err := p.merge(t.c.Data, out)
		if err != nil {
			return t.codeErrorIn(p, "out", err)
		}
		t.c.Data = data
	}
	return t.enter(n.next(), Chosen, "")
}

// result returns what a step of this entry of the state has given.
func (t *turn) result(name string) ([]byte, bool) {
	group := t.group()
	for i := len(t.c.Past) - 1; i >= 0; i-- {
		if p := t.c.Past[i]; p.Step == name && p.Group == group && p.Outcome == Done {
			return p.Out, true
		}
	}
	return nil, false
}

// group is the attempt group of the entry of the state that the workflow is in.
func (t *turn) group() int { return max(t.c.Groups[t.c.State], 1) }
