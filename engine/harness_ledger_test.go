package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/step"
)

// patience bounds every wait of a test for something that must happen.
const patience = 3 * time.Minute

// ledger is the outside world of the tests: a service that keeps one row for
// each idempotency key, counts the calls, and gives every caller the first
// answer. It lives in the test's process and survives the workers that tests
// kill. A test scripts what a call meets, and learns from it that a call has
// arrived, so that nobody needs to sleep.
type ledger struct {
	server *httptest.Server
	closed chan struct{}

	mu         sync.Mutex
	rows       map[string]*row
	byWorkflow map[string][]*row
	serial     int
	visits     map[string]int // of hooks, by name and workflow
	script     map[string][]act
	changed    chan struct{} // closed, and made anew, when anything has changed
}

// row is what the ledger knows of one key.
type row struct {
	key, workflow, step string
	calls               int
	first               time.Time // when it was called first
	serial              int       // the order of the effects; 0 for none
	receipt             string    // the first answer
	known               bool      // an undo: the outcome of what it undoes was known
}

// act is what one call meets.
type act struct {
	effect bool   // the call has its effect
	status int    // of the answer; 200 if zero
	do     string // what the body is told to do then
	drop   bool   // the answer gets lost
	gate   *gate  // where the call waits, after its effect if it has one
}

// What a call may meet. Without a script it meets done.
var (
	done        = act{effect: true}
	refused     = act{status: http.StatusConflict}
	failsBefore = act{status: http.StatusInternalServerError}
	failsAfter  = act{effect: true, status: http.StatusInternalServerError}
	replyLost   = act{effect: true, drop: true}
)

// tells is done, and has the body do something afterwards.
func tells(do string) act { return act{effect: true, do: do} }

// gate is where a call waits until the test lets it go on.
type gate struct {
	came, open chan struct{}
	once       sync.Once
}

func newGate() *gate { return &gate{came: make(chan struct{}, 64), open: make(chan struct{})} }

// arrived waits until a call has come to the gate.
func (g *gate) arrived(t testing.TB) {
	t.Helper()
	select {
	case <-g.came:
	case <-time.After(patience):
		t.Fatal("no call has come to the gate")
	}
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func newLedger() *ledger {
	l := &ledger{
		closed: make(chan struct{}), rows: map[string]*row{}, byWorkflow: map[string][]*row{}, visits: map[string]int{},
		script: map[string][]act{}, changed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call", l.call)
	mux.HandleFunc("POST /visit", l.visit)
	mux.HandleFunc("POST /look", l.look)
	l.server = httptest.NewServer(mux)
	return l
}

func (l *ledger) close() {
	close(l.closed)
	l.server.CloseClientConnections()
	l.server.Close()
}

// next scripts what the next calls of a workflow's step meet, or the next
// visits to a hook. Once the script is over they meet done again.
func (l *ledger) next(workflow, step string, acts ...act) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := workflow + "/" + step
	l.script[at] = append(l.script[at], acts...)
}

// holds scripts that the next call waits at a gate, after its effect.
func (l *ledger) holds(workflow, step string) *gate {
	g := newGate()
	l.next(workflow, step, act{effect: true, gate: g})
	return g
}

// request is what bodies send. A hook has no key.
type request struct {
	Key      string
	Workflow string
	Step     string
	Known    bool
}

// answer is what they get.
type answer struct {
	Receipt string
	Do      string
}

func (l *ledger) call(w http.ResponseWriter, r *http.Request) {
	req, ok := readRequest(w, r)
	if !ok {
		return
	}
	key, err := step.ParseKey(req.Key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Step = key.Step()
	tail := step.NewItemKey("", key.Step(), key.Item(), key.Group()).String()
	req.Workflow = strings.TrimSuffix(req.Key, tail)
	a, receipt := l.take(req)
	l.reply(w, r, a, receipt)
}

func (l *ledger) visit(w http.ResponseWriter, r *http.Request) {
	req, ok := readRequest(w, r)
	if !ok {
		return
	}
	l.mu.Lock()
	at := req.Workflow + "/" + req.Step
	l.visits[at]++
	a := l.scripted(at)
	l.tell()
	l.mu.Unlock()
	l.reply(w, r, a, "")
}

// look tells what became of a key, without a call: its receipt, or none. A script
// for the hook "look" makes it fail.
func (l *ledger) look(w http.ResponseWriter, r *http.Request) {
	req, ok := readRequest(w, r)
	if !ok {
		return
	}
	l.mu.Lock()
	at := req.Workflow + "/look"
	l.visits[at]++
	a := l.scripted(at)
	receipt := ""
	if row := l.rows[req.Key]; row != nil {
		receipt = row.receipt
	}
	l.tell()
	l.mu.Unlock()
	l.reply(w, r, a, receipt)
}

func readRequest(w http.ResponseWriter, r *http.Request) (req request, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return req, false
	}
	return req, true
}

// take counts a call and lets it have its effect, if it is to have one.
func (l *ledger) take(req request) (act, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.scripted(req.Workflow + "/" + req.Step)
	r := l.rows[req.Key]
	if r == nil {
		r = &row{key: req.Key, workflow: req.Workflow, step: req.Step, first: time.Now()}
		l.rows[req.Key] = r
		l.byWorkflow[req.Workflow] = append(l.byWorkflow[req.Workflow], r)
	}
	r.calls++
	r.known = req.Known
	if a.effect && r.serial == 0 {
		l.serial++
		r.serial, r.receipt = l.serial, fmt.Sprintf("%s#%d", req.Key, l.serial)
	}
	l.tell()
	return a, r.receipt
}

func (l *ledger) scripted(at string) act {
	s := l.script[at]
	if len(s) == 0 {
		return done
	}
	l.script[at] = s[1:]
	return s[0]
}

// tell wakes all that wait for a change.
func (l *ledger) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *ledger) reply(w http.ResponseWriter, r *http.Request, a act, receipt string) {
	if a.gate != nil {
		a.gate.came <- struct{}{}
		select {
		case <-a.gate.open:
		case <-r.Context().Done(): // the caller is gone
			return
		case <-l.closed:
			return
		}
	}
	switch {
	case a.drop:
		panic(http.ErrAbortHandler) // the connection ends without an answer
	case a.status != 0:
		http.Error(w, "scripted", a.status)
	default:
		_ = json.NewEncoder(w).Encode(answer{receipt, a.do})
	}
}

// calls returns how often a step of a workflow was called, over all its keys.
func (l *ledger) calls(workflow, step string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.rows {
		if r.workflow == workflow && r.step == step {
			n += r.calls
		}
	}
	return n
}

// visited returns how often a hook was visited.
func (l *ledger) visited(workflow, hook string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visits[workflow+"/"+hook]
}

// known reports whether an undo was told the outcome of what it undoes.
func (l *ledger) known(workflow, step string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		if r.workflow == workflow && r.step == step {
			return r.known
		}
	}
	return false
}

// effects returns the steps of a workflow that have had their effect, in the
// order in which they had it.
func (l *ledger) effects(workflow string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []*row
	for _, r := range l.rows {
		if r.workflow == workflow && r.serial > 0 {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return a.serial - b.serial })
	steps := []string{}
	for _, r := range rows {
		steps = append(steps, r.step)
	}
	return steps
}

// all returns a copy of every row.
func (l *ledger) all() []row {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows := make([]row, 0, len(l.rows))
	for _, r := range l.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return rows
}

// of returns the rows of workflows.
func (l *ledger) of(workflows ...string) (rows []row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range workflows {
		for _, r := range l.byWorkflow[w] {
			rows = append(rows, *r)
		}
	}
	return rows
}

// meets scripts all that the next calls of "workflow/step" meet, in place of what
// was scripted before.
func (l *ledger) meets(at string, acts []act) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script[at] = slices.Clone(acts)
}

// byHand is an effect that a person has had, without a call.
func (l *ledger) byHand(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial++
	l.rows[key].serial = l.serial
}

// forget leaves out what is known of a workflow whose records are deleted.
func (l *ledger) forget(workflow string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.byWorkflow[workflow] {
		delete(l.rows, r.key)
	}
}
