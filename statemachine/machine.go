package statemachine

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/pawlhq/pawl/step"
)

// Machine is a compiled [Definition]: valid, and without a type parameter, so
// that the engine needs none. It is immutable and safe for concurrent use.
type Machine struct {
	table
	graph       []byte
	fingerprint string
	specs       []step.Spec          // every step and undo, by state
	named       map[string]step.Spec // the same by name
	undone      map[string]string    // the step that an undo undoes, by the undo's name
	children    map[string]*Machine  // by the name of the step that starts it
	loops       map[State]bool       // the states that run a step and can be entered again
	signals     map[string]func(value []byte) error
}

// newMachine prepares what Next looks up from a valid table.
func newMachine(t table) (*Machine, error) {
	graph, err := t.encode()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(graph)
	m := &Machine{
		table:       t,
		graph:       graph,
		fingerprint: hex.EncodeToString(sum[:]),
		named:       map[string]step.Spec{},
		undone:      map[string]string{},
		children:    map[string]*Machine{},
		loops:       map[State]bool{},
		signals:     map[string]func(value []byte) error{},
	}
	for _, s := range t.names() {
		n := t.states[s]
		for _, task := range n.tasks() {
			m.addStep(s, task.step)
			if child, ok := childOf(task.step); ok {
				if m.children[task.step.Name], err = newMachine(child); err != nil {
					return nil, err
				}
			}
		}
		for _, a := range n.arms {
			m.signals[a.signal] = a.fits
		}
	}
	return m, nil
}

func (m *Machine) addStep(s State, sp step.Spec) {
	m.loops[s] = m.behind(s, anyNode)[s] || m.states[s].poll != nil || m.states[s].pages != nil
	m.specs = append(m.specs, sp)
	m.named[sp.Name] = sp
	if sp.Undo != nil {
		m.specs = append(m.specs, *sp.Undo)
		m.named[sp.Undo.Name] = *sp.Undo
		m.undone[sp.Undo.Name] = sp.Name
	}
}

// Name returns the definition's name.
func (m *Machine) Name() string { return m.name }

// Version returns the definition's version.
func (m *Machine) Version() int { return m.version }

// Deadline is how long a workflow may take from its start; 0 for ever.
func (m *Machine) Deadline() time.Duration { return m.deadline }

// Fingerprint identifies the graph: the SHA-256, in hexadecimal, of
// [Machine.Graph]. Two programs that register one version of a definition must
// agree on it.
func (m *Machine) Fingerprint() string { return m.fingerprint }

// Graph returns the graph as JSON: the states with their edges, steps and
// signals, and the ends. It holds all that a stored cursor depends on, so
// neither policies nor timeouts. The same definition always gives the same
// bytes. The caller must not change them.
func (m *Machine) Graph() []byte { return m.graph }

// Specs returns every step of the machine, undos included, in the order of
// their states' names. The caller must not change them.
func (m *Machine) Specs() []step.Spec { return m.specs }

// Spec returns the step or undo of that name.
func (m *Machine) Spec(name string) (step.Spec, bool) {
	sp, ok := m.named[name]
	return sp, ok
}

// End returns what the final state s means. It is false for a state that is
// not final.
func (m *Machine) End(s State) (End, bool) {
	e, ok := m.ends[s]
	return e, ok
}

// CheckSignal says before it is sent whether a signal can be of use: known is
// false if no state waits for one of that name, and err is a [*PayloadError] if
// the value is not of its type.
func (m *Machine) CheckSignal(name string, value []byte) (known bool, err error) {
	fits := m.signals[name]
	if fits == nil {
		return false, nil
	}
	if err := fits(value); err != nil {
		return true, &PayloadError{name, err}
	}
	return true, nil
}
