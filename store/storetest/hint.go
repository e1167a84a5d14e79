package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var hintTests = []test{
	{"IsHeard", hintHeard},
	{"EndsWithItsContext", hintEnds},
	{"EndsWithItsStore", hintEndsWithStore},
	{"WithoutListeners", hintAlone},
}

// hintHeard: every listener hears of every topic. Hints may be lost, so the
// test sends until they are heard.
func hintHeard(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	const listeners = 2
	heard := make(chan [2]int, 1000)
	for i := range listeners {
		all.Go(func() {
			e.st.Listen(ctx, func(t store.Topic) { //nolint:errcheck // it ends with its context
				select {
				case heard <- [2]int{i, int(t)}:
				default:
				}
			})
		})
	}
	got := map[[2]int]bool{}
	for len(got) < 2*listeners {
		require.NoError(e, e.st.Notify(e.ctx, store.TopicReady))
		require.NoError(e, e.st.Notify(e.ctx, store.TopicEnded))
		select {
		case h := <-heard:
			got[h] = true
		case <-time.After(20 * time.Millisecond):
			require.NoError(e, e.ctx.Err(), "only these hints were heard: %v", got)
		}
	}
	for h := range got {
		require.Contains(e, []store.Topic{store.TopicReady, store.TopicEnded}, store.Topic(h[1]))
	}
}

func hintEnds(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.st.Listen(ctx, func(store.Topic) {}) //nolint:errcheck // it ends with its context
	}()
	cancel()
	e.await(ended)
}

// hintEndsWithStore: a listener does not outlive its store, and says why.
func hintEndsWithStore(e *env) {
	st := e.open(e.T)
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = st.Listen(e.ctx, func(store.Topic) {})
	}()
	require.NoError(e, st.Close())
	e.await(ended)
	require.ErrorIs(e, err, store.ErrClosed)
}

func hintAlone(e *env) {
	require.NoError(e, e.st.Notify(e.ctx, store.TopicReady))
}
