package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// vaultModel is what a vault must look like whenever it rests, computed without
// an engine: in a page of sequential code, which knows neither leases nor
// transactions, retries nor messages that arrive at any time.
type vaultModel struct {
	id     string
	first  trip // what it was started with
	status store.Status
	state  statemachine.State
	cause  statemachine.Cause
	votes  []string        // orders that were taken up
	queue  []string        // orders that were not
	closed bool            // closing was sent
	seen   map[string]bool // ids of messages

	groups  map[string]int   // how often each step was begun as a new intent
	undos   []owed           // what a rollback would undo, oldest first
	effects map[string]bool  // keys that have had their effect
	loose   []pair           // effects that may or may not be there, each with its undo
	script  map[string][]act // what the next calls of a step will meet
	moved   int              // what its transfers come to
	got     []string         // keys whose results are in the data
	byHand  []string         // keys of undos that somebody has taken as done
	paused  bool
	passed  bool         // the pivot may have been passed by an attempt that was given up
	before  store.Status // what it was when it was paused
}

// owed is an undo that a rollback owes.
type owed struct {
	undo  string // the name of its step; "" for a transfer
	key   string
	moved int
}

// pair is an effect that a failing neighbour may have cut off, and its undo.
type pair struct{ do, undo string }

func newVaultModel(id string, first trip) *vaultModel {
	return &vaultModel{
		id: id, first: first, status: store.Waiting, state: "ready",
		seen: map[string]bool{}, groups: map[string]int{}, effects: map[string]bool{}, script: map[string][]act{},
	}
}

// GoString is how a failure shows it.
func (m *vaultModel) GoString() string {
	return fmt.Sprintf("%s (%s in %s)", m.id, m.status, m.state)
}

// ended reports whether nothing will ever happen to it again.
func (m *vaultModel) ended() bool { return m.status.Ended() }

// send is a signal with an order.
func (m *vaultModel) send(message, order string) {
	if m.seen[message] {
		return
	}
	m.seen[message] = true
	m.queue = append(m.queue, order)
	m.goOn()
}

// sendClosing is the signal closing.
func (m *vaultModel) sendClosing() { m.closed = true; m.goOn() }

// goOn takes up what lies in the inbox, as far as its state asks for it.
func (m *vaultModel) goOn() {
	for m.status == store.Waiting && m.state == "ready" && len(m.queue) > 0 {
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.votes = append(m.votes, next)
		m.carryOut(next)
	}
	if m.status == store.Waiting && m.state == "settling" && m.closed {
		m.status, m.state = store.Completed, "good"
	}
}

// carryOut does what an order says.
func (m *vaultModel) carryOut(order string) {
	switch order {
	case "pay":
		m.call("pay", "unpay")
	case "move":
		m.move()
	case "split":
		m.together(pair{"left", "unleft"}, pair{"right", "unright"})
	case "deal":
		m.deal()
	case "lend":
		m.lend()
	case "seal":
		m.seal()
	}
}

// outcome is how a step ends.
type outcome int

const (
	worked  outcome = iota
	denied          // refused, nothing has happened
	unclear         // failed for good, and may have had its effect
)

// attempts runs a step as often as its policy allows, and reports whether one of
// the attempts had its effect.
func (m *vaultModel) attempts(name string, limit int) (o outcome, effect bool) {
	for range limit {
		a := done
		if s := m.script[name]; len(s) > 0 {
			a, m.script[name] = s[0], s[1:]
		}
		effect = effect || a.effect
		switch {
		case a.status == refused.status:
			return denied, effect
		case a.status == 0 && !a.drop:
			return worked, effect
		}
	}
	return unclear, effect
}

func (m *vaultModel) begin(name string) int { m.groups[name]++; return m.groups[name] }

func (m *vaultModel) key(name string, item, group int) string {
	return step.NewItemKey(m.id, name, item, group).String()
}

func (m *vaultModel) call(do, undo string) {
	g := m.begin(do)
	o, effect := m.attempts(do, 2)
	key := m.key(do, 0, g)
	if effect {
		m.effects[key] = true
	}
	if o != denied {
		m.undos = append(m.undos, owed{undo: undo, key: m.key(undo, 0, g)})
	}
	m.settle(o, key)
}

// settle goes on after a step, or begins the rollback.
func (m *vaultModel) settle(o outcome, keys ...string) {
	switch o {
	case worked:
		m.got = append(m.got, keys...)
	case denied:
		m.rollBack(statemachine.Refused)
	case unclear:
		m.rollBack(statemachine.Exhausted)
	}
}

// move is a transfer: it has taken place, or certainly not.
func (m *vaultModel) move() {
	m.begin("move")
	o, _ := m.attempts("wrote", 2)
	if o == worked {
		m.moved += m.first.Amount
		m.undos = append(m.undos, owed{moved: m.first.Amount})
		m.got = append(m.got, "moved")
		return
	}
	m.settle(o)
}

// together runs several steps at once. If one fails the others may be cut off, at
// any point: then it is only known that what has happened is undone.
func (m *vaultModel) together(pairs ...pair) {
	var outs []outcome
	var keys []string
	for _, p := range pairs {
		g := m.begin(p.do)
		o, effect := m.attempts(p.do, 2)
		outs = append(outs, o)
		keys = append(keys, m.key(p.do, 0, g))
		if effect {
			m.effects[keys[len(keys)-1]] = true
		}
		m.undos = append(m.undos, owed{undo: p.undo, key: m.key(p.undo, 0, g)})
	}
	m.join(outs, keys, len(pairs))
}

// deal is three items, two at a time.
func (m *vaultModel) deal() {
	g := m.begin("deal")
	var outs []outcome
	var keys []string
	for item := 1; item <= 3; item++ {
		outs = append(outs, worked)
		keys = append(keys, m.key("deal", item, g))
		m.effects[keys[item-1]] = true
		m.undos = append(m.undos, owed{undo: "undeal", key: m.key("undeal", item, g)})
	}
	if s := m.script["deal"]; len(s) > 0 { // it cannot be said which of the items meets it
		m.script["deal"] = nil
		outs[0] = unclear
		if s[0].status == refused.status {
			outs[0] = denied
		}
	}
	m.join(outs, keys, 3)
}

// join goes on if all is well; else it makes loose what the last n undos undo.
func (m *vaultModel) join(outs []outcome, keys []string, n int) {
	bad := slices.IndexFunc(outs, func(o outcome) bool { return o != worked })
	if bad < 0 {
		m.settle(worked, keys...)
		return
	}
	for i, o := range m.undos[len(m.undos)-n:] {
		delete(m.effects, keys[i])
		m.loose = append(m.loose, pair{keys[i], o.key})
	}
	m.undos = m.undos[:len(m.undos)-n]
	m.settle(outs[bad])
}

// lend has a child do something.
func (m *vaultModel) lend() {
	g := m.begin("child-loan")
	child := m.key("child-loan", 0, g)
	o, effect := m.attempts("lend", 2)
	lend := step.NewKey(child, "lend", 1).String()
	if effect {
		m.effects[lend] = true
	}
	switch o {
	case worked:
		m.undos = append(m.undos, owed{undo: "undo-loan", key: m.key("undo-loan", 0, g)})
		m.got = append(m.got, lend)
		return
	case unclear:
		m.effects[step.NewKey(child, "unlend", 1).String()] = true
	}
	m.rollBack(statemachine.Refused)
}

// seal is the pivot: there is no way back, unless it is refused.
func (m *vaultModel) seal() {
	g := m.begin("seal")
	m.state = "sealing"
	o, effect := m.attempts("seal", 2)
	key := m.key("seal", 0, g)
	if effect {
		m.effects[key] = true
	}
	switch o {
	case worked:
		m.got = append(m.got, key)
		m.state = "settling"
	case denied:
		if m.passed {
			m.status = store.Held
			return
		}
		m.rollBack(statemachine.Refused)
	case unclear:
		m.status = store.Held
	}
}

// rollBack undoes everything, newest first, unless an undo fails.
func (m *vaultModel) rollBack(c statemachine.Cause) {
	m.cause = c
	m.unwind()
}

func (m *vaultModel) unwind() {
	for len(m.undos) > 0 {
		last := m.undos[len(m.undos)-1]
		if last.undo == "" {
			m.moved -= last.moved
		} else {
			o, effect := m.attempts(last.undo, 1)
			if effect {
				m.effects[last.key] = true
			}
			if o != worked {
				m.status = store.Held
				return
			}
		}
		m.undos = m.undos[:len(m.undos)-1]
	}
	m.status, m.state = store.Compensated, "undone"
}

// cancel is what becomes of a cancellation: an error for the caller, or nil.
func (m *vaultModel) cancel() (refused string) {
	switch {
	case m.ended():
		return "ended"
	case m.state == "settling", m.passed:
		return "past pivot"
	case m.status == store.Waiting, m.paused:
		m.paused = false
		m.rollBack(statemachine.Cancelled)
	}
	return "" // held: it waits until somebody has looked, or comes too late
}

// operate is what becomes of a verb: refused, or done.
func (m *vaultModel) operate(v engine.Verb) (done bool) {
	held := m.status == store.Held
	switch {
	case v == engine.Pause:
		if m.ended() || held {
			return false
		}
		m.paused, m.before = true, m.status
		m.status = store.Held
		return true
	case v == engine.Resume:
		if !m.paused {
			return false
		}
		m.paused, m.status = false, m.before
		m.goOn()
		return true
	case v == engine.Terminate:
		if m.ended() {
			return false
		}
		m.status, m.cause, m.paused = store.Terminated, statemachine.Stopped, false
		return true
	case !held || m.paused:
		return false
	}
	if m.state == "sealing" {
		return m.operatePivot(v)
	}
	last := m.undos[len(m.undos)-1]
	switch v {
	case engine.Skip:
	case engine.Force:
		m.byHand = append(m.byHand, last.key)
	case engine.Retry:
		m.unwind()
		return true
	default:
		return false
	}
	m.undos = m.undos[:len(m.undos)-1]
	m.unwind()
	return true
}

// operatePivot is for a pivot whose outcome is unknown.
func (m *vaultModel) operatePivot(v engine.Verb) (done bool) {
	switch v {
	case engine.Retry:
		m.groups["seal"]-- // the same key
	case engine.NewIntent:
		m.passed = true // as far as anybody knows
	default:
		return false
	}
	m.status = store.Waiting
	m.seal()
	m.goOn()
	return true
}

// differs says in what the world differs from the model, or "".
func (m *vaultModel) differs(effects map[string]bool) string {
	want := maps.Clone(m.effects)
	have := maps.Clone(effects)
	for _, p := range m.loose {
		if have[p.do] && !have[p.undo] {
			return fmt.Sprintf("%s has had its effect, and was not undone", p.do)
		}
		for _, key := range []string{p.do, p.undo} {
			delete(want, key)
			delete(have, key)
		}
	}
	for key := range want {
		if !have[key] {
			return "there is no effect of " + key
		}
	}
	for key := range have {
		if !want[key] {
			return "there is an effect of " + key
		}
	}
	return ""
}
