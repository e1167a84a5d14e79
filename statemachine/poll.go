package statemachine

import (
	"time"

	"github.com/pawlhq/pawl/step"
)

// Polling is a step that is asked until its answer is good enough. It becomes a
// [Node] by saying where it leads.
type Polling[S any] struct {
	node node
	late State
}

// polling is what a node knows of it.
type polling struct {
	until  func(out []byte) (bool, error)
	every  time.Duration
	atMost int // 0 for no limit
}

// Poll runs st again and again until until says that its result is what was waited
// for; that one is merged. Between two askings the workflow waits, and no worker is
// busy with it. Each asking is an attempt group of its own, with a key of its own and
// a record; within one the step's policy holds as ever. A step that fails for good
// leads where it would in [Do].
//
//	Poll(status, Batch.id, (*Batch).settled, Status.final).Every(time.Minute).AtMost(60, Late).Then(Paid)
func Poll[S, In, Out any](st step.Step[In, Out], in func(S) In, out func(*S, Out), until func(Out) bool) Polling[S] {
	p := &polling{}
	if until != nil {
		p.until = reads(until)
	}
	return Polling[S]{node: node{kind: doStep, step: st.Spec(), input: encodes(in), merge: merges(out), poll: p}}
}

// Every says how long the workflow waits between an answer and the next asking.
func (p Polling[S]) Every(d time.Duration) Polling[S] {
	poll := *p.node.poll
	poll.every, p.node.poll = d, &poll
	return p
}

// AtMost has the workflow go to late after n askings without the answer.
// Without it there is no limit.
func (p Polling[S]) AtMost(n int, late State) Polling[S] {
	poll := *p.node.poll
	poll.atMost, p.node.poll, p.late = n, &poll, late
	return p
}

// Then makes it a node that leads to s once the answer has come.
func (p Polling[S]) Then(s State) Node[S] {
	p.node.edges = []edge{{to: s}}
	if p.late != "" {
		p.node.edges = append(p.node.edges, edge{p.late, "too late"})
	}
	return Node[S]{p.node}
}

// polled goes on after an answer: forward, or to the next asking after a pause.
func (t *turn) polled(n node, out []byte) error {
	ready, err := n.poll.until(out)
	if err != nil {
		return t.codeError("until", err)
	}
	t.c.Asked++
	if !ready && (n.poll.atMost == 0 || t.c.Asked < n.poll.atMost) {
		t.record(n.step, Record{Outcome: Done, Out: out})
		t.c.Phase = Waiting
		t.c.Mark = Mark{Step: n.step.Name, Group: t.newGroup()}
		t.do(Wake{After: n.poll.every})
		return nil
	}
	t.c.Asked = 0
	if ready {
		return t.merged(n, out)
	}
	t.record(n.step, Record{Outcome: Done, Out: out})
	return t.enterOrHold(n.edges[1].to)
}

// checkPoll checks what a step that is asked again has beyond the step.
func (c *checker) checkPoll(s State, n node) {
	c.checkGiven(s, n.poll.until != nil, "until of step "+n.step.Name)
	if n.poll.every <= 0 {
		c.fault(s, "Poll of step %q needs Every: how long to wait between two askings", n.step.Name)
	}
	if n.poll.atMost < 0 || n.poll.atMost == 0 && len(n.edges) > 1 && n.edges[1].label == "too late" {
		c.fault(s, "AtMost %d: at least 1", n.poll.atMost)
	}
	if n.poll.atMost > 0 && (len(n.edges) < 2 || n.edges[1].label != "too late") {
		c.fault(s, "AtMost leads nowhere")
	}
	switch {
	case n.step.Kind == step.KindChild:
		c.fault(s, "the child %q is the step of a Poll: it takes a Func, a Call or an InTx", n.step.Name)
	case n.step.Pivot:
		c.fault(s, "the pivot %q is the step of a Poll: make it a state of its own", n.step.Name)
	case n.step.Undo != nil:
		c.fault(s, "step %q of a Poll has an Undo: asking changes nothing; say NoUndo", n.step.Name)
	}
}
