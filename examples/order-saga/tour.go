package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// tourTimeout bounds the tour as a whole. It takes about five seconds.
const tourTimeout = time.Minute

// tour shows three orders to a newcomer: one that completes, one that is undone
// and one whose worker is killed.
type tour struct {
	scope  scope
	client *client
	fleet  *fleet
	print  *printer
	stalls chan stalled
}

func runTour(ctx context.Context, st stage, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, tourTimeout)
	defer cancel()
	t := &tour{scope: newScope(), stalls: make(chan stalled, 1)}
	t.print = newPrinter(stdout, len(t.order(1).ID))
	var err error
	t.client, err = newClient(ctx, st.databaseURL, map[string]int{t.order(1).SKU: 10})
	if err != nil {
		return err
	}
	defer t.client.close()
	t.fleet = &fleet{scope: t.scope, db: t.client.db, stage: st, stderr: stderr, hear: t.hear}
	defer t.fleet.stop()
	if err := t.run(ctx); err != nil {
		return err
	}
	t.fleet.stop()
	return t.audit(ctx, st)
}

// order is the nth order of the tour.
func (t *tour) order(n int) order.Order {
	return order.Order{ID: t.scope.name("order", n), SKU: t.scope.name("sku", "lamp"), Quantity: 1, Cents: 4990, Card: "4242", Address: "12 Harbour Road"}
}

// hear takes up what a worker says.
func (t *tour) hear(m message) {
	switch {
	case m.Step != nil && t.scope.has(m.Step.WorkflowID): // there may be orders of earlier runs to finish
		t.print.step(*m.Step)
	case m.Stalled != nil:
		select {
		case t.stalls <- *m.Stalled:
		default: // the first is what counts
		}
	}
}

func (t *tour) run(ctx context.Context) error {
	if err := t.fleet.startBank(ctx, func(message) {}); err != nil {
		return err
	}
	first, err := t.fleet.startWorker(ctx, "--stall-after-charge", t.order(3).ID)
	if err != nil {
		return err
	}
	t.print.say("database  %s", describe(t.fleet.stage.databaseURL))
	t.print.say("bank      pid %d, its own file %s", t.fleet.bank.pid(), t.fleet.stage.bankFile)
	t.print.say("worker    pid %d; when it dies its orders are taken over within %v", first.pid(), lease+poll)

	if err := t.completes(ctx); err != nil {
		return err
	}
	if err := t.isUndone(ctx); err != nil {
		return err
	}
	return t.isTakenOver(ctx, first)
}

func (t *tour) completes(ctx context.Context) error {
	t.print.say("\n1. A dear order. A clerk must approve it; then its receipt and its invoice, a workflow of its own, go out at the same time.\n")
	t.print.head()
	o := t.order(1)
	o.Cents = 2 * order.NeedsApprovalAbove
	if _, err := t.client.place(ctx, o); err != nil {
		return err
	}
	if err := t.approve(ctx, o.ID); err != nil {
		return err
	}
	return t.wait(ctx, o.ID)
}

// approve is the clerk, who looks at an order once it waits for that.
func (t *tour) approve(ctx context.Context, id string) error {
	for {
		now, err := t.client.orders.Get(ctx, id)
		switch {
		case err != nil:
			return err
		case now.Status.Ended():
			return fmt.Errorf("%s ended %s without an approval", id, now.Status)
		case now.Awaits == order.Approval.Name:
			t.print.row(row{at: time.Now(), id: id, step: "(approval)", outcome: "signal", took: -1, why: "ada approves"})
			return engine.Signal(ctx, t.client.eng, id, order.Approval, order.Decision{Approved: true, By: "ada"})
		}
		if err := sleep(ctx, poll/4); err != nil {
			return err
		}
	}
}

func (t *tour) isUndone(ctx context.Context) error {
	t.print.say("\n2. An order to an address that no courier goes to. It is undone, newest step first.\n")
	t.print.head()
	o := t.order(2)
	o.Address = order.Nowhere
	return t.see(ctx, o)
}

func (t *tour) isTakenOver(ctx context.Context, first *child) error {
	t.print.say("\n3. An order whose worker is killed between the bank's answer and the commit.\n")
	t.print.head()
	o := t.order(3)
	if _, err := t.client.place(ctx, o); err != nil {
		return err
	}
	before, err := t.awaitStall(ctx, o.ID)
	if err != nil {
		return err
	}
	if err := t.fleet.kill(ctx, first); err != nil {
		return err
	}
	t.print.row(row{at: time.Now(), id: o.ID, step: "charge-card", outcome: "KILLED", took: -1, key: before.Key,
		why: fmt.Sprintf("kill -9 %d: charged, not recorded", first.pid())})
	second, err := t.fleet.startWorker(ctx)
	if err != nil {
		return err
	}
	t.print.say("%-12s  another worker, pid %d, starts", time.Now().Format("15:04:05.000"), second.pid())
	if err := t.wait(ctx, o.ID); err != nil {
		return err
	}
	return t.sayWhatTheBankSaw(ctx, before.Key)
}

// awaitStall waits until the worker holds still with the bank's answer in its
// hands.
func (t *tour) awaitStall(ctx context.Context, id string) (stalled, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := t.client.orders.Wait(ctx, id)
		ended <- err
	}()
	select {
	case s := <-t.stalls:
		return s, nil
	case err := <-ended:
		if err != nil {
			return stalled{}, err
		}
		return stalled{}, fmt.Errorf("%s was finished by another worker: stop the workers that run on this database", id)
	}
}

// see places an order and waits for its end.
func (t *tour) see(ctx context.Context, o order.Order) error {
	if _, err := t.client.place(ctx, o); err != nil {
		return err
	}
	return t.wait(ctx, o.ID)
}

// wait waits for an order's end, and until all its steps were printed.
func (t *tour) wait(ctx context.Context, id string) error {
	end, err := t.client.orders.Wait(ctx, id)
	if err != nil {
		return err
	}
	keys, err := t.client.keys(ctx, id)
	if err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	t.print.await(soon, keys)
	t.print.say("%-12s  %s  %s: %s", "", id, end.Status, meaning(end))
	return nil
}

// meaning says in a few words what an order's end means.
func meaning(end engine.Snapshot[order.Order]) string {
	if end.Status == store.Completed {
		return "paid " + money(end.Data.Cents) + ", invoice " + end.Data.Invoice + ", tracking number " + end.Data.Label.Tracking
	}
	return "nothing taken, nothing paid"
}

// sayWhatTheBankSaw asks the bank about the killed order's key.
func (t *tour) sayWhatTheBankSaw(ctx context.Context, text string) error {
	key, err := step.ParseKey(text)
	if err != nil {
		return err
	}
	f, err := find(ctx, t.fleet.bankAt, key)
	if err != nil {
		return err
	}
	t.print.say("%-12s  the bank saw the key %s %s, and charged it %s", "", key, times(f.Requests), times(f.Charges))
	return nil
}

// find asks the bank what it knows of a key.
func find(ctx context.Context, bankURL string, key step.Key) (f bank.Found, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, bankURL+"/find?key="+url.QueryEscape(key.Header()), nil)
	if err != nil {
		return f, fmt.Errorf("ask the bank: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return f, fmt.Errorf("ask the bank: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
		return f, fmt.Errorf("ask the bank: %s: %w", resp.Status, err)
	}
	return f, nil
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// audit prints what the databases hold of this tour.
func (t *tour) audit(ctx context.Context, st stage) error {
	a, err := takeAudit(ctx, t.client.db, st.bankFile, t.scope)
	if err != nil {
		return err
	}
	a.expect(a.kills == 1 && a.takeovers == 1 && a.caught == 1,
		"one worker was to be killed between a charge and its commit, and its order taken over")
	t.print.say("\nThe same to hundreds of orders at once: go run ./examples/order-saga chaos\n")
	return a.print(t.print.out)
}
