package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// deafStore hears and tells nothing.
type deafStore struct{ store.Store }

func (deafStore) Notify(context.Context, store.Topic) error { return nil }

func (deafStore) Listen(ctx context.Context, _ func(store.Topic)) error {
	<-ctx.Done()
	return nil
}

func (deafStore) Limits() store.Limits { return store.Limits{Committers: 1, Batch: 1} }

// idleShell is a shell whose loop does not run.
func idleShell(t *testing.T) *shell {
	e := &Engine{store: deafStore{}, cfg: Config{}.withDefaults(), log: slog.New(slog.DiscardHandler)}
	e.hints = newHints(e.store, e.log)
	s := newShell(e, nil)
	helpers := s.beginHelpers(context.Background())
	t.Cleanup(func() {
		close(s.done)
		s.stop()
		helpers.Wait()
	})
	return s
}

// The loop itself spreads hints, and hears them: with its queue of events full it
// must not wait for itself.
func TestHintsDoNotBlockTheLoop(t *testing.T) {
	t.Parallel()
	s := idleShell(t)
	for range cap(s.events) {
		s.events <- evTick{}
	}
	told := make(chan struct{})
	go func() {
		s.carryOut(cmdHint{store.TopicReady})
		s.carryOut(cmdHint{store.TopicReady})
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("the loop waits for itself")
	}
	require.Len(t, s.hinted, 1, "but it will look")
}

// A body can be interrupted from the moment that its job is begun, and the end of
// a job does not take that away from the next one of the same workflow.
func TestInterruptReachesTheJobAtHand(t *testing.T) {
	t.Parallel()
	b := bodies{running: map[string]*running{}}
	first, endFirst := b.begin(t.Context(), "w")
	second, endSecond := b.begin(t.Context(), "w")
	endFirst()
	b.interrupt("w", ErrLeaseLost)
	require.ErrorIs(t, context.Cause(second), ErrLeaseLost)
	require.NotErrorIs(t, context.Cause(first), ErrLeaseLost)
	endSecond()
	require.Empty(t, b.running)
}
