package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var raceTests = []test{
	{"StartBy8", func(e *env) { raceStart(e, 8) }},
	{"StartBy100", func(e *env) { raceStart(e, 100) }},
	{"StartOverlappingBatches", raceStartBatches},
	{"Claim", raceClaim},
	{"Commit", raceCommit},
	{"CommitOfOneRow", raceCommitOne},
	{"CommitTxOfOneRow", raceCommitTx},
	{"CommitAgainstCommitTx", raceBothDoors},
	{"SendOfOneID", raceSend},
	{"SendOverlappingBatches", raceSendBatches},
	{"SignalAgainstPark", racePark},
	{"TakeoverAgainstCommit", raceTakeover},
	{"TakeoverByMany", raceTakeovers},
	{"BuryByMany", raceBury},
	{"RenewAgainstBury", raceRenew},
}

// trying calls f until it does not ask to be tried again.
func trying[T any](e *env, f func() (T, error)) T {
	for {
		v, err := f()
		if err == nil {
			return v
		}
		if !errors.Is(err, store.ErrRetry) || e.ctx.Err() != nil {
			e.Errorf("unexpected error: %v", err)
			return v
		}
	}
}

// raceStart: of any number of callers at once one creates the workflow, and
// all are told of that one.
func raceStart(e *env, callers int) {
	results := make([]store.StartResult, callers)
	together(callers, func(i int) {
		n := store.New{ID: "a", Definition: order, InputHash: [16]byte{byte(i), 1}, Place: pending(charge, now)}
		rs := trying(e, func() ([]store.StartResult, error) { return e.st.Start(e.ctx, []store.New{n}) })
		if len(rs) == 1 {
			results[i] = rs[0]
		}
	})
	created := 0
	for _, r := range results {
		if r.Created {
			created++
		}
	}
	require.Equal(e, 1, created)
	for i := range results {
		results[i].Created = false
		require.Equal(e, results[0], results[i])
	}
	require.Equal(e, results[0].InputHash, e.get("a").InputHash)
	require.Len(e, e.claim(e.worker()), 1)
}

// raceStartBatches: batches that hold the same ids in another order neither
// deadlock nor create one twice.
func raceStartBatches(e *env) {
	const callers, size = 8, 40
	var created atomic.Int64
	together(callers, func(i int) {
		news := make([]store.New, size)
		for j, id := range ids(size) {
			news[j] = store.New{ID: id, Definition: order, Place: pending(charge, now)}
		}
		if i%2 == 1 {
			slices.Reverse(news)
		}
		for _, r := range trying(e, func() ([]store.StartResult, error) { return e.st.Start(e.ctx, news) }) {
			if r.Created {
				created.Add(1)
			}
		}
	})
	require.EqualValues(e, size, created.Load())
}

// raceClaim: however many claim at once, each workflow goes to one of them.
func raceClaim(e *env) {
	const workers, total = 8, 120
	for i, id := range ids(total) {
		if i%3 == 0 {
			e.start(id, waiting(never))
			e.send(id, "m")
		} else {
			e.start(id, pending(charge, now))
		}
	}
	var (
		mu     sync.Mutex
		owners = make(map[string]store.WorkerID)
	)
	list := make([]store.WorkerID, workers)
	for i := range list {
		list[i] = e.worker()
	}
	together(workers, func(i int) {
		for {
			cs := trying(e, func() ([]store.Claimed, error) { return e.st.Claim(e.ctx, list[i], []store.Def{order}, 7) })
			mu.Lock()
			for _, c := range cs {
				if _, twice := owners[c.ID]; twice {
					e.Errorf("%s was claimed twice", c.ID)
				}
				owners[c.ID] = list[i]
			}
			all := len(owners) == total
			mu.Unlock()
			if all || e.ctx.Err() != nil || e.Failed() {
				return
			}
		}
	})
	for id, w := range owners {
		got := e.get(id)
		require.Equal(e, w, got.Owner)
		require.EqualValues(e, 2, got.Revision)
	}
}

// raceCommit: committers of different workers do not disturb each other.
func raceCommit(e *env) {
	const committers, rounds, size = 8, 5, 10
	together(committers, func(i int) {
		w := freshID()
		list := make([]string, size)
		news := make([]store.New, size)
		for j := range list {
			list[j] = fmt.Sprintf("%d-%d", j, i) // the workers' rows lie between each other
			news[j] = store.New{ID: list[j], Definition: order, Owner: w, Place: pending(charge, never)}
		}
		trying(e, func() ([]store.StartResult, error) { return e.st.Start(e.ctx, news) })
		for r := range rounds {
			ts := make([]store.Transition, size)
			for j, id := range list {
				ts[j] = store.Transition{
					Guard: store.Guard{ID: id, Revision: int64(r + 1)}, Place: pending(charge, never),
					Steps: []store.StepRecord{done("charge", r+1)},
				}
			}
			for _, v := range trying(e, func() ([]store.Verdict, error) { return e.st.Commit(e.ctx, w, ts) }) {
				if v != store.Applied {
					e.Errorf("a transition was lost")
				}
			}
		}
	})
	for i := range committers {
		for j := range size {
			id := fmt.Sprintf("%d-%d", j, i)
			require.EqualValues(e, rounds+1, e.get(id).Revision)
			require.Len(e, e.history(id), rounds)
		}
	}
}

// raceCommitOne: of equal transitions sent at once, one is applied.
func raceCommitOne(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	for round := range 10 {
		var applied atomic.Int64
		together(8, func(int) {
			t := store.Transition{Guard: guard(wf), Place: pending(charge, never), Steps: []store.StepRecord{done("charge", round+1)}}
			for _, v := range trying(e, func() ([]store.Verdict, error) { return e.st.Commit(e.ctx, w, []store.Transition{t}) }) {
				applied.Add(int64(v))
			}
		})
		require.EqualValues(e, 1, applied.Load())
		wf = e.get("a")
		require.EqualValues(e, round+2, wf.Revision)
	}
}

// raceCommitTx: the effect of a body counts exactly as often as its transition
// is applied.
func raceCommitTx(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	const rounds = 5
	for range rounds {
		var applied atomic.Int64
		together(8, func(int) {
			applied.Add(int64(trying(e, func() (store.Verdict, error) {
				return e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
					return store.Transition{Place: pending(charge, never)}, l.increase(tx, "a")
				})
			})))
		})
		require.EqualValues(e, 1, applied.Load())
		wf = e.get("a")
	}
	_, amount := l.sum()
	require.EqualValues(e, rounds, amount)
}

// raceBothDoors: the two doors to one row exclude each other.
func raceBothDoors(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	viaTx := int64(0)
	for range 20 {
		var plain, tx atomic.Int64
		together(2, func(i int) {
			if i == 0 {
				t := store.Transition{Guard: guard(wf), Place: waiting(never)}
				for _, v := range trying(e, func() ([]store.Verdict, error) { return e.st.Commit(e.ctx, w, []store.Transition{t}) }) {
					plain.Add(int64(v))
				}
				return
			}
			tx.Add(int64(trying(e, func() (store.Verdict, error) {
				return e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
					return store.Transition{Place: pending(charge, never)}, l.increase(tx, "a")
				})
			})))
		})
		require.EqualValues(e, 1, plain.Load()+tx.Load())
		viaTx += tx.Load()
		wf = e.get("a")
	}
	_, amount := l.sum()
	require.Equal(e, viaTx, amount)
	require.EqualValues(e, 21, wf.Revision)
}

// raceSend: of equal messages sent at once, one is accepted.
func raceSend(e *env) {
	e.start("a", waiting(never))
	var accepted, duplicate atomic.Int64
	together(100, func(int) {
		for _, r := range trying(e, func() ([]store.SendResult, error) { return e.st.Send(e.ctx, []store.Message{signal("a", "m")}) }) {
			switch r {
			case store.SendAccepted:
				accepted.Add(1)
			case store.SendDuplicate:
				duplicate.Add(1)
			}
		}
	})
	require.EqualValues(e, 1, accepted.Load())
	require.EqualValues(e, 99, duplicate.Load())
	require.Len(e, e.inbox("a"), 1)
}

func raceSendBatches(e *env) {
	const senders, size = 8, 30
	for _, id := range ids(size) {
		e.start(id, waiting(never))
	}
	var accepted atomic.Int64
	together(senders, func(i int) {
		ms := make([]store.Message, size)
		for j, id := range ids(size) {
			ms[j] = signal(id, "m")
		}
		if i%2 == 1 {
			slices.Reverse(ms)
		}
		for _, r := range trying(e, func() ([]store.SendResult, error) { return e.st.Send(e.ctx, ms) }) {
			if r == store.SendAccepted {
				accepted.Add(1)
			}
		}
	})
	require.EqualValues(e, size, accepted.Load())
}

// racePark: a message that comes at the very moment at which its workflow is
// parked is never overlooked: its owner has seen it, or the workflow can be
// claimed for it.
func racePark(e *env) {
	for round := range 30 {
		w := e.worker()
		id := "wf-" + strconv.Itoa(round)
		wf := e.startAs(w, id, waiting(never))
		var seen []string
		together(2, func(i int) {
			if i == 0 {
				trying(e, func() ([]store.SendResult, error) { return e.st.Send(e.ctx, []store.Message{signal(id, "m")}) })
				return
			}
			ms := trying(e, func() ([]store.Message, error) { return e.st.Mail(e.ctx, w) })
			seen = messageIDs(ms)
			t := store.Transition{Guard: guard(wf), Place: waiting(never), Release: true, Seen: seen}
			trying(e, func() ([]store.Verdict, error) { return e.st.Commit(e.ctx, w, []store.Transition{t}) })
		})
		require.True(e, e.get(id).Owner.IsZero())
		claimed := e.claim(w)
		if len(seen) > 0 {
			require.Empty(e, claimed, "its owner knew of the message and parked all the same")
			continue
		}
		require.Len(e, claimed, 1, "round %d: the message was overlooked", round)
		require.Equal(e, []string{"m"}, messageIDs(claimed[0].Inbox))
	}
}

// raceTakeover: a commit and a takeover of one row exclude each other.
func raceTakeover(e *env) {
	for round := range 20 {
		w := e.worker()
		wf := e.startAs(w, "wf-"+strconv.Itoa(round), pending(charge, never))
		e.expire(w)
		var applied, taken atomic.Int64
		together(2, func(i int) {
			if i == 0 {
				t := store.Transition{Guard: guard(wf), Place: completed, Steps: []store.StepRecord{done("charge", 1)}}
				for _, v := range trying(e, func() ([]store.Verdict, error) { return e.st.Commit(e.ctx, w, []store.Transition{t}) }) {
					applied.Add(int64(v))
				}
				return
			}
			taken.Add(int64(trying(e, func() (int, error) { return e.st.Takeover(e.ctx, time.Second, 10) })))
		})
		taken.Add(int64(e.takeover(time.Second))) // it skips a locked row and comes back
		require.EqualValues(e, 1, applied.Load()+taken.Load())
		require.Len(e, e.history(wf.ID), int(applied.Load()))
		require.EqualValues(e, 2, e.get(wf.ID).Revision)
	}
}

// raceTakeovers: any number of sweepers together take each workflow over once.
func raceTakeovers(e *env) {
	const sweepers, total = 8, 60
	w := e.worker()
	for _, id := range ids(total) {
		e.startAs(w, id, pending(charge, never))
	}
	e.expire(w)
	var taken atomic.Int64
	together(sweepers, func(int) {
		for taken.Load() < total && e.ctx.Err() == nil && !e.Failed() {
			taken.Add(int64(trying(e, func() (int, error) { return e.st.Takeover(e.ctx, time.Second, 7) })))
		}
	})
	require.EqualValues(e, total, taken.Load())
	for _, id := range ids(total) {
		got := e.get(id)
		require.EqualValues(e, 2, got.Revision)
		require.Equal(e, 1, got.Mark.Crashes)
	}
}

func raceBury(e *env) {
	for range 10 {
		e.workerFor(time.Microsecond)
	}
	var buried atomic.Int64
	together(8, func(int) {
		buried.Add(int64(len(trying(e, func() ([]store.WorkerID, error) { return e.st.Bury(e.ctx) }))))
	})
	require.EqualValues(e, 10, buried.Load())
}

// raceRenew: a worker whose renewal and burial come together is either alive,
// and was told so, or buried, and was told so.
func raceRenew(e *env) {
	for range 20 {
		w := e.workerFor(time.Microsecond)
		var alive, buried atomic.Bool
		together(2, func(i int) {
			if i == 0 {
				alive.Store(trying(e, func() (bool, error) { return e.st.Renew(e.ctx, w, time.Hour) }))
				return
			}
			buried.Store(slices.Contains(trying(e, func() ([]store.WorkerID, error) { return e.st.Bury(e.ctx) }), w))
		})
		require.NotEqual(e, alive.Load(), buried.Load())
	}
}
