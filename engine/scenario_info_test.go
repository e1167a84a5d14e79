package engine_test

import (
	"context"
	"errors"
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

// infos is what bodies were told of their attempts, in no order.
type infos struct {
	mu   sync.Mutex
	told []step.Info
}

func (i *infos) note(ctx context.Context) {
	info, ok := step.InfoFrom(ctx)
	if !ok {
		info.Step = "nothing was told"
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = append(i.told, info)
}

// informed has a body of each kind, items, and an undo; its last step is refused
// on the second attempt.
func informed(told *infos) statemachine.Definition[trip] {
	look := step.Func("own-look", func(ctx context.Context, _ int) (string, error) { told.note(ctx); return "", nil })
	write := step.InTx("own-write", func(ctx context.Context, _ store.Tx, _ int) (string, error) { told.note(ctx); return "", nil })
	item := step.Call("own-item", func(ctx context.Context, _ step.Key, _ int) (string, error) { told.note(ctx); return "", nil })
	unwrite := step.UndoInTx("own-unwrite", func(ctx context.Context, _ store.Tx, _ step.Done[int, string]) error { told.note(ctx); return nil })
	last := step.Call("own-last", func(ctx context.Context, _ step.Key, _ int) (string, error) {
		told.note(ctx)
		if info, _ := step.InfoFrom(ctx); info.Attempt < 2 {
			return "", errors.New("once more")
		}
		return "", step.Reject(errors.New("no"))
	})
	return statemachine.Definition[trip]{
		Name: "informed", Version: 1, Start: "looking", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"looking": statemachine.Do(look.With(quick), trip.amount, (*trip).got).Then("writing"),
			"writing": statemachine.Do(write.With(quick).Undo(unwrite.With(quick)), trip.amount, (*trip).got).Then("each"),
			"each":    statemachine.Each(trip.numbers, item.With(quick).NoUndo("it is a test"), (*trip).item).Then("last"),
			"last":    statemachine.Do(last.With(quick).NoUndo("it is a test"), trip.amount, (*trip).got).Then("good"),
		},
	}
}

// Every body finds in its context which attempt of which workflow it is, in a
// branch and in an undo too.
func TestABodyKnowsItsAttempt(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.client()
		var told infos
		flow, err := engine.Register(n.Engine, informed(&told))
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{Amount: 2})
		require.NoError(w, err)
		n.ends("w", store.Compensated)

		want := func(name string, item, attempt int) step.Info {
			return step.Info{WorkflowID: "w", Step: name, Group: 1, Attempt: attempt, Item: item, Key: step.NewItemKey("w", name, item, 1)}
		}
		told.mu.Lock()
		defer told.mu.Unlock()
		require.ElementsMatch(w, []step.Info{
			want("own-look", 0, 1), want("own-write", 0, 1), want("own-item", 1, 1), want("own-item", 2, 1),
			want("own-last", 0, 1), want("own-last", 0, 2), want("own-unwrite", 0, 1),
		}, told.told)
	})
}

// What a probe brings is held to the same bound as what a body returns: it cannot
// be recorded, so in the end a person must look, and the call is not repeated.
func TestAProbeThatBringsTooMuch(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("saga")
		n := w.client(nodeOptions{tune: func(c *engine.Config) { c.MaxPayload = 200 }})
		var mu sync.Mutex
		calls := 0
		charge := step.Call("charge", func(context.Context, step.Key, int) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return "", errors.New("the reply is lost")
		}).With(step.Policy{Attempts: 2, Backoff: step.Constant(10 * time.Millisecond), Timeout: 500 * time.Millisecond})
		charge = charge.NoUndo("it is a test").Probe(func(context.Context, step.Key, int) (string, step.Applied, error) {
			return strings.Repeat("x", 300), step.Happened, nil
		})
		flow, err := engine.Register(n.Engine, statemachine.Definition[trip]{
			Name: "lavish", Version: 1, Start: "charging", Ends: ends, OnFailure: "undone",
			States: statemachine.States[trip]{
				"charging": statemachine.Do(charge, trip.amount, func(*trip, string) {}).Then("good"),
			},
		})
		require.NoError(w, err)
		n.run()
		_, err = flow.Start(w.ctx(), "w", trip{Amount: 1})
		require.NoError(w, err)
		rests := n.becomes("w", "it has ended or is held", func(s engine.Snapshot[trip]) bool { return s.Status.Ended() || s.Status == store.Held })
		require.Equal(w, store.Held, rests.Status)
		require.Contains(w, rests.Reason, "payload too large: result of 302 bytes, at most 200")
		require.Empty(w, n.recorded("w"))
		mu.Lock()
		defer mu.Unlock()
		require.Equal(w, 1, calls)
	})
}
