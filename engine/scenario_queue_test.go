package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// lines starts a workflow with options.
func (n *node) lines(flow, id string, opts ...engine.StartOption) engine.Started {
	n.w.Helper()
	s, err := n.flows[flow].Start(n.w.ctx(), id, trip{Amount: 1}, opts...)
	require.NoError(n.w, err)
	n.w.remember(flow, id, trip{Amount: 1})
	return s
}

// setQueue changes a queue's limits.
func (n *node) setQueue(name string, l engine.QueueLimits) {
	n.w.Helper()
	require.NoError(n.w, n.SetQueue(n.w.ctx(), name, l))
}

// queue returns how a queue stands.
func (n *node) queue(name string) store.QueueState {
	n.w.Helper()
	all, err := n.Queues(n.w.ctx())
	require.NoError(n.w, err)
	for _, q := range all {
		if q.Name == name {
			return q
		}
	}
	n.w.Fatalf("no queue %q", name)
	return store.QueueState{}
}

func (n *node) why(id string) string {
	n.w.Helper()
	text, err := n.Why(n.w.ctx(), id)
	require.NoError(n.w, err)
	return text
}

// TestAQueueKeepsItsLimits: of six, two run at once on two workers; more as soon as
// the limit is raised; all in the end.
func TestAQueueKeepsItsLimits(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n, other := w.client(), w.client()
		n.setQueue("payments", engine.QueueLimits{Concurrency: 2})
		var gates []*gate
		for i := range 6 {
			id := fmt.Sprint("w", i)
			gates = append(gates, w.ledger.holds(id, "work"))
			n.lines("single", id, engine.InQueue("payments"), engine.Priority(10-i))
		}
		n.run()
		other.run()
		gates[0].arrived(w)
		gates[1].arrived(w)
		q := n.queue("payments")
		require.Equal(w, []int{2, 4}, []int{q.Running, q.Waiting})
		require.Equal(w, "queue payments is full (2 of 2 run, 4 wait)", n.why("w5"))
		n.setQueue("payments", engine.QueueLimits{Concurrency: 3})
		gates[2].arrived(w)
		require.Equal(w, 3, n.queue("payments").Running)
		gates[1].release()
		gates[3].arrived(w)
		for _, g := range gates {
			g.release()
		}
		for i := range 6 {
			n.ends(fmt.Sprint("w", i), store.Completed)
		}
		require.Zero(w, n.queue("payments").Running)
	})
}

// TestACrashFreesASlot: a worker that is killed gives its slot back at takeover; its
// workflow goes on first, with the key that it had.
func TestACrashFreesASlot(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		w.lease = time.Second
		n := w.client()
		n.setQueue("q", engine.QueueLimits{Concurrency: 1})
		g := w.ledger.holds("first", "work")
		n.lines("single", "first", engine.InQueue("q"))
		p := w.process(job{Do: "work", Concurrency: 4})
		g.arrived(w)
		n.lines("single", "second", engine.InQueue("q"), engine.Priority(100))
		p.kill()
		n.run()
		g.release()
		n.ends("first", store.Completed)
		n.ends("second", store.Completed)
		require.Equal(w, 1, w.ledger.calls("second", "work"))
		require.Equal(w, 2, w.ledger.calls("first", "work"))
		require.Len(w, w.ledger.effects("first"), 1)
	})
}

// TestAPausedQueue: nothing of it begins, and who waits in it is told who paused it
// and why. Whoever is cancelled before it has begun ends at once.
func TestAPausedQueue(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.client()
		n.lines("single", "a", engine.InQueue("q"))
		n.lines("single", "b", engine.InQueue("q"))
		require.NoError(w, n.PauseQueue(w.ctx(), "q", "ann", "the provider is down"))
		n.run()
		n.lines("single", "c", engine.InQueue("q"))
		n.start("single", "free", trip{Amount: 1})
		n.ends("free", store.Completed)
		require.Equal(w, "queue q is paused by ann: the provider is down", n.why("a"))
		require.NoError(w, n.Cancel(w.ctx(), "b", "changed my mind"))
		n.ends("b", store.Failed)
		require.Zero(w, w.ledger.calls("b", "work"))
		require.Equal(w, store.Pending, n.get("a").Status)
		require.Equal(w, store.Pending, n.get("c").Status)
		require.NoError(w, n.ResumeQueue(w.ctx(), "q"))
		n.ends("a", store.Completed)
		n.ends("c", store.Completed)
		require.ErrorIs(w, n.PauseQueue(w.ctx(), "none", "ann", ""), engine.ErrQueueNotFound)
		require.ErrorIs(w, n.ResumeQueue(w.ctx(), "none"), engine.ErrQueueNotFound)
	})
}

// TestAWaitFreesItsSlot: a workflow that waits for a signal holds up nobody, and
// stands in line again when the signal comes.
func TestAWaitFreesItsSlot(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote", "single")
		n := w.worker()
		n.setQueue("q", engine.QueueLimits{Concurrency: 1})
		_, err := n.flows["vote"].Start(w.ctx(), "v", trip{Quorum: 1}, engine.InQueue("q"))
		require.NoError(w, err)
		n.becomes("v", "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits != "" && s.Owner.IsZero() })
		g := w.ledger.holds("s", "work")
		n.lines("single", "s", engine.InQueue("q"))
		g.arrived(w)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "v", ballot, "yes"))
		w.eventually("it is told that the queue is full", func() bool {
			return n.why("v") == "queue q is full (1 of 1 run, 0 wait)"
		})
		g.release()
		n.ends("v", store.Completed)
		n.ends("s", store.Completed)
	})
}

// TestPerKeyAndRate: each key by itself, and no more than the rate lets begin.
func TestPerKeyAndRate(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.worker()
		n.setQueue("keys", engine.QueueLimits{PerKey: 1})
		ann, bob := w.ledger.holds("ann-1", "work"), w.ledger.holds("bob-1", "work")
		n.lines("single", "ann-1", engine.InQueue("keys"), engine.QueueKey("ann"))
		ann.arrived(w)
		n.lines("single", "ann-2", engine.InQueue("keys"), engine.QueueKey("ann"))
		n.lines("single", "bob-1", engine.InQueue("keys"), engine.QueueKey("bob"))
		bob.arrived(w)
		require.Zero(w, w.ledger.calls("ann-2", "work"))
		require.Equal(w, "waiting in queue keys (2 run, 1 wait, 1 a key)", n.why("ann-2"))
		ann.release()
		n.ends("ann-2", store.Completed)
		bob.release()
		n.ends("bob-1", store.Completed)
		n.ends("ann-1", store.Completed)

		n.setQueue("slow", engine.QueueLimits{Rate: 1, Period: time.Hour})
		n.lines("single", "r1", engine.InQueue("slow"))
		n.ends("r1", store.Completed)
		n.lines("single", "r2", engine.InQueue("slow"))
		n.start("single", "after", trip{Amount: 1})
		n.ends("after", store.Completed)
		require.Equal(w, store.Pending, n.get("r2").Status)
		require.Equal(w, "waiting in queue slow (0 run, 1 wait, 1 begin in 1h0m0s)", n.why("r2"))
		n.setQueue("slow", engine.QueueLimits{Rate: 1000})
		n.ends("r2", store.Completed)
	})
}

// TestADelayedStart: not before its time, in a queue or not, in a transaction or not.
func TestADelayedStart(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single", "vote")
		n := w.worker()
		n.lines("single", "a", engine.Delay(time.Hour))
		n.lines("single", "b", engine.Delay(time.Hour), engine.InQueue("q"), engine.Priority(100))
		n.lines("single", "soon", engine.Delay(20*time.Millisecond))
		w.inTx(func(ctx context.Context, tx store.Tx) bool {
			_, err := n.flows["single"].StartTx(ctx, tx, "c", trip{Amount: 1}, engine.Delay(time.Hour), engine.InQueue("q2"))
			require.NoError(w, err)
			return true
		})
		w.remember("single", "c", trip{Amount: 1})
		n.ends("soon", store.Completed)
		for _, id := range []string{"a", "b", "c"} {
			s := n.get(id)
			require.Equal(w, store.Pending, s.Status, id)
			require.WithinDuration(w, s.CreatedAt.Add(time.Hour), s.WakeAt, slack, id)
			require.Regexp(w, `^begins at .* UTC \(in 60 min\)$`, n.why(id), id)
			w.due(id)
			n.ends(id, store.Completed)
		}
	})
}

// TestADefinitionsQueue: its workflows wait there unless told otherwise.
func TestADefinitionsQueue(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single")
		n := w.client()
		d := w.site.single()
		d.Name = "paid"
		paid, err := engine.Register(n.Engine, d, engine.ByQueue("payments"))
		require.NoError(w, err)
		n.flows["paid"] = paid
		n.lines("paid", "a")
		n.lines("paid", "b", engine.InQueue("others"), engine.QueueKey("k"), engine.Priority(7))
		w.forget("a") // nobody else knows the definition
		w.forget("b")
		require.Equal(w, "payments", n.get("a").Queue)
		b := n.get("b")
		require.Equal(w, []any{"others", "k", 7}, []any{b.Queue, b.QueueKey, b.Priority})
		s, err := paid.Start(w.ctx(), "a", trip{Amount: 1}, engine.InQueue("others"))
		require.NoError(w, err)
		require.False(w, s.Created, "the options of a duplicate start are not looked at")
		require.Equal(w, "payments", n.get("a").Queue)
		n.run()
		n.ends("a", store.Completed)
		n.ends("b", store.Completed)
	})
}

// TestBadQueues: each fault is named, and nothing is written.
func TestBadQueues(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(w *world) {
		w.knows("single")
		n := w.client()
		start := func(opts ...engine.StartOption) error {
			_, err := n.flows["single"].Start(w.ctx(), "x", trip{Amount: 1}, opts...)
			return err
		}
		set := func(name string, l engine.QueueLimits) error { return n.SetQueue(w.ctx(), name, l) }
		for want, err := range map[string]error{
			`queue "a b"`:      start(engine.InQueue("a b")),
			`queue "-a"`:       start(engine.InQueue("-a")),
			"name one":         start(engine.Priority(3)),
			"name one with":    start(engine.QueueKey("k")),
			"priority 101":     start(engine.InQueue("q"), engine.Priority(101)),
			"priority -1":      start(engine.InQueue("q"), engine.Priority(-1)),
			"queue key":        start(engine.InQueue("q"), engine.QueueKey("a\x00b")),
			"delay -1s":        start(engine.Delay(-time.Second)),
			"delay 1000000h":   start(engine.Delay(1_000_000 * time.Hour)),
			`queue ""`:         set("", engine.QueueLimits{}),
			"concurrency -1":   set("q", engine.QueueLimits{Concurrency: -1}),
			"per key 2000000":  set("q", engine.QueueLimits{PerKey: 2_000_000}),
			"is for a rate":    set("q", engine.QueueLimits{Period: time.Second}),
			"period 1µs: 1 ms": set("q", engine.QueueLimits{Rate: 1, Period: time.Microsecond}),
		} {
			require.ErrorIs(w, err, engine.ErrBadInput, want)
			require.ErrorContains(w, err, want)
		}
		_, err := n.Get(w.ctx(), "x")
		require.ErrorIs(w, err, engine.ErrNotFound)
		all, err := n.Queues(w.ctx())
		require.NoError(w, err)
		require.Empty(w, all)
		d := w.site.single()
		d.Name = "other"
		_, err = engine.Register(n.Engine, d, engine.ByQueue("a/b"))
		require.ErrorIs(w, err, engine.ErrBadInput)
	})
}
