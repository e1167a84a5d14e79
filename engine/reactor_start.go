package engine

import (
	"errors"

	"github.com/pawlhq/pawl/store"
)

// Starts by this process's own clients: they share commits, and run at once
// where there is room.

func (r *reactor) sendStarts() {
	if r.life == unborn && !r.drain.on {
		return // about to join; then they can be owned
	}
	for len(r.starts) > 0 && r.committing < r.cfg.limits.Committers {
		n := min(len(r.starts), r.cfg.limits.Batch)
		reqs := distinct(r.starts[:n])
		r.starts = r.starts[len(reqs):]
		r.sendStart(reqs)
	}
}

// distinct returns the longest beginning of reqs without an id twice: a
// duplicate start waits for the answer to the first.
func distinct(reqs []*startRequest) []*startRequest {
	seen := make(map[string]bool, len(reqs))
	for i, q := range reqs {
		if seen[q.n.ID] {
			return reqs[:i:i]
		}
		seen[q.n.ID] = true
	}
	return reqs[:len(reqs):len(reqs)]
}

func (r *reactor) sendStart(reqs []*startRequest) {
	for _, q := range reqs {
		own := r.open() && r.room() > 0 && q.n.mayBegin()
		if own {
			r.starting++
			q.owner = r.me
		} else {
			q.owner = store.WorkerID{}
		}
	}
	r.committing++
	r.startsLast = true
	r.do(cmdStart{reqs})
}

func (r *reactor) started(ev evStarted) {
	current := r.current(ev.id)
	if current {
		r.committing--
		for _, q := range ev.reqs {
			if !q.owner.IsZero() {
				r.starting--
			}
		}
	}
	if ev.err != nil {
		r.failedStart(ev)
		return
	}
	for i, q := range ev.reqs {
		if current { // else whoever buried this worker takes over
			r.adoptStarted(q, ev.results[i])
		}
	}
	r.answerAll(ev)
}

// adoptStarted goes on with one workflow that was inserted.
func (r *reactor) adoptStarted(q *startRequest, res store.StartResult) {
	switch {
	case res.Created && !q.owner.IsZero():
		h := &hold{id: q.n.ID, def: q.n.Definition, rev: res.Revision, taken: r.seq, cursor: q.n.cursor, run: q.n.next.run}
		r.holds[h.id] = h
		r.setDeadline(h, 0)
		r.makeReady(h)
	case res.Created && q.n.delay > 0:
		r.queues = r.queues || q.n.Queue != ""
		r.expectWake(q.n.delay)
	case res.Created && q.n.Queue != "":
		r.queues, r.queueNext = true, true
		r.do(cmdHint{store.TopicReady})
	case res.Created && q.n.next.run != nil:
		r.claimNext = true
		r.do(cmdHint{store.TopicReady})
	case res.Created && q.n.next.wake != nil:
		r.expectWake(*q.n.next.wake)
	case q.retried && !q.owner.IsZero():
		r.do(cmdLoad{[]string{q.n.ID}}) // the lost answer may have been "created"
	}
}

func (r *reactor) failedStart(ev evStarted) {
	again := errors.Is(ev.err, store.ErrRetry) || errors.Is(ev.err, store.ErrUnsure)
	switch {
	case again && r.life != gone: // a start may be repeated: it finds what it has inserted
		for _, q := range ev.reqs {
			q.retried = q.retried || errors.Is(ev.err, store.ErrUnsure)
			q.fails++
			r.after(backoff(q.fails), func() { r.starts = append(r.starts, q) })
		}
	case len(ev.reqs) > 1: // find the one that is refused
		for _, q := range ev.reqs {
			r.sendStart([]*startRequest{q})
		}
	default:
		r.answerAll(ev)
	}
}

func (r *reactor) answerAll(ev evStarted) {
	for i, q := range ev.reqs {
		reply := startReply{err: ev.err}
		if ev.err == nil {
			reply.res = ev.results[i]
		}
		r.do(cmdReply{q, reply})
	}
}
