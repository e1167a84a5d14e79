package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// SCENARIO 16, with a probe: the worker dies after the call has had its effect. The
// probe says so, the call is not repeated, and its result is used.
func TestAProbeSparesASecondCall(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("probed")
		w.ledger.next("killed", "charge", tells("exit"))
		w.ledger.next("lost", "charge", replyLost)
		w.ledger.next("missed", "charge", failsBefore)
		w.ledger.next("never", "charge", failsBefore, failsBefore)
		c := w.client()
		c.start("probed", "killed", trip{Amount: 7})
		p := w.process(job{})
		p.code()
		w.leaseOver(p.log.worker(w))
		n := w.worker()
		for _, id := range []string{"lost", "missed", "never"} {
			n.start("probed", id, trip{Amount: 7})
		}
		final := n.ends("killed", store.Completed)
		require.Equal(w, 1, w.ledger.calls("killed", "charge"))
		require.Contains(w, final.Data.Receipts[1], "killed/charge/1#", "the result that the probe has brought")
		n.ends("lost", store.Completed)
		require.Equal(w, 1, w.ledger.calls("lost", "charge"))
		require.Positive(w, w.ledger.visited("lost", "look"))

		n.ends("missed", store.Completed)
		require.Equal(w, 2, w.ledger.calls("missed", "charge"), "it had no effect, and is called again")
		final = n.ends("never", store.Compensated)
		require.Equal(w, statemachine.Exhausted, final.Cause)
		require.Zero(w, w.ledger.calls("never", "refund"), "what has certainly had no effect needs no undo")
		require.Equal(w, 1, w.ledger.calls("never", "unreserve"))
	})
}

// A probe that cannot tell is asked again, and in the end a person is.
func TestAProbeThatCannotTell(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("probed")
		w.ledger.next("later", "charge", replyLost)
		w.ledger.next("later", "look", failsBefore)
		w.ledger.next("never", "charge", replyLost)
		w.ledger.next("never", "look", failsBefore, tells("panic"))
		n := w.worker()
		n.start("probed", "later", trip{Amount: 7})
		n.start("probed", "never", trip{Amount: 7})
		n.ends("later", store.Completed)
		require.Contains(w, n.held("never").Reason, "outcome of charge unknown, needs a person: asked 2 times, the probe cannot tell")
		require.Equal(w, 1, w.ledger.calls("never", "charge"))
		n.operate("never", engine.Retry) // asks once more
		n.ends("never", store.Completed)
		require.Equal(w, 1, w.ledger.calls("never", "charge"))
	})
}

// SCENARIO 16, with Hold: one call, HELD, and a person resolves it either way.
func TestHoldLeavesItToAPerson(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("unsure")
		for _, id := range []string{"applied", "not", "cancelled"} {
			w.ledger.next(id, "charge", tells("exit"))
		}
		w.ledger.next("not", "charge")
		c := w.client()
		for _, id := range []string{"applied", "not", "cancelled"} {
			c.start("unsure", id, trip{Amount: 7})
			p := w.process(job{})
			p.code()
			w.leaseOver(p.log.worker(w))
		}
		n := w.worker()
		for _, id := range []string{"applied", "not", "cancelled"} {
			require.Equal(w, "outcome of charge unknown, needs a person", n.held(id).Reason)
			require.Equal(w, 1, w.ledger.calls(id, "charge"))
		}
		n.refused("applied", engine.Retry, "resolve it")
		n.certainlyOver("applied")
		n.certainlyOver("not")
		n.operate("applied", engine.Applied, result(`"looked up"`))
		final := n.ends("applied", store.Completed)
		require.Equal(w, "looked up", final.Data.Receipts[1])
		n.operate("not", engine.NotApplied)
		n.ends("not", store.Completed)
		require.Equal(w, 2, w.ledger.calls("not", "charge"), "as the person has said")
		require.NoError(w, n.Cancel(w.ctx(), "cancelled", "enough"))
		n.ends("cancelled", store.Compensated)
		require.False(w, w.ledger.known("cancelled", "refund"), "its undo is told that nobody knows")
	})
}

// SCENARIO 12: twenty bodies that do not listen to their contexts. Each is timed
// out in its time, the queue goes on, and what they return late is not looked at.
func TestBodiesThatDoNotListen(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("deaf")
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.Concurrency = 10 }})
		const count = 20
		gates := make([]*gate, 0, 2*count)
		for i := range count {
			id := fmt.Sprintf("w%02d", i)
			for range 2 { // as often as the policy allows
				gates = append(gates, w.ledger.holds(id, "do-1"))
			}
		}
		began := time.Now()
		for i := range count {
			n.start("deaf", fmt.Sprintf("w%02d", i), trip{Amount: 1})
		}
		for i := range count {
			final := n.ends(fmt.Sprintf("w%02d", i), store.Compensated)
			require.Contains(w, final.Reason, "attempt timed out after 1s")
		}
		// Two timeouts of a second for each, ten at a time.
		require.Less(w, time.Since(began), 4*time.Second+10*slack)
		for _, g := range gates {
			g.release()
		}
		n.start("deaf", "after", trip{Amount: 1})
		n.ends("after", store.Completed)
		for i := range count {
			require.Equal(w, []string{"do-1:UNKNOWN:2", "undo-1:DONE:1"}, n.recorded(fmt.Sprintf("w%02d", i)), "whatever came late")
		}
	})
}

// SCENARIO 6: a row is deleted behind the engine's back while it runs. Who waits
// for it is told, and the worker goes on.
func TestARowThatVanishes(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.worker()
		gate := w.ledger.holds("w", "do-2")
		n.start("saga", "w", trip{Amount: 1})
		waited := make(chan error, 1)
		go func() {
			_, err := n.Wait(w.ctx(), "w")
			waited <- err
		}()
		gate.arrived(w)
		for _, table := range []string{"workflow", "step", "inbox"} {
			column := map[string]string{"workflow": "id"}[table]
			if column == "" {
				column = "workflow_id"
			}
			if w.isPostgres() {
				table = "pawl." + table
			}
			w.exec(`DELETE FROM `+table+` WHERE `+column+` = $1`, "w")
		}
		require.ErrorIs(w, <-waited, store.ErrNotFound)
		gate.release()
		_, err := n.Get(w.ctx(), "w")
		require.ErrorIs(w, err, store.ErrNotFound)
		require.ErrorIs(w, n.Cancel(w.ctx(), "w", ""), store.ErrNotFound)
		_, err = n.Operate(w.ctx(), "w", engine.Order{Verb: engine.Terminate})
		require.ErrorIs(w, err, store.ErrNotFound)
		n.start("saga", "next", trip{Amount: 1})
		n.ends("next", store.Completed)
		w.forget("w")
		w.ledger.forget("w")
	})
}

// SCENARIO 35: a workflow whose definition no living worker knows is left as it is,
// and reported; once one is back it completes.
func TestNobodyKnowsIt(t *testing.T) {
	eachStore(t, func(w *world) {
		w.lease = 1200 * time.Millisecond
		one := w.worker(nodeOptions{only: []string{"saga"}})
		two := w.process(job{Only: []string{"single"}}).joined()
		gate := w.ledger.holds("b", "work")
		w.client().start("single", "b", trip{Amount: 1})
		gate.arrived(w)
		two.kill()
		why := ""
		until := time.Now().Add(3 * w.lease)
		w.eventually("three leases pass", func() bool {
			var err error
			why, err = one.Why(w.ctx(), "b")
			require.NoError(w, err)
			return time.Now().After(until) && strings.Contains(why, "knows")
		})
		require.Contains(w, why, "no live worker knows single v1")
		left := one.get("b")
		require.Equal(w, store.Pending, left.Status)
		require.Equal(w, 1, w.ledger.calls("b", "work"), "nobody has touched it")
		one.start("saga", "a", trip{Amount: 1})
		one.ends("a", store.Completed)
		w.process(job{Only: []string{"single"}})
		gate.release()
		one.ends("b", store.Completed)
		require.GreaterOrEqual(w, w.ledger.calls("b", "work"), 2)
	})
}

// hostile are texts that must be kept as they are, or refused for good.
var hostile = map[string]string{
	"NUL":            "a\x00b",
	"lone surrogate": "a\xed\xa0\x80b",
	"0xFF":           "a\xffb",
	"quotes":         `"'\` + "`",
	"newlines":       "a\r\n\u2028b",
}

// odd says what a body returns or fails with.
type odd struct {
	How, Text string
	Got       any
}

// callList keeps the keys of calls that come at the same time.
type callList struct {
	mu   sync.Mutex
	keys []string
}

func (c *callList) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, key)
}

func (c *callList) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// oddities is one call whose result or error is as odd as its input asks for.
func oddities(calls *callList) statemachine.Definition[odd] {
	act := step.Call("own-act", func(_ context.Context, key step.Key, in odd) (any, error) {
		calls.add(key.String())
		switch in.How {
		case "error":
			return nil, step.Reject(errors.New(in.Text))
		case "result":
			return in.Text, nil
		case "unencodable":
			return func() {}, nil
		case "too large":
			return strings.Repeat("x", 16<<20+1), nil
		case "deep":
			return json.RawMessage(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), nil
		}
		return nil, fmt.Errorf("how: %q", in.How)
	}).With(quick).Undo(step.UndoCall("own-unact", func(context.Context, step.Key, step.Done[odd, any]) error { return nil }))
	return statemachine.Definition[odd]{
		Name: "odd", Version: 1, Start: "acting", Ends: ends, OnFailure: "undone",
		States: statemachine.States[odd]{
			"acting": statemachine.Do(act, func(o odd) odd { return o }, func(o *odd, got any) { o.Got = got }).Then("good"),
		},
	}
}

// SCENARIO 50: odd payloads in input, result and error text are refused at the
// start, kept without loss, or fail the step for good. There is one call, and no
// endless repetition.
func TestOddPayloads(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.client()
		var calls callList
		flow, err := engine.Register(n.Engine, oddities(&calls))
		require.NoError(w, err)
		n.run()

		for name, text := range hostile {
			for _, how := range []string{"error", "result"} {
				id := how + " " + name
				_, err := flow.Start(w.ctx(), id, odd{How: how, Text: text})
				require.NoError(w, err, "JSON keeps what it can, and says so by U+FFFD")
				final, err := flow.Wait(w.ctx(), id)
				require.NoError(w, err)
				switch how {
				case "result":
					require.Equal(w, store.Completed, final.Status, id)
					require.Equal(w, strings.ToValidUTF8(text, "\ufffd"), strings.ReplaceAll(final.Data.Got.(string), "\ufffd\ufffd\ufffd", "\ufffd"), id)
				case "error":
					require.Equal(w, store.Compensated, final.Status, id)
					require.Contains(w, final.Reason, "step own-act was refused: ", id)
				}
			}
		}
		for _, how := range []string{"unencodable", "too large", "deep"} {
			_, err := flow.Start(w.ctx(), how, odd{How: how})
			require.NoError(w, err)
			w.eventually(how+" comes to rest", func() bool {
				info, err := n.Get(w.ctx(), how)
				require.NoError(w, err)
				return info.Status.Ended() || info.Status == store.Held
			})
			info, err := n.Get(w.ctx(), how)
			require.NoError(w, err)
			w.Logf("%s: %s: %.120s", how, info.Status, info.Reason)
			require.NotEqual(w, store.Completed, info.Status, how)
		}
		once := map[string]int{}
		for _, key := range calls.all() {
			once[key]++
		}
		require.Len(w, once, 2*len(hostile)+3)
		for key, times := range once {
			require.Equal(w, 1, times, key)
		}

		before := len(w.workflows())
		for name, data := range map[string]string{
			"1e400": `{"Got":1e400}`, "deep": `{"Got":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
			"not UTF-8": "{\"Text\":\"\xff\"}", "NUL": "{\"Text\":\"\x00\"}", "lone surrogate": "{\"Text\":\"\xed\xa0\x80\"}",
			"16 MiB and 1": `{"Text":"` + strings.Repeat("x", 16<<20) + `"}`,
		} {
			_, err := n.StartJSON(w.ctx(), "odd", "in "+name, []byte(data))
			if err == nil {
				continue // kept: what is in the data is what Go's decoder made of it
			}
			require.True(w, errors.Is(err, engine.ErrBadInput) || errors.Is(err, engine.ErrTooLarge), "%s: %v", name, err)
			before--
		}
		require.Len(w, w.workflows(), before+6)
		for _, info := range w.workflows() {
			if strings.HasPrefix(info.ID, "in ") {
				_, err := n.Operate(w.ctx(), info.ID, engine.Order{Verb: engine.Terminate})
				if err != nil {
					require.ErrorIs(w, err, engine.ErrRefused)
				}
			}
		}
	})
}
