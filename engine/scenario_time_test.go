package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// A sleep goes on while its worker is dead, and ends when it is due, never
// early. If nobody is there then it ends on return; once in any case.
func TestSleepSurvivesItsWorker(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		const pause = 2 * time.Second
		asleep := func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting && s.Owner.IsZero() }
		c := w.client()
		p := w.process(job{}).joined()
		c.start("nap", "alive", trip{Pause: pause})
		c.start("nap", "down", trip{Pause: 100 * time.Millisecond})
		c.becomes("alive", "it sleeps", asleep)
		p.dies()

		due := c.get("down").WakeAt
		w.eventually("it is due, and nobody is there", func() bool { return time.Now().After(due) })
		w.process(job{}).joined()
		for id, pause := range map[string]time.Duration{"alive": pause, "down": 100 * time.Millisecond} {
			s := c.ends(id, store.Completed)
			rows := w.ledger.all()
			row := rows[slices.IndexFunc(rows, func(r row) bool { return r.workflow == id })]
			require.Equal(w, 1, row.calls)
			require.False(w, row.first.Before(s.CreatedAt.Add(pause)), "%s woke at %v, was to sleep until %v", id, row.first, s.CreatedAt.Add(pause))
		}
	})
}

// A signal that comes before its wait is kept; one that comes during it is
// delivered; one that comes after the end is refused; and one that comes twice,
// under one id, counts once.
func TestSignals(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		n := w.worker()
		vote := func(id, vote string, opts ...engine.SendOption) {
			w.Helper()
			require.NoError(w, engine.Signal(w.ctx(), n.Engine, id, ballot, vote, opts...))
		}
		waits := func(id string, votes int) {
			w.Helper()
			n.becomes(id, "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits == "ballot" && len(s.Data.Votes) == votes })
		}

		gate := w.ledger.holds("before", "open")
		n.start("vote", "before", trip{Quorum: 1})
		gate.arrived(w)
		vote("before", "early")
		gate.release()
		require.Equal(w, []string{"early"}, n.ends("before", store.Completed).Data.Votes)

		n.start("vote", "during", trip{Quorum: 1})
		waits("during", 0)
		vote("during", "now")
		require.Equal(w, []string{"now"}, n.ends("during", store.Completed).Data.Votes)
		require.ErrorIs(w, engine.Signal(w.ctx(), n.Engine, "during", ballot, "late"), engine.ErrEnded)

		n.start("vote", "twice", trip{Quorum: 2})
		vote("twice", "x", engine.MessageID("m1"))
		waits("twice", 1)
		vote("twice", "x", engine.MessageID("m1"))
		vote("twice", "y", engine.MessageID("m2"))
		require.Equal(w, []string{"x", "y"}, n.ends("twice", store.Completed).Data.Votes)
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "twice", ballot, "x", engine.MessageID("m1")), "still a duplicate")

		require.ErrorIs(w, engine.Signal(w.ctx(), n.Engine, "no-such", ballot, "x"), engine.ErrNotFound)
	})
}

// A signal that nobody waits for, or whose value does not fit, is refused by an
// engine that knows the definition. One that does not know it cannot tell: such
// a value is put aside, and the next one counts.
func TestSignalsThatDoNotFit(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("single", "vote")
		n, stranger := w.worker(), w.client(nodeOptions{only: []string{"single"}})
		n.start("vote", "w", trip{Quorum: 1})
		n.becomes("w", "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits == "ballot" })
		require.ErrorIs(w, n.SignalJSON(w.ctx(), "w", "other", []byte(`"x"`)), engine.ErrUnknownSignal)
		require.ErrorIs(w, n.SignalJSON(w.ctx(), "w", "ballot", []byte(`7`)), engine.ErrBadInput)
		require.ErrorIs(w, n.SignalJSON(w.ctx(), "w", "ballot", []byte(`{`)), engine.ErrBadInput)
		require.ErrorIs(w, n.SignalJSON(w.ctx(), "w", "ballot", make([]byte, 2<<20)), engine.ErrTooLarge)
		inbox, err := w.st.Inbox(w.ctx(), "w")
		require.NoError(w, err)
		require.Empty(w, inbox, "nothing was written")

		require.NoError(w, stranger.SignalJSON(w.ctx(), "w", "other", []byte(`"x"`)))
		require.NoError(w, stranger.SignalJSON(w.ctx(), "w", "ballot", []byte(`7`)))
		w.eventually("what does not fit is put aside", func() bool {
			inbox, err := w.st.Inbox(w.ctx(), "w")
			return err == nil && len(inbox) == 1
		})
		require.NoError(w, engine.Signal(w.ctx(), n.Engine, "w", ballot, "yes"))
		require.Equal(w, []string{"yes"}, n.ends("w", store.Completed).Data.Votes)
	})
}

// Many signals at once, each sent twice, to a workflow that goes on waiting: each
// counts once, and none is lost.
func TestManySignalsToOneWorkflow(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		const many = 40
		n, other := w.worker(), w.client()
		n.start("vote", "w", trip{Quorum: many})
		var wg sync.WaitGroup
		for i := range many {
			for _, from := range []*node{n, other} {
				wg.Go(func() {
					err := engine.Signal(w.ctx(), from.Engine, "w", ballot, fmt.Sprint(i), engine.MessageID(fmt.Sprint(i)))
					require.NoError(w, err)
				})
			}
		}
		wg.Wait()
		votes := n.ends("w", store.Completed).Data.Votes
		require.Len(w, votes, many)
		slices.Sort(votes)
		require.Len(w, slices.Compact(votes), many, "each once")
	})
}

// A signal at the very moment of its timeout: exactly one of the two is taken.
func TestSignalAtTheMomentOfItsTimeout(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote-brief")
		const many = 30
		n := w.worker(nodeOptions{tune: func(c *engine.Config) { c.Concurrency = 64 }})
		var wg sync.WaitGroup
		for i := range many {
			id := fmt.Sprintf("w%02d", i)
			n.start("vote-brief", id, trip{Quorum: 1})
			s := n.becomes(id, "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits != "" || s.Status.Ended() })
			wg.Go(func() {
				early := time.Duration(i-many/2) * 500 * time.Microsecond
				<-time.After(time.Until(s.WakeAt) - early)
				err := engine.Signal(w.ctx(), n.Engine, id, ballot, "x")
				if err != nil {
					require.ErrorIs(w, err, engine.ErrEnded)
				}
			})
		}
		wg.Wait()
		counted := 0
		for i := range many {
			s := n.ends(fmt.Sprintf("w%02d", i), store.Completed)
			effects := w.ledger.effects(s.ID)
			switch s.State {
			case "good":
				counted++
				require.Equal(w, []string{"open", "count"}, effects)
				require.Equal(w, []string{"x"}, s.Data.Votes)
			case "late":
				require.Equal(w, []string{"open", "remind"}, effects)
				require.Empty(w, s.Data.Votes)
			}
		}
		w.Logf("%d of %d were counted", counted, many)
	})
}

// What counts is when the signal was sent, not when a worker comes to look: of
// two signals that nobody looked at until after the timeout, the one that was
// sent in time is taken, and the other is not.
func TestSignalBeatsATimeoutThatNobodySaw(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("vote")
		c, n := w.client(), w.worker()
		for _, id := range []string{"in-time", "too-late"} {
			c.start("vote", id, trip{Quorum: 1})
			c.becomes(id, "it waits", func(s engine.Snapshot[trip]) bool { return s.Awaits == "ballot" && s.Owner.IsZero() })
		}
		n.stop()
		require.NoError(w, engine.Signal(w.ctx(), c.Engine, "in-time", ballot, "x"))
		w.due("in-time")
		w.due("too-late")
		require.NoError(w, engine.Signal(w.ctx(), c.Engine, "too-late", ballot, "x"))
		w.worker()
		require.Equal(w, statemachine.State("good"), c.ends("in-time", store.Completed).State)
		require.Equal(w, statemachine.State("late"), c.ends("too-late", store.Completed).State)
	})
}
