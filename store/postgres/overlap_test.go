package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// TestOverlappingBatches shows that committers, starters and senders that work
// on the same keys in any order never deadlock, and that each transition is
// applied once.
func TestOverlappingBatches(t *testing.T) {
	t.Parallel()
	const workers, rounds, size = 8, 15, 40
	ctx := t.Context()
	s := openNew(t, WithPool(workers), WithBuckets(2))
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", size)
	for round := range rounds {
		var applied, created, accepted sync.Map
		var all sync.WaitGroup
		for k := range workers {
			all.Go(func() {
				turned := append(append([]store.Transition{}, ts[k*5:]...), ts[:k*5]...)
				verdicts, err := s.Commit(ctx, w, turned)
				if err != nil {
					t.Errorf("commit: %v", err)
					return
				}
				for i, v := range verdicts {
					if v == store.Applied {
						if _, twice := applied.LoadOrStore(turned[i].ID, true); twice {
							t.Errorf("%s applied twice", turned[i].ID)
						}
					}
				}
				startAndSend(ctx, t, s, round, k, turned, &created, &accepted)
			})
		}
		all.Wait()
		require.Equal(t, []int{size, size, size}, []int{count(&applied), count(&created), count(&accepted)})
		advance(ts)
	}
}

// startAndSend starts workflows and sends messages that all callers share.
func startAndSend(
	ctx context.Context, t *testing.T, s *Store, round, k int, ts []store.Transition, created, accepted *sync.Map,
) {
	news, messages := make([]store.New, len(ts)), make([]store.Message, len(ts))
	for i := range ts {
		news[i] = store.New{ID: fmt.Sprintf("new-%d-%s", round, ts[i].ID), Place: ts[i].Place}
		messages[i] = store.Message{WorkflowID: ts[i].ID, ID: fmt.Sprint(round), Kind: store.MessageSignal}
	}
	started, err := s.Start(ctx, news)
	if err != nil {
		t.Errorf("start: %v", err)
		return
	}
	sent, err := s.Send(ctx, messages)
	if err != nil {
		t.Errorf("send: %v", err)
		return
	}
	for i := range ts {
		if started[i].Created {
			created.Store(fmt.Sprint(news[i].ID), k)
		}
		if sent[i] == store.SendAccepted {
			accepted.Store(ts[i].ID, k)
		}
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}
