package engine

import (
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Commits: outcomes become durable. While as many commits are under way as the
// store likes, the next batch gathers by itself; nothing waits on purpose.

func (r *reactor) enqueue(h *hold) {
	h.phase = holdQueued
	r.queue = append(r.queue, h)
}

// retryLater sends what is kept once more after a pause.
func (r *reactor) retryLater(h *hold) {
	h.phase = holdQueued
	h.fails++
	r.after(backoff(h.fails), func() {
		if r.holds[h.id] == h && h.phase == holdQueued {
			r.queue = append(r.queue, h)
		}
	})
}

func (r *reactor) sendCommits() {
	for r.committing < r.cfg.limits.Committers {
		batch := r.nextBatch()
		if len(batch) == 0 {
			return
		}
		r.commit(batch)
	}
}

// nextBatch takes a split-off batch first, else what has gathered.
func (r *reactor) nextBatch() []*hold {
	if len(r.batches) > 0 {
		batch := r.batches[0]
		r.batches = r.batches[1:]
		return batch
	}
	n := min(len(r.queue), r.cfg.limits.Batch)
	batch := r.queue[:n:n]
	r.queue = r.queue[n:]
	return batch
}

func (r *reactor) commit(batch []*hold) {
	ts := make([]store.Transition, len(batch))
	for i, h := range batch {
		h.phase = holdCommitting
		h.sends++
		if r.drain.on {
			h.handOver()
		}
		ts[i] = h.kept.transition
	}
	r.committing++
	r.startsLast = false
	r.do(cmdCommit{batch, ts})
}

// handOver turns a transition that would go on here into one that gives the
// workflow back, for another worker to go on at once.
func (h *hold) handOver() {
	if t := &h.kept.transition; !t.Release {
		t.Place, t.Release = unowned(t.Place), true
	}
}

func (r *reactor) committed(ev evCommitted) {
	if !r.current(ev.id) {
		return
	}
	r.committing--
	if ev.err == nil {
		for i, h := range ev.batch {
			if r.holds[h.id] == h {
				r.judge(h, ev.verdicts[i], nil)
			}
		}
		return
	}
	r.failedCommit(ev.batch, ev.err)
}

// failedCommit decides what to do about a commit without verdicts.
func (r *reactor) failedCommit(batch []*hold, err error) {
	again := errors.Is(err, store.ErrRetry)
	switch {
	case len(batch) == 1:
		if r.holds[batch[0].id] == batch[0] {
			r.judge(batch[0], store.Lost, err)
		}
	case errors.Is(err, store.ErrUnsure), again && !errors.Is(err, store.ErrBusy):
		for _, h := range batch {
			if r.holds[h.id] == h {
				r.judge(h, store.Lost, err)
			}
		}
	default: // one locked or unacceptable row must not hold up the others
		half := len(batch) / 2
		r.batches = append(r.batches, batch[:half], batch[half:])
	}
}

// judge goes on from what became of one transition.
func (r *reactor) judge(h *hold, v store.Verdict, err error) {
	switch {
	case err == nil && v == store.Applied:
		r.applied(h)
	case err == nil && h.sends > 1:
		// An earlier sending may have been applied: then this one lost
		// against itself.
		r.readBackLater(h)
	case err == nil:
		r.log(true, "a stale write was refused", "workflow", h.id, "worker", r.me.String(), "error", ErrLeaseLost)
		r.part(h)
	case errors.Is(err, store.ErrUnsure):
		r.log(true, "answer to a commit was lost, reading back", "workflow", h.id, "error", err)
		r.readBackLater(h)
	case errors.Is(err, store.ErrRetry):
		r.tryAgain(h)
	default:
		r.refuse(h, err)
	}
}

// tryAgain repeats what was certainly rolled back: a body in its transaction is
// run again, any other outcome is kept and sent again.
func (r *reactor) tryAgain(h *hold) {
	if !h.kept.inTx {
		h.sends--
		r.retryLater(h)
		return
	}
	h.fails++
	h.phase = holdQueued
	r.after(backoff(h.fails), func() {
		if r.holds[h.id] == h && h.phase == holdQueued {
			r.makeReady(h)
		}
	})
}

// refuse makes a workflow HELD whose transition the database will never take.
func (r *reactor) refuse(h *hold, err error) {
	if h.refused != "" {
		r.log(true, "the database refuses even to hold the workflow, giving it up", "workflow", h.id, "error", err)
		r.part(h)
		return
	}
	r.log(true, "the database refuses the transition for good", "workflow", h.id, "error", err)
	h.refused = err.Error()
	r.makeReady(h)
}

// applied goes on after a transition has become durable.
func (r *reactor) applied(h *hold) {
	k := h.kept
	t := k.transition
	h.rev++
	h.cursor, h.run, h.inbox = k.cursor, k.follow.run, unconsumed(h.inbox, t.Consumed)
	h.sawAll(t)
	h.due, h.wakeAt, h.refused, h.fails, h.sends, h.kept = false, time.Time{}, "", 0, 0, worked{}
	if len(k.events) > 0 {
		r.do(cmdTell{k.events})
	}
	if t.Status == store.Held {
		r.logHeld(h.id, t.Place)
	}
	if len(t.Starts)+len(t.Sends) > 0 {
		r.claimNext = true
		r.do(cmdHint{store.TopicReady})
	}
	switch {
	case t.Status.Ended():
		r.part(h)
		r.slotFree(h)
		r.do(cmdHint{store.TopicEnded})
	case t.Release:
		r.part(h)
		r.slotFree(h)
		if t.Wake.Kind == store.WakeAfter || t.Wake.Kind == store.WakeAt {
			r.expectWake(t.Wake.After)
		}
	default:
		r.makeReady(h)
	}
}

// logHeld leaves out the reason where payloads are encoded: it may quote one.
func (r *reactor) logHeld(id string, p store.Place) {
	args := []any{"workflow", id, "state", p.State, "step", p.Mark.Step}
	if !r.cfg.discreet {
		args = append(args, "reason", p.Error)
	}
	r.log(true, "workflow is HELD and needs a person", args...)
}

// wakeSlack is added to a local timer, since the database's clock and this one
// do not tick together: a claim that comes too early finds nothing.
const wakeSlack = 2 * time.Millisecond

// expectWake looks for work when a workflow that was just given back is due,
// rather than at the next poll. It is only a convenience.
func (r *reactor) expectWake(after time.Duration) {
	if r.drain.on {
		r.do(cmdHint{store.TopicReady})
		return
	}
	if after > time.Hour {
		return
	}
	r.after(after+wakeSlack, func() { r.claimNext, r.queueNext = true, r.queueNext || r.queues })
}

func unconsumed(inbox []store.Message, gone []store.Consumed) []store.Message {
	if len(gone) == 0 {
		return inbox
	}
	var rest []store.Message
	for _, m := range inbox {
		if !consumedBy(gone, m.ID) {
			rest = append(rest, m)
		}
	}
	return rest
}

func consumedBy(gone []store.Consumed, id string) bool {
	for _, c := range gone {
		if c.MessageID == id {
			return true
		}
	}
	return false
}

func (r *reactor) readBackLater(h *hold) {
	h.phase = holdUnsure
	h.fails++
	r.after(backoff(h.fails), func() {
		if r.holds[h.id] == h && h.phase == holdUnsure {
			r.do(cmdReadBack{[]*hold{h}})
		}
	})
}

// readBack settles what became of transitions whose answer was lost.
func (r *reactor) readBack(ev evReadBack) {
	if !r.current(ev.id) {
		return
	}
	at := map[string]store.Position{}
	for _, p := range ev.pos {
		at[p.ID] = p
	}
	for _, h := range ev.holds {
		if r.holds[h.id] != h || h.phase != holdUnsure {
			continue
		}
		if ev.err != nil {
			r.readBackLater(h)
			continue
		}
		r.settle(h, at[h.id])
	}
}

func (r *reactor) settle(h *hold, p store.Position) {
	switch {
	case p.Owner == r.me && p.Revision == h.rev: // it was never applied
		if h.kept.inTx {
			r.tryAgain(h)
		} else {
			r.enqueue(h)
		}
	case p.Owner == r.me && p.Revision == h.rev+1: // it was this very one
		r.applied(h)
	case p.Owner.IsZero() && p.Revision == h.rev+1 && (h.kept.transition.Release || h.kept.transition.Status.Ended()):
		// It was this one, or a takeover that came before it: either way the
		// workflow is no longer this worker's. Waiters look for themselves.
		r.part(h)
		r.do(cmdHint{store.TopicEnded})
	default:
		r.log(true, "workflow went on without this worker", "workflow", h.id, "error", ErrLeaseLost)
		r.part(h)
	}
}
