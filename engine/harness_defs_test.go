package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// trip is the data of all definitions that the scenarios use.
type trip struct {
	ID       string        `json:",omitempty"` // where a body must know its workflow
	Amount   int           `json:",omitempty"`
	Receipts []string      `json:",omitempty"`
	Votes    []string      `json:",omitempty"`
	Quorum   int           `json:",omitempty"`
	Pause    time.Duration `json:",omitempty"`
}

func (t trip) self() trip           { return t }
func (t trip) amount() int          { return t.Amount }
func (t trip) pause() time.Duration { return t.Pause }
func (t trip) complete() bool       { return len(t.Votes) >= t.Quorum }
func (t *trip) got(receipt string)  { t.Receipts = append(t.Receipts, receipt) }
func (t *trip) voted(vote string)   { t.Votes = append(t.Votes, vote) }

var ballot = statemachine.Signal[string]{Name: "ballot"}

// Policies.
var (
	quick = step.Policy{Attempts: 3, Backoff: step.Constant(20 * time.Millisecond), Timeout: 20 * time.Second}
	brief = step.Policy{Attempts: 2, Backoff: step.Constant(10 * time.Millisecond), Timeout: time.Second}
	paced = step.Policy{Attempts: 3, Backoff: step.Constant(time.Second), Timeout: 20 * time.Second}
	rare  = step.Policy{Attempts: 3, Backoff: step.Constant(time.Hour), Timeout: 20 * time.Second}
)

// site is what the bodies can reach of the outside world.
type site struct {
	url    string
	client *http.Client
}

func newSite(url string) *site {
	return &site{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

func (s *site) close() { s.client.CloseIdleConnections() }

// ask sends a request to the ledger and does what it answers.
func (s *site) ask(ctx context.Context, path string, req request) (string, error) {
	enc, err := json.Marshal(req)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(enc))
	if err != nil {
		return "", err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusConflict:
		return "", step.Reject(errors.New("the ledger refuses"))
	default:
		return "", fmt.Errorf("the ledger says %d: %s", resp.StatusCode, bytes.TrimSpace(body))
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return "", err
	}
	return a.Receipt, s.obey(a.Do)
}

// obey does what the ledger told the body to do after its call.
func (s *site) obey(do string) error {
	switch do {
	case "":
	case "panic":
		panic("told to panic")
	case "goexit":
		runtime.Goexit()
	case "panic beside":
		go func() { panic("told to panic where nobody recovers") }()
		select {}
	case "exit":
		os.Exit(1)
	case "fail":
		return errors.New("told to fail")
	default:
		panic("told to do something unknown: " + do)
	}
	return nil
}

func (s *site) call(ctx context.Context, key step.Key, _ int) (string, error) {
	return s.ask(ctx, "/call", request{Key: key.String()})
}

// deaf calls without listening to its context.
func (s *site) deaf(_ context.Context, key step.Key, n int) (string, error) {
	return s.call(context.Background(), key, n)
}

func (s *site) undo(ctx context.Context, key step.Key, d step.Done[int, string]) error {
	_, err := s.ask(ctx, "/call", request{Key: key.String(), Known: d.Known})
	return err
}

// move takes an amount from one account to another, and looks in at the hook
// "wrote" before its transaction ends.
func (s *site) move(ctx context.Context, tx store.Tx, in trip) (string, error) {
	if err := transfer(ctx, tx, in.Amount, "a"); err != nil {
		return "", err
	}
	_, err := s.ask(ctx, "/visit", request{Workflow: in.ID, Step: "wrote"})
	return "moved", err
}

func (s *site) moveBack(ctx context.Context, tx store.Tx, d step.Done[trip, string]) error {
	return transfer(ctx, tx, d.In.Amount, "b")
}

// transfer takes an amount from one of the accounts a and b and gives it to the
// other.
func transfer(ctx context.Context, tx store.Tx, amount int, from string) error {
	for _, account := range []string{"a", "b"} { // always in this order, so that no two wait for each other
		change := amount
		if account == from {
			change = -amount
		}
		n, err := tx.Exec(ctx, `UPDATE account SET balance = balance + $1 WHERE id = $2`, change, account)
		if err != nil {
			return err
		}
		if n != 1 {
			return step.Reject(fmt.Errorf("no account %q", account))
		}
	}
	return nil
}

// Ends that several definitions share.
var ends = statemachine.Ends{"good": statemachine.Completed, "undone": statemachine.RolledBack}

// chain is a saga of n calls, do-1 to do-n, with undo-1 to undo-n.
func (s *site) chain(name string, n int, p step.Policy, body func(context.Context, step.Key, int) (string, error)) statemachine.Definition[trip] {
	d := statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "s1", States: statemachine.States[trip]{}, Ends: ends, OnFailure: "undone",
	}
	for i := 1; i <= n; i++ {
		next := statemachine.State(fmt.Sprintf("s%d", i+1))
		if i == n {
			next = "good"
		}
		undo := step.UndoCall(fmt.Sprintf("undo-%d", i), s.undo).With(p)
		do := step.Call(fmt.Sprintf("do-%d", i), body).With(p).Undo(undo)
		d.States[statemachine.State(fmt.Sprintf("s%d", i))] = statemachine.Do(do, trip.amount, (*trip).got).Then(next)
	}
	return d
}

// single is one call; a failure of it is an end of its own.
func (s *site) single() statemachine.Definition[trip] {
	work := step.Call("work", s.call).With(quick).NoUndo("there is nothing to give back")
	return statemachine.Definition[trip]{
		Name: "single", Version: 1, Start: "working",
		States:    statemachine.States[trip]{"working": statemachine.Do(work, trip.amount, (*trip).got).Then("good")},
		Ends:      statemachine.Ends{"good": statemachine.Completed, "bad": statemachine.Failed},
		OnFailure: "bad",
	}
}

// moving transfers money in a transaction and then tells somebody.
func (s *site) moving(name string, p step.Policy) statemachine.Definition[trip] {
	move := step.InTx("move", s.move).With(p).Undo(step.UndoInTx("move-back", s.moveBack).With(quick))
	notify := step.Call("notify", s.call).With(quick).NoUndo("it is only a notice")
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "moving", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"moving":    statemachine.Do(move, trip.self, (*trip).got).Then("notifying"),
			"notifying": statemachine.Do(notify, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// vote waits for ballots until there are enough of them, then counts them; a
// wait that is too long is answered by a reminder.
func (s *site) vote(name string, within time.Duration) statemachine.Definition[trip] {
	open := step.Call("open", s.call).With(quick).Undo(step.UndoCall("close", s.undo).With(quick))
	count := step.Call("count", s.call).With(quick).NoUndo("counting changes nothing")
	remind := step.Call("remind", s.call).With(quick).NoUndo("a reminder cannot be unsent")
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "opening", OnFailure: "undone",
		Ends: statemachine.Ends{"good": statemachine.Completed, "late": statemachine.Completed, "undone": statemachine.RolledBack},
		States: statemachine.States[trip]{
			"opening":   statemachine.Do(open, trip.amount, (*trip).got).Then("waiting"),
			"waiting":   statemachine.Await(ballot, (*trip).voted).Within(within, "reminding").Then("weighing"),
			"weighing":  statemachine.If(trip.complete, "counting", "waiting"),
			"counting":  statemachine.Do(count, trip.amount, (*trip).got).Then("good"),
			"reminding": statemachine.Do(remind, trip.amount, (*trip).got).Then("late"),
		},
	}
}

// nap sleeps and then wakes somebody.
func (s *site) nap() statemachine.Definition[trip] {
	wake := step.Call("wake", s.call).With(quick).NoUndo("nobody can be unwoken")
	return statemachine.Definition[trip]{
		Name: "nap", Version: 1, Start: "sleeping", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"sleeping": statemachine.Sleep(trip.pause).Then("waking"),
			"waking":   statemachine.Do(wake, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// parcel has a point of no return between two calls.
func (s *site) parcel() statemachine.Definition[trip] {
	pack := step.Call("pack", s.call).With(quick).Undo(step.UndoCall("unpack", s.undo).With(quick))
	send := step.Call("send", s.call).With(quick).Pivot()
	tell := step.Call("tell", s.call).With(quick).NoUndo("it is only a notice")
	return statemachine.Definition[trip]{
		Name: "parcel", Version: 1, Start: "packing", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"packing": statemachine.Do(pack, trip.amount, (*trip).got).Then("sending"),
			"sending": statemachine.Do(send, trip.amount, (*trip).got).Then("telling"),
			"telling": statemachine.Do(tell, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// look asks the ledger what became of a call.
func (s *site) look(ctx context.Context, key step.Key, _ int) (string, step.Applied, error) {
	id := strings.TrimSuffix(key.String(), step.NewKey("", key.Step(), key.Group()).String())
	receipt, err := s.ask(ctx, "/look", request{Key: key.String(), Workflow: id})
	switch {
	case err != nil:
		return "", step.StillUnknown, err
	case receipt == "":
		return "", step.NotApplied, nil
	}
	return receipt, step.Happened, nil
}

// doubtful reserves and then charges a provider that must not be called again
// without knowing better: it is asked, or a person is.
func (s *site) doubtful(name string, doubt func(step.Step[int, string]) step.Step[int, string]) statemachine.Definition[trip] {
	p := step.Policy{Attempts: 2, Backoff: step.Constant(10 * time.Millisecond), Timeout: 1500 * time.Millisecond}
	reserve := step.Call("reserve", s.call).With(quick).Undo(step.UndoCall("unreserve", s.undo).With(quick))
	charge := doubt(step.Call("charge", s.call).With(p).Undo(step.UndoCall("refund", s.undo).With(quick)))
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "reserving", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"reserving": statemachine.Do(reserve, trip.amount, (*trip).got).Then("charging"),
			"charging":  statemachine.Do(charge, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// hasty is a saga of four calls that must be done within a few seconds.
func (s *site) hasty() statemachine.Definition[trip] {
	d := s.chain("hasty", 4, quick, s.call)
	d.Deadline = hastyDeadline
	return d
}

// hastyDeadline leaves a busy machine room for what must be done before.
const hastyDeadline = 5 * time.Second

// hastyVote waits for a ballot, at first of all and for ever, but for a deadline.
func (s *site) hastyVote() statemachine.Definition[trip] {
	count := step.Call("count", s.call).With(quick).Pivot()
	return statemachine.Definition[trip]{
		Name: "hasty-vote", Version: 1, Start: "waiting", Ends: ends, OnFailure: "undone", Deadline: hastyDeadline,
		States: statemachine.States[trip]{
			"waiting":  statemachine.Await(ballot, (*trip).voted).Then("counting"),
			"counting": statemachine.Do(count, trip.amount, (*trip).got).Then("settling"),
			"settling": statemachine.Await(closing, func(*trip, int) {}).Then("good"),
		},
	}
}

// race opens, makes three calls of which the first counts, and counts.
func (s *site) race() statemachine.Definition[trip] {
	d := s.fan("race", 3, quick)
	d.States["fanning"] = statemachine.Any(s.tasks(3, quick)...).Then("counting")
	return d
}

// detour goes on by another way if its second call fails, and waits for the first
// of two signals.
func (s *site) detour() statemachine.Definition[trip] {
	d := s.chain("detour", 2, brief, s.call)
	other := step.Call("other", s.call).With(quick).Undo(step.UndoCall("unother", s.undo).With(quick))
	d.States["s2"] = d.States["s2"].Else("around")
	d.States["around"] = statemachine.Do(other, trip.amount, (*trip).got).Then("asking")
	d.States["asking"] = statemachine.AwaitAny(
		statemachine.On(ballot, (*trip).voted, "good"),
		statemachine.On(closing, func(*trip, int) {}, "undone"),
	).WithinFunc(trip.pause, "undone").Node()
	return d
}

// fan opens, makes n calls at the same time, do-1 to do-n, and counts. All but
// the counting can be undone.
func (s *site) fan(name string, n int, p step.Policy) statemachine.Definition[trip] {
	open := step.Call("open", s.call).With(quick).Undo(step.UndoCall("close", s.undo).With(quick))
	count := step.Call("count", s.call).With(quick).NoUndo("counting changes nothing")
	return statemachine.Definition[trip]{
		Name: name, Version: 1, Start: "opening", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"opening":  statemachine.Do(open, trip.amount, (*trip).got).Then("fanning"),
			"fanning":  statemachine.All(s.tasks(n, p)...).Then("counting"),
			"counting": statemachine.Do(count, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// tasks are the calls do-1 to do-n with undo-1 to undo-n.
func (s *site) tasks(n int, p step.Policy) (tasks []statemachine.Task[trip]) {
	for i := 1; i <= n; i++ {
		undo := step.UndoCall(fmt.Sprintf("undo-%d", i), s.undo).With(quick)
		do := step.Call(fmt.Sprintf("do-%d", i), s.call).With(p).Undo(undo)
		tasks = append(tasks, statemachine.Do(do, trip.amount, (*trip).got))
	}
	return tasks
}

// wide begins with a hundred tasks and does nothing else.
func (s *site) wide() statemachine.Definition[trip] {
	return statemachine.Definition[trip]{
		Name: "wide", Version: 1, Start: "fanning", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{"fanning": statemachine.All(s.tasks(100, quick)...).Then("good")},
	}
}

// mixed is money moved and a notice sent at the same time, and then a pivot.
func (s *site) mixed() statemachine.Definition[trip] {
	move := step.InTx("move", s.move).With(quick).Undo(step.UndoInTx("move-back", s.moveBack).With(quick))
	notify := step.Call("notify", s.call).With(quick).NoUndo("it is only a notice")
	send := step.Call("send", s.call).With(quick).Pivot()
	tell := step.Call("tell", s.call).With(quick).NoUndo("it is only a notice")
	return statemachine.Definition[trip]{
		Name: "mixed", Version: 1, Start: "moving", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"moving": statemachine.All(
				statemachine.Do(move, trip.self, (*trip).got),
				statemachine.Do(notify, trip.amount, nil),
			).Then("sending"),
			"sending": statemachine.Do(send, trip.amount, (*trip).got).Then("telling"),
			"telling": statemachine.All(
				statemachine.Do(tell, trip.amount, nil),
				statemachine.Do(tell.As("tell-more"), trip.amount, nil),
			).Then("good"),
		},
	}
}

func (t *trip) returned(child trip) { t.Receipts = append(t.Receipts, child.Receipts...) }
func (t trip) bare() trip           { return trip{Amount: t.Amount} }

// undoTrip undoes a child.
func (s *site) undoTrip(ctx context.Context, key step.Key, d step.Done[trip, trip]) error {
	_, err := s.ask(ctx, "/call", request{Key: key.String(), Known: d.Known})
	return err
}

// leaf, middle and top are three levels: each does something, and then has the
// next one do something. Beside its child, top does something else.
func (s *site) leaf() statemachine.Definition[trip] { return s.chain("leaf", 2, quick, s.call) }

func (s *site) middle() statemachine.Definition[trip] {
	d := s.chain("middle", 1, quick, s.call)
	leaf := statemachine.Child(s.leaf()).As("child-leaf").Undo(step.UndoCall("undo-leaf", s.undoTrip).With(quick))
	d.States["s1"] = statemachine.Do(s.first(), trip.amount, (*trip).got).Then("s2")
	d.States["s2"] = statemachine.Do(leaf, trip.bare, (*trip).returned).Then("good")
	return d
}

func (s *site) top() statemachine.Definition[trip] {
	d := s.middle()
	d.Name = "top"
	middle := statemachine.Child(s.middle()).As("child-middle").Undo(step.UndoCall("undo-middle", s.undoTrip).With(quick))
	side := step.Call("side", s.call).With(quick).Undo(step.UndoCall("undo-side", s.undo).With(quick))
	d.States["s2"] = statemachine.All(
		statemachine.Do(side, trip.amount, (*trip).got),
		statemachine.Do(middle, trip.bare, (*trip).returned),
	).Then("s3")
	count := step.Call("count", s.call).With(quick).NoUndo("counting changes nothing")
	d.States["s3"] = statemachine.Do(count, trip.amount, (*trip).got).Then("good")
	return d
}

// first is the call do-1 with undo-1.
func (s *site) first() step.Step[int, string] {
	return step.Call("do-1", s.call).With(quick).Undo(step.UndoCall("undo-1", s.undo).With(quick))
}

func (t trip) numbers() []int {
	numbers := make([]int, t.Amount)
	for i := range numbers {
		numbers[i] = i + 1
	}
	return numbers
}

func (t *trip) item(i, number int, receipt string) {
	t.Receipts = append(t.Receipts, fmt.Sprintf("%d:%d:%s", i, number, receipt))
}

// each opens and makes as many calls as the amount says, atMost at once.
func (s *site) each(name string, atMost, tolerate int) statemachine.Definition[trip] {
	d := s.fan(name, 1, quick)
	item := step.Call("item", s.call).With(quick).Undo(step.UndoCall("unitem", s.undo).With(quick))
	d.States["fanning"] = statemachine.Each(trip.numbers, item, (*trip).item).AtMost(atMost).Tolerate(tolerate).Then("counting")
	return d
}

// definitions are all that a worker of the scenarios knows.
func (s *site) definitions() []statemachine.Definition[trip] {
	return []statemachine.Definition[trip]{
		s.chain("saga", 4, quick, s.call),
		s.chain("brief", 2, brief, s.call),
		s.chain("deaf", 2, brief, s.deaf),
		s.chain("stone-deaf", 1, quick, s.deaf),
		s.chain("paced", 1, paced, s.call),
		s.chain("rare", 3, rare, s.call),
		s.single(),
		s.moving("moving", quick),
		s.moving("moving-once", step.Policy{Attempts: 1, Timeout: 20 * time.Second}),
		s.vote("vote", time.Hour),
		s.vote("vote-brief", 400*time.Millisecond),
		s.nap(),
		s.parcel(),
		s.sealed(),
		s.hasty(),
		s.hastyVote(),
		s.race(),
		s.detour(),
		s.doubtful("probed", func(c step.Step[int, string]) step.Step[int, string] { return c.Probe(s.look) }),
		s.doubtful("unsure", step.Step[int, string].Hold),
		s.fan("fan", 3, quick),
		s.wide(),
		s.mixed(),
		s.each("each", 8, 0),
		s.each("tolerant", 3, 2),
		s.top(), // and with it middle and leaf
		s.vault(),
		s.other(),
	}
}

// flows are the registered definitions of one engine, by name.
type flows map[string]*engine.Workflow[trip]

// register makes all definitions, or only the named ones, known to an engine.
func (s *site) register(e *engine.Engine, only ...string) (flows, error) {
	known := flows{}
	for _, d := range s.definitions() {
		if len(only) > 0 && !slices.Contains(only, d.Name) {
			continue
		}
		f, err := engine.Register(e, d)
		if err != nil {
			return nil, err
		}
		known[d.Name] = f
	}
	return known, nil
}
