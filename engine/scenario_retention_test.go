package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// briefly keeps what ends for an hour, and its tombstone for another.
var briefly = engine.Retention{
	Keep: time.Hour, Tombstone: time.Hour,
	Processing: time.Minute, Replay: time.Minute, Skew: time.Second, Buffer: time.Second,
}

// cleaner is a worker that knows one definition with a retention.
func (w *world) cleaner(wrap func(store.Store) store.Store) *node {
	w.Helper()
	w.knows("nap")
	n := w.client(nodeOptions{wrap: wrap, tune: func(c *engine.Config) { c.Clean = 50 * time.Millisecond }})
	d := w.site.single()
	d.Name = "kept"
	flow, err := engine.Register(n.Engine, d, engine.Retain(briefly))
	require.NoError(w, err)
	n.flows["kept"] = flow
	return n
}

// keeps starts a workflow that is kept for a while. That it answers a duplicate
// start with the same bytes for ever is not what it promises.
func (n *node) keeps(id string) {
	n.w.Helper()
	_, err := n.flows["kept"].Start(n.w.ctx(), id, trip{Amount: 1})
	require.NoError(n.w, err)
}

// age lets what was done to a workflow have been done so much earlier: its start
// and, if it has ended, its end.
func (w *world) age(id string, start, end time.Duration) {
	w.Helper()
	if w.isPostgres() {
		w.exec(`UPDATE pawl.workflow SET created_at = created_at - $2::bigint * interval '1 microsecond',
			ended_at = ended_at - $3::bigint * interval '1 microsecond' WHERE id = $1`, id, start.Microseconds(), end.Microseconds())
		return
	}
	w.exec(`UPDATE workflow SET created_at = created_at - $2, ended_at = ended_at - $3 WHERE id = $1`, id, start.Microseconds(), end.Microseconds())
}

// SCENARIO 49: what has started three hours ago and ends now is kept: its age counts
// from its end. What has ended long ago becomes a tombstone, and later nothing.
func TestRetentionCountsFromTheEnd(t *testing.T) {
	eachStore(t, func(w *world) {
		n := w.cleaner(nil)
		n.run()
		for _, id := range []string{"young", "old", "ancient"} {
			n.keeps(id)
			n.ends(id, store.Completed)
		}
		n.start("nap", "another", trip{Pause: time.Millisecond})
		n.ends("another", store.Completed)
		w.age("another", 10*time.Hour, 10*time.Hour)
		w.age("young", 3*time.Hour, 0)
		w.age("old", 3*time.Hour, 90*time.Minute)
		w.age("ancient", 9*time.Hour, 3*time.Hour)
		w.eventually("the ancient one is forgotten", func() bool {
			_, err := n.Get(w.ctx(), "ancient")
			return errors.Is(err, store.ErrNotFound)
		})
		w.eventually("the old one is a tombstone", func() bool {
			info, err := n.Get(w.ctx(), "old")
			require.NoError(w, err)
			return info.Status == store.Expired
		})
		require.Equal(w, store.Completed, n.get("young").Status)
		info, err := n.Get(w.ctx(), "another")
		require.NoError(w, err)
		require.Equal(w, store.Completed, info.Status, "nothing was said of its definition")
		_, err = n.flows["kept"].Start(w.ctx(), "old", trip{Amount: 1})
		require.ErrorIs(w, err, engine.ErrExpired)
		for _, id := range []string{"old", "ancient"} {
			w.ledger.forget(id)
		}
	})
}

// cleanSpy counts the batches of a cleaner, and dies after a number of them.
type cleanSpy struct {
	store.Store
	batches atomic.Int32
	largest atomic.Int32
	dieAt   int32
}

func (s *cleanSpy) Expire(ctx context.Context, ids []string) ([]string, error) {
	n := s.batches.Add(1)
	s.largest.Store(max(s.largest.Load(), int32(len(ids))))
	if s.dieAt > 0 && n >= s.dieAt {
		return nil, errors.New("dead")
	}
	return s.Store.Expire(ctx, ids)
}

// SCENARIO 49: in bounded batches; of two cleaners one works; one that dies between
// two batches is followed by the other.
func TestOneCleanerAtATime(t *testing.T) {
	eachStore(t, func(w *world) {
		const count = 450
		seed := w.cleaner(nil)
		for i := range count {
			seed.keeps(fmt.Sprintf("w%03d", i))
		}
		seed.run()
		for i := range count {
			seed.ends(fmt.Sprintf("w%03d", i), store.Completed)
		}
		seed.stop()
		if w.isPostgres() {
			w.exec(`UPDATE pawl.workflow SET ended_at = ended_at - interval '90 minutes'`)
			w.exec(`DELETE FROM pawl.lease`)
		} else {
			w.exec(`UPDATE workflow SET ended_at = ended_at - $1`, (90 * time.Minute).Microseconds())
			w.exec(`DELETE FROM lease`)
		}
		var first, second *cleanSpy
		one := w.cleaner(func(st store.Store) store.Store { first = &cleanSpy{Store: st, dieAt: 2}; return first })
		two := w.cleaner(func(st store.Store) store.Store { second = &cleanSpy{Store: st}; return second })
		one.run()
		w.eventually("one batch is done, and the next has failed", func() bool { return first.batches.Load() >= 2 })
		two.run()
		tombstones := func() int {
			all, err := w.st.List(w.ctx(), store.Query{Statuses: []store.Status{store.Expired}, Limit: 1000})
			require.NoError(w, err)
			return len(all)
		}
		require.Equal(w, 200, tombstones(), "a batch, and no more")
		w.eventually("the first holds its lease", func() bool { return first.batches.Load() >= 5 })
		require.Zero(w, second.batches.Load(), "the second one has nothing to say")
		one.stop()
		if w.isPostgres() {
			w.exec(`UPDATE pawl.lease SET expires_at = now()`)
		} else {
			w.exec(`UPDATE lease SET expires_at = 0`)
		}
		w.eventually("the second one goes on", func() bool { return tombstones() == count })
		require.LessOrEqual(w, second.largest.Load(), int32(200))
		for i := range count {
			w.ledger.forget(fmt.Sprintf("w%03d", i))
		}
	})
}

// A retention that is shorter than somebody may still ask is refused, with the sum
// spelled out.
func TestRetentionHorizon(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		n := w.client()
		d := w.site.chain("patient", 1, step.Policy{Attempts: 3, Backoff: step.Constant(10 * time.Minute), Timeout: time.Minute}, w.site.call)
		_, err := engine.Register(n.Engine, d, engine.Retain(engine.Retention{Keep: 48 * time.Hour}))
		require.ErrorIs(w, err, engine.ErrRetentionTooShort)
		require.ErrorContains(w, err, "48h0m0s is not more than 49h24m0s = retry chain 23m0s + processing 24h0m0s + replay 24h0m0s + clock skew 1m0s + buffer 1h0m0s")
		_, err = engine.Register(n.Engine, d, engine.Retain(engine.Retention{Keep: 50 * time.Hour, Replay: -time.Hour}))
		require.ErrorContains(w, err, "Replay -1h0m0s")
		require.Len(w, n.Definitions(), 1, "nothing is registered")
		_, err = engine.Register(n.Engine, d, engine.Retain(engine.Retention{Keep: 50 * time.Hour}))
		require.NoError(w, err)
		plans := n.RetentionPlans()
		require.Len(w, plans, 2)
		require.Nil(w, plans[0].Retention)
		require.Equal(w, 49*time.Hour+24*time.Minute, plans[1].Horizon.Sum())
	})
}
