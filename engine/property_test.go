package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// How much a run of the property test does: rounds of actions each, on each
// store. -rapid.checks asks for more rounds.
const (
	propertyRounds  = 10
	propertyActions = 500

	// restPatience is how long a vault may take to come to rest. Making a failure
	// small takes many such waits.
	restPatience = 20 * time.Second
)

// TestVerbsAgreeWithTheModel does at random what a program, an operator and a
// machine that is restarted may do to workflows, and compares them, whenever they
// rest, with a model of a page: their status, state and data, what they have
// recorded, and each effect that the outside world has seen. In the end the
// invariants of every scenario must hold.
//
// A failure is made as small as it can be. It names the seed that repeats it.
func TestVerbsAgreeWithTheModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		rounds := propertyRounds
		if raced { // the detector makes each of them many times as long
			rounds = 1
		}
		require.NoError(t, f.Value.Set(fmt.Sprint(rounds)))
	}
	require.NoError(t, flag.Set("rapid.shrinktime", "1m"))
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	eachStore(t, func(w *world) {
		p := newProperty(w)
		rapid.Check(w.T, p.round)
		w.Logf("actions=%d workflows=%d: %s", p.total, len(p.everything), p.summary())
	})
}

// property is one run: a world, and all that was done to it.
type property struct {
	w          *world
	n          *node // works, and is the client too
	second     *node // works beside it, now and then
	handle     *engine.Workflow[trip]
	other      *engine.Workflow[trip]
	rounds     int
	total      int
	counts     map[string]int
	everything []*vaultModel

	// Of the round under way.
	t         *rapid.T
	vaults    []*vaultModel
	schedules map[string]*scheduleModel
	messages  int
}

// scheduleModel is what a schedule must look like.
type scheduleModel struct {
	name   string
	paused bool
	data   trip
}

func newProperty(w *world) *property {
	w.knows("vault", "other")
	w.accounts()
	w.exec(`UPDATE account SET balance = 1000000000`)
	p := &property{w: w, counts: map[string]int{}}
	p.n, p.second = w.worker(), w.client()
	p.handle, p.other = p.n.flows["vault"], p.n.flows["other"]
	return p
}

// action is one thing that is done in a round. It says in what way it went, for
// the summary.
type action struct {
	name   string
	weight int
	do     func(p *property) string
}

// GoString is how a failure shows it.
func (a action) GoString() string { return a.name }

// actions are all that is done.
var actions = []action{
	{"start", 12, (*property).start},
	{"start again", 5, (*property).startAgain},
	{"start in a race", 2, (*property).startRace},
	{"start badly", 3, (*property).startBadly},
	{"order", 40, (*property).order},
	{"orders at once", 6, (*property).orders},
	{"order twice", 4, (*property).orderTwice},
	{"order badly", 4, (*property).orderBadly},
	{"close", 6, (*property).closeVault},
	{"cancel", 8, (*property).cancel},
	{"operate", 14, (*property).operate},
	{"read", 5, (*property).read},
	{"list", 2, (*property).list},
	{"wait", 4, (*property).wait},
	{"schedule", 4, (*property).schedule},
	{"restart", 1, (*property).restart},
	{"second worker", 1, (*property).secondWorker},
}

// deck holds each action as often as its weight says.
var deck = func() (deck []action) {
	for _, a := range actions {
		deck = append(deck, slices.Repeat([]action{a}, a.weight)...)
	}
	return deck
}()

// round is one sequence of actions on workflows of its own.
func (p *property) round(t *rapid.T) {
	p.t, p.vaults, p.schedules = t, nil, map[string]*scheduleModel{}
	p.rounds++
	for range propertyActions {
		a := rapid.SampledFrom(deck).Draw(t, "action")
		how := a.do(p)
		p.total++
		p.counts[strings.TrimSpace(a.name+" "+how)]++
	}
	for _, m := range p.vaults {
		p.agree(m)
	}
	p.money()
	for _, s := range p.schedules {
		p.must(p.n.DeleteSchedule(p.w.ctx(), s.name), nil, "delete schedule")
	}
}

func (p *property) summary() string {
	var all []string
	for name, n := range p.counts {
		all = append(all, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// must checks how a call has ended; want is nil for well.
func (p *property) must(err, want error, what string, args ...any) {
	p.t.Helper()
	if !errors.Is(err, want) {
		p.t.Fatalf("%s: %v, want %v", fmt.Sprintf(what, args...), err, want)
	}
}

// agree waits until a vault rests as its model does, and compares all there is.
func (p *property) agree(m *vaultModel) engine.Snapshot[trip] {
	p.t.Helper()
	var s engine.Snapshot[trip]
	var err error
	rests := func() bool {
		s, err = p.handle.Get(p.w.ctx(), m.id)
		if err != nil || s.Status != m.status || len(s.Data.Votes) != len(m.votes) {
			return false
		}
		return m.status == store.Held || s.State == m.state && s.Mark.Step == ""
	}
	for until := time.Now().Add(restPatience); !rests(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			p.t.Fatalf("%s: is %s in %s (%s; %v) after %v, want %s in %s after %v", m.id, s.Status, s.State, s.Reason, err, s.Data.Votes, m.status, m.state, m.votes)
		}
	}
	if s.Cause != m.cause {
		p.t.Fatalf("%s: is there because %q, want %q", m.id, s.Cause, m.cause)
	}
	if !slices.Equal(s.Data.Votes, m.votes) {
		p.t.Fatalf("%s: took up %v, want %v", m.id, s.Data.Votes, m.votes)
	}
	p.sameResults(m, s.Data.Receipts)
	if d := m.differs(p.effects(m)); d != "" {
		p.t.Fatalf("%s: %s", m.id, d)
	}
	return s
}

// itemPrefix is what trip.item puts before the result of an item.
var itemPrefix = regexp.MustCompile(`^\d+:\d+:`)

// sameResults compares the results in the data with the keys that they come
// from.
func (p *property) sameResults(m *vaultModel, receipts []string) {
	p.t.Helper()
	var keys []string
	for _, r := range receipts {
		key, _, _ := strings.Cut(r, "#")
		keys = append(keys, itemPrefix.ReplaceAllString(key, ""))
	}
	if !slices.Equal(keys, m.got) {
		p.t.Fatalf("%s: has the results %v, want %v", m.id, keys, m.got)
	}
}

// effects are the keys of a vault, and of its children, that have had an effect.
func (p *property) effects(m *vaultModel) map[string]bool {
	workflows := []string{m.id}
	for g := range m.groups["child-loan"] {
		workflows = append(workflows, m.key("child-loan", 0, g+1))
	}
	had := map[string]bool{}
	for _, r := range p.w.ledger.of(workflows...) {
		if r.serial > 0 {
			had[r.key] = true
		}
	}
	return had
}

// money compares what all transfers come to.
func (p *property) money() {
	p.t.Helper()
	moved := 0
	for _, m := range p.everything {
		moved += m.moved
	}
	a, b := p.w.balances()
	if a != 1000000000-moved || b != 1000000000+moved {
		p.t.Fatalf("the accounts hold %d and %d, want %d moved", a, b, moved)
	}
}

// pick draws one of the round's vaults, of late ones more often; nil if there is
// none.
func (p *property) pick() *vaultModel {
	if len(p.vaults) == 0 {
		return nil
	}
	recent := p.vaults[max(0, len(p.vaults)-8):]
	return rapid.SampledFrom(recent).Draw(p.t, "vault")
}

func (p *property) add(id string, data trip) *vaultModel {
	m := newVaultModel(id, data)
	p.vaults = append(p.vaults, m)
	p.everything = append(p.everything, m)
	return m
}

func (p *property) newID() string {
	return fmt.Sprintf("v%d.%d/%s", p.rounds, len(p.vaults)+1, rapid.SampledFrom([]string{"a", "a b", "ä/1", "x\"y'z"}).Draw(p.t, "id"))
}

func (p *property) newMessage() string { p.messages++; return fmt.Sprintf("m%d", p.messages) }

func (p *property) start() string {
	id := p.newID()
	data := trip{ID: id, Amount: rapid.IntRange(1, 99).Draw(p.t, "amount")}
	s, err := p.handle.Start(p.w.ctx(), id, data)
	p.must(err, nil, "start %s", id)
	if !s.Created {
		p.t.Fatalf("%s was there before", id)
	}
	if len(p.vaults)%16 == 0 {
		p.w.remember("vault", id, data)
	}
	p.agree(p.add(id, data))
	return ""
}

func (p *property) startAgain() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	switch rapid.IntRange(0, 2).Draw(p.t, "how") {
	case 0:
		s, err := p.handle.Start(p.w.ctx(), m.id, m.first)
		p.must(err, nil, "start %s again", m.id)
		if s.Created || m.ended() && s.Status != m.status {
			p.t.Fatalf("a second start of %s: %+v", m.id, s)
		}
		p.agree(m)
		return "the same"
	case 1:
		other := m.first
		other.Amount++
		_, err := p.handle.Start(p.w.ctx(), m.id, other)
		p.must(err, engine.ErrConflict, "start %s with another input", m.id)
		p.agree(m)
		return "with another input"
	default:
		_, err := p.other.Start(p.w.ctx(), m.id, m.first)
		p.must(err, engine.ErrConflict, "start %s as another definition", m.id)
		p.agree(m)
		return "as another definition"
	}
}

// startRace has several callers start one id at the same moment.
func (p *property) startRace() string {
	id := p.newID()
	data := trip{ID: id, Amount: 7}
	const callers = 4
	var created [callers]bool
	var errs [callers]error
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			s, err := p.handle.Start(p.w.ctx(), id, data)
			created[i], errs[i] = s.Created, err
		})
	}
	all.Wait()
	n := 0
	for i := range callers {
		p.must(errs[i], nil, "start %s in a race", id)
		if created[i] {
			n++
		}
	}
	if n != 1 {
		p.t.Fatalf("%s was created %d times", id, n)
	}
	p.agree(p.add(id, data))
	return ""
}

func (p *property) startBadly() string {
	id := p.newID()
	var err error
	var want error
	switch rapid.IntRange(0, 4).Draw(p.t, "how") {
	case 0:
		want = engine.ErrBadID
		_, err = p.handle.Start(p.w.ctx(), "bad\x00"+id, trip{})
	case 1:
		want = engine.ErrBadInput
		_, err = p.n.StartJSON(p.w.ctx(), "vault", id, []byte(`{"Amount": "seven"}`))
	case 2:
		want = engine.ErrBadInput
		_, err = p.n.StartJSON(p.w.ctx(), "vault", id, []byte(`{"Amount": 7`))
	case 3:
		want = engine.ErrUnknownDefinition
		_, err = p.n.StartJSON(p.w.ctx(), "volt", id, []byte(`{}`))
	case 4:
		want = engine.ErrTooLarge
		_, err = p.handle.Start(p.w.ctx(), id, trip{ID: strings.Repeat("x", 2<<20)})
	}
	p.must(err, want, "start %s badly", id)
	_, err = p.n.Get(p.w.ctx(), id)
	p.must(err, store.ErrNotFound, "get %s, which was refused", id)
	p.must(p.n.Cancel(p.w.ctx(), id, "it is not there"), store.ErrNotFound, "cancel %s, which was refused", id)
	return ""
}

// meets draws what the calls of an order will meet.
func (p *property) meets(m *vaultModel, order string) string {
	at, ok := map[string]string{"pay": "pay", "move": "wrote", "split": "left", "deal": "deal", "lend": "lend", "seal": "seal"}[order]
	if !ok || order == "move" && m.first.ID != m.id || m.status != store.Waiting || m.state != "ready" {
		return ""
	}
	where := m.id + "/" + at
	if order == "lend" {
		where = m.key("child-loan", 0, m.groups["child-loan"]+1) + "/lend"
	}
	fails := []act{failsBefore, failsAfter, replyLost}
	bad := func() act { return rapid.SampledFrom(fails).Draw(p.t, "failure") }
	var acts []act
	how := rapid.SampledFrom([]string{"", "", "", "", "fails once", "fails once", "fails twice", "is refused"}).Draw(p.t, "meets")
	switch how {
	case "fails once":
		acts = []act{bad()}
		if order == "deal" { // which of its items meets it is open, and so is the model's answer
			acts, how = nil, ""
		}
	case "fails twice":
		acts = []act{bad(), bad()}
		if order == "deal" {
			acts = []act{failsBefore, failsBefore, failsBefore, failsBefore, failsBefore, failsBefore}
		}
	case "is refused":
		acts = []act{refused}
	}
	if len(acts) > 0 {
		p.w.ledger.meets(where, acts)
		m.script[at] = acts
	}
	return how
}

func (p *property) drawOrder() string {
	return rapid.SampledFrom([]string{"pay", "pay", "pay", "move", "move", "split", "deal", "lend", "seal", "nonsense"}).Draw(p.t, "order")
}

// send sends an order, and says in the model what becomes of it.
func (p *property) send(m *vaultModel, message, order string) {
	p.t.Helper()
	err := engine.Signal(p.w.ctx(), p.n.Engine, m.id, ballot, order, engine.MessageID(message))
	if m.ended() {
		p.must(err, engine.ErrEnded, "order %s of %s, which has ended", order, m.id)
		return
	}
	p.must(err, nil, "order %s of %s", order, m.id)
	m.send(message, order)
}

func (p *property) order() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	order := p.drawOrder()
	how := p.meets(m, order)
	p.send(m, p.newMessage(), order)
	p.agree(m)
	if how == "" {
		return order
	}
	return order + ", which " + how
}

// orders sends orders to several vaults at the same moment.
func (p *property) orders() string {
	open := p.open()
	errs := make([]error, len(open))
	var all sync.WaitGroup
	for i, m := range open {
		order, message := p.drawOrder(), p.newMessage()
		p.meets(m, order)
		m.send(message, order)
		all.Go(func() {
			errs[i] = engine.Signal(p.w.ctx(), p.n.Engine, m.id, ballot, order, engine.MessageID(message))
		})
	}
	all.Wait()
	p.must(errors.Join(errs...), nil, "orders at once")
	for _, m := range open {
		p.agree(m)
	}
	return ""
}

// orderTwice sends a message, and then another one of that id.
func (p *property) orderTwice() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	message := p.newMessage()
	p.send(m, message, "pay")
	p.agree(m)
	p.send(m, message, "move")
	p.agree(m)
	return ""
}

func (p *property) orderBadly() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	var err, want error
	switch rapid.IntRange(0, 3).Draw(p.t, "how") {
	case 0:
		want = engine.ErrUnknownSignal
		err = p.n.SignalJSON(p.w.ctx(), m.id, "bullet", []byte(`"pay"`))
	case 1:
		want = engine.ErrBadInput
		err = p.n.SignalJSON(p.w.ctx(), m.id, "ballot", []byte(`17`))
	case 2:
		want = engine.ErrBadInput
		err = p.n.SignalJSON(p.w.ctx(), m.id, "ballot", []byte(`"pay`))
	case 3:
		want = engine.ErrBadID
		err = engine.Signal(p.w.ctx(), p.n.Engine, m.id, ballot, "pay", engine.MessageID(" m"))
	}
	p.must(err, want, "order badly of %s", m.id)
	p.agree(m)
	return ""
}

func (p *property) closeVault() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	err := engine.Signal(p.w.ctx(), p.n.Engine, m.id, closing, 1)
	if m.ended() {
		p.must(err, engine.ErrEnded, "close %s, which has ended", m.id)
		return "an ended one"
	}
	p.must(err, nil, "close %s", m.id)
	m.sendClosing()
	p.agree(m)
	return ""
}

func (p *property) cancel() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	if m.status == store.Waiting && rapid.IntRange(0, 2).Draw(p.t, "undo fails") == 0 {
		p.w.ledger.meets(m.id+"/unpay", []act{failsAfter})
		m.script["unpay"] = []act{failsAfter}
	}
	err := p.n.Cancel(p.w.ctx(), m.id, "drawn")
	want := map[string]error{"": nil, "ended": engine.ErrEnded, "past pivot": engine.ErrPastPivot}
	how := m.cancel()
	p.must(err, want[how], "cancel %s", m.id)
	p.agree(m)
	return how
}

// operate gives an order, dry at first and twice at last.
func (p *property) operate() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	if held := p.held(); len(held) > 0 && rapid.Bool().Draw(p.t, "held") {
		m = rapid.SampledFrom(held).Draw(p.t, "vault")
	}
	verbs := []engine.Verb{engine.Pause, engine.Resume, engine.Pause, engine.Resume, engine.Retry, engine.NewIntent, engine.Skip, engine.Force}
	if rapid.IntRange(0, 7).Draw(p.t, "finally") == 0 {
		verbs = []engine.Verb{engine.Terminate}
	}
	if m.status == store.Held && !m.paused { // what can be of use
		verbs = []engine.Verb{engine.Retry, engine.Skip, engine.Force, engine.NewIntent}
	}
	v := rapid.SampledFrom(verbs).Draw(p.t, "verb")
	if m.ended() && v == engine.NewIntent {
		return "nothing" // it would be another model's
	}
	o := engine.Order{Verb: v, Actor: "ann", RequestID: p.newMessage()}
	dry := o
	dry.DryRun = true
	would, dryErr := p.n.Operate(p.w.ctx(), m.id, dry)
	p.agree(m) // it has changed nothing
	known := len(m.byHand)
	done, err := p.n.Operate(p.w.ctx(), m.id, o)
	if !m.operate(v) {
		p.must(dryErr, engine.ErrRefused, "%s %s dry", v, m.id)
		p.must(err, engine.ErrRefused, "%s %s", v, m.id)
		p.agree(m)
		return string(v) + ", refused"
	}
	p.must(dryErr, nil, "%s %s dry", v, m.id)
	p.must(err, nil, "%s %s", v, m.id)
	if would != done && !strings.HasPrefix(would.After, "to be decided") { // a worker was at work on it
		p.t.Fatalf("%s %s: %+v, and was to be %+v", v, m.id, done, would)
	}
	for _, key := range m.byHand[known:] {
		p.w.ledger.byHand(key)
		m.effects[key] = true
	}
	p.agree(m)
	if again, err := p.n.Operate(p.w.ctx(), m.id, o); err != nil || !again.Repeated || again.After != done.After {
		p.t.Fatalf("%s %s repeated: %+v, %v", v, m.id, again, err)
	}
	return string(v)
}

// read compares the records with the effects.
func (p *property) read() string {
	m := p.pick()
	if m == nil {
		return "nothing"
	}
	p.agree(m)
	steps, err := p.n.Steps(p.w.ctx(), m.id)
	p.must(err, nil, "steps of %s", m.id)
	for _, s := range steps {
		called := !strings.HasPrefix(s.Step, "move") && !strings.HasPrefix(s.Step, "child-")
		if called && s.Status == store.StepDone && !p.effects(m)[s.Key.String()] {
			p.t.Fatalf("%s: %s is recorded as done, and is not", m.id, s.Key)
		}
	}
	why, err := p.n.Why(p.w.ctx(), m.id)
	p.must(err, nil, "why %s", m.id)
	if why == "" {
		p.t.Fatalf("nobody says why %s does not move", m.id)
	}
	return ""
}

// list compares the vaults of a round with what a listing says of them.
func (p *property) list() string {
	prefix := fmt.Sprintf("v%d.", p.rounds)
	seen := map[string]store.Status{}
	for after := prefix; ; {
		page, err := p.n.List(p.w.ctx(), store.Query{After: after, Limit: 100})
		p.must(err, nil, "list")
		for _, i := range page {
			if strings.HasPrefix(i.ID, prefix) {
				seen[i.ID] = i.Status
			}
			after = i.ID
		}
		if len(page) < 100 || !strings.HasPrefix(after, prefix) {
			break
		}
	}
	for _, m := range p.vaults {
		if strings.HasPrefix(m.id, prefix) && seen[m.id] != m.status {
			p.t.Fatalf("%s is listed as %s, want %s", m.id, seen[m.id], m.status)
		}
	}
	return ""
}

func (p *property) wait() string {
	m := p.pick()
	if m == nil || !m.ended() {
		return "nothing"
	}
	s, err := p.handle.Wait(p.w.ctx(), m.id)
	p.must(err, nil, "wait for %s", m.id)
	if s.Status != m.status {
		p.t.Fatalf("%s has ended %s, want %s", m.id, s.Status, m.status)
	}
	return ""
}

// schedule does something to one of three schedules, none of which fires by
// itself.
func (p *property) schedule() string {
	ctx := p.w.ctx()
	name := fmt.Sprintf("s%d.%d", p.rounds, rapid.IntRange(1, 3).Draw(p.t, "schedule"))
	spec := engine.ScheduleSpec{Every: 366 * 24 * time.Hour, Overlap: engine.OverlapAllow}
	data := trip{ID: name, Amount: 5}
	s := p.schedules[name]
	do := rapid.SampledFrom([]string{"create", "create", "trigger", "trigger", "pause", "resume", "delete"}).Draw(p.t, "do")
	want := error(nil)
	if s == nil {
		want = engine.ErrScheduleNotFound
	}
	switch do {
	case "create":
		created, err := p.handle.Schedule(ctx, name, spec, data)
		p.must(err, nil, "create schedule %s", name)
		if created != (s == nil) {
			p.t.Fatalf("schedule %s: created is %v", name, created)
		}
		if s == nil {
			p.schedules[name] = &scheduleModel{name: name, data: data}
		}
	case "trigger":
		id, err := p.n.TriggerSchedule(ctx, name)
		p.must(err, want, "trigger schedule %s", name)
		if s != nil {
			p.agree(p.add(id, data))
		}
	case "pause":
		p.must(p.n.PauseSchedule(ctx, name, "drawn"), want, "pause schedule %s", name)
		if s != nil {
			s.paused = true
		}
	case "resume":
		p.must(p.n.ResumeSchedule(ctx, name), want, "resume schedule %s", name)
		if s != nil {
			s.paused = false
		}
	case "delete":
		p.must(p.n.DeleteSchedule(ctx, name), want, "delete schedule %s", name)
		delete(p.schedules, name)
	}
	if s := p.schedules[name]; s != nil {
		have, err := p.n.GetSchedule(ctx, name)
		p.must(err, nil, "get schedule %s", name)
		if have.Paused != s.paused {
			p.t.Fatalf("schedule %s: paused is %v", name, have.Paused)
		}
	}
	if want != nil && do != "create" {
		return do + " one that is not there"
	}
	return do
}

// restart drains the worker and begins anew, while orders are under way.
func (p *property) restart() string {
	open := p.open()
	var all sync.WaitGroup
	all.Go(p.n.stop)
	for _, m := range open {
		p.send(m, p.newMessage(), p.drawOrder())
	}
	all.Wait()
	p.n.run()
	for _, m := range open {
		p.agree(m)
	}
	return ""
}

// held are the vaults that need a person.
func (p *property) held() (held []*vaultModel) {
	for _, m := range p.vaults {
		if m.status == store.Held && len(held) < 8 {
			held = append(held, m)
		}
	}
	return held
}

// open are those of the latest vaults that have not ended.
func (p *property) open() (open []*vaultModel) {
	for _, m := range p.vaults[max(0, len(p.vaults)-8):] {
		if !m.ended() {
			open = append(open, m)
		}
	}
	return open
}

// secondWorker has another worker come, or go.
func (p *property) secondWorker() string {
	if p.second.ended != nil {
		p.second.stop()
		return "leaves"
	}
	p.second.run()
	return "joins"
}
