package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Claims and rounds: how work comes to this worker. Everything here is also
// done by polling, so that no hint, timer or answer needs to arrive.

// sweepBatch bounds how many workflows one takeover gives back.
const sweepBatch = 1000

// setPoll keeps one round of polling going.
func (r *reactor) setPoll() {
	if r.polling {
		return
	}
	r.polling = true
	me := r.me
	var round func()
	round = func() {
		if !r.current(me) {
			return
		}
		r.claimNext, r.queueNext = true, true
		r.readMail()
		r.sweep()
		r.schedule()
		r.after(r.cfg.poll, round)
	}
	r.after(r.cfg.poll, round)
}

// room is how many more workflows may be held.
func (r *reactor) room() int { return r.cfg.concurrency - len(r.holds) - r.starting }

// open reports whether the worker may take on more work.
func (r *reactor) open() bool { return r.life == alive && !r.drain.on && r.alone == nil }

func (r *reactor) sendClaim() {
	if !(r.claimNext || r.queueNext) || r.claiming || !r.open() || r.room() <= 0 {
		return
	}
	r.claiming = true
	limit := min(r.room(), r.cfg.limits.Batch)
	if r.wary {
		limit = 1
	}
	if r.claimNext {
		r.claimNext = false
		r.do(cmdClaim{limit})
		return
	}
	r.queueNext = false
	r.do(cmdClaimQueued{limit})
}

// claimedQueued takes on what a claim from queues has brought.
func (r *reactor) claimedQueued(ev evQueued) {
	if !r.current(ev.id) {
		return
	}
	r.claiming, r.queues = false, ev.claim.Any
	if ev.err != nil {
		if !errors.Is(ev.err, store.ErrBusy) {
			r.log(true, "cannot claim from queues", "error", ev.err)
		}
		return
	}
	r.queueNext = r.queueNext || len(ev.claim.Rows) >= ev.limit
	if ev.claim.Next > 0 && ev.claim.Next < r.cfg.poll { // else the next round comes first
		r.after(ev.claim.Next+wakeSlack, func() { r.queueNext = true })
	}
	r.wary = r.wary || slices.ContainsFunc(ev.claim.Rows, isSuspect)
	r.adopt(ev.claim.Rows)
}

func isSuspect(row store.Claimed) bool { return row.Mark.Crashes >= soloCrashes }

// slotFree looks for whoever takes the slot of a queue that h has given back.
func (r *reactor) slotFree(h *hold) {
	if h.queued {
		r.queueNext = true
		r.do(cmdHint{store.TopicReady})
	}
}

func (r *reactor) claimed(ev evClaimed) {
	if !r.current(ev.id) {
		return
	}
	r.claiming = false
	if ev.err != nil {
		r.log(true, "cannot claim", "error", ev.err)
		return
	}
	if len(ev.rows) >= ev.limit {
		r.claimNext = true
	}
	r.wary = slices.ContainsFunc(ev.rows, isSuspect)
	r.adopt(ev.rows)
}

func (r *reactor) loaded(ev evLoaded) {
	if r.current(ev.id) && ev.err == nil {
		r.adopt(ev.rows)
	}
}

// adopt takes rows into memory that the database says are this worker's. One that
// is in memory still was given back by a transition, or a release, whose answer
// this claim has overtaken on another connection: it is kept until that answer
// has come, and then takes the place of what is parted with.
func (r *reactor) adopt(rows []store.Claimed) {
	for _, row := range rows {
		switch h := r.holds[row.ID]; {
		case h == nil:
			r.take(row)
		case row.Revision > h.rev+1: // a release and a claim, at least
			h.heir = &row
		}
	}
}

func (r *reactor) take(row store.Claimed) {
	h := &hold{
		id: row.ID, def: row.Definition, rev: row.Revision, taken: r.seq,
		due: row.Due, wakeAt: row.WakeAt, inbox: row.Inbox, parent: row.Parent, queued: row.Queue != "",
	}
	cur, err := cursorOf(row.Workflow)
	switch {
	case errors.Is(err, ErrCodec):
		h.unread = &unread{err, row.Cursor}
	case err != nil:
		h.refused = err.Error()
	}
	h.cursor = cur
	r.holds[h.id] = h
	r.setDeadline(h, row.UpdatedAt.Sub(row.CreatedAt))
	r.makeReady(h)
}

// setDeadline sees to the deadline of a workflow that has been under way for a
// while, by the database's clock. A body that it finds running is cut off, as for a
// cancellation; whatever else is under way meets it when it goes on.
func (r *reactor) setDeadline(h *hold, age time.Duration) {
	limit := r.cfg.deadline(h.def)
	if limit <= 0 || h.cursor.Branch != "" || h.cursor.Late {
		return
	}
	h.ends = max(r.now+limit-age, 1)
	r.after(h.ends-r.now, func() {
		if r.holds[h.id] == h && h.phase == holdWorking && r.interruptible(h) {
			r.do(cmdInterrupt{h.id, ErrOverdue})
		}
	})
}

// readMail asks for messages of the workflows that are held.
func (r *reactor) readMail() {
	switch {
	case r.life != alive || len(r.holds) == 0:
	case r.mailing:
		r.mailNext = true
	default:
		r.mailing, r.mailAsked = true, r.seq
		r.do(cmdMail{})
	}
}

func (r *reactor) mail(ev evMail) {
	if !r.current(ev.id) {
		return
	}
	r.mailing = false
	for _, m := range ev.msgs {
		switch h := r.holds[m.WorkflowID]; {
		case h == nil:
		case h.taken > r.mailAsked:
			// It came with an inbox of its own, and what has been read here may be
			// older than that: consumed by now.
			r.mailNext = true
		default:
			r.deliver(h, m)
		}
	}
	if r.mailNext {
		r.mailNext = false
		r.readMail()
	}
}

// deliver adds a message to what its owner knows. A message that comes too late
// for the transition under way is considered by the next one; if that gives the
// workflow back, the message is still fresh in the database and will be claimed.
func (r *reactor) deliver(h *hold, m store.Message) {
	known := func(k store.Message) bool { return k.ID == m.ID }
	if h.seen[m.ID] || slices.ContainsFunc(h.inbox, known) {
		return // seen: it was read before a transition that took it up
	}
	h.inbox = append(slices.Clip(h.inbox), m)
	switch {
	case h.phase != holdWorking:
	case m.Kind == store.MessageCancel && r.interruptible(h):
		r.do(cmdInterrupt{h.id, &interruption{ErrCancelAsked, m}})
	case m.Kind == store.MessageVerb && m.Name == string(statemachine.Terminate):
		r.do(cmdInterrupt{h.id, &interruption{ErrTerminated, m}})
	}
}

// interruption is why a body is cut off for a message: what follows takes it up
// at once.
type interruption struct {
	cause error
	msg   store.Message
}

// Error implements error.
func (i *interruption) Error() string { return i.cause.Error() }

// Unwrap makes it match its cause.
func (i *interruption) Unwrap() error { return i.cause }

// interruptible reports whether a cancellation may cut off the running body: a
// pivot's outcome is awaited, and a rollback is never cancelled.
func (r *reactor) interruptible(h *hold) bool {
	sp, ok := r.cfg.spec(h.def, h.cursor.Mark.Step)
	return ok && !sp.Pivot && !sp.IsUndo && !h.cursor.Pivoted
}

// sweep looks for dead workers and gives their workflows back. After a renewal
// of its own that came late it leaves out one round: a database that was slow
// for this worker was slow for the others.
func (r *reactor) sweep() {
	if r.sweeping || r.life != alive || r.drain.on {
		return
	}
	if r.late {
		r.late = false
		return
	}
	r.sweeping = true
	r.do(cmdSweep{})
}

func (r *reactor) swept(ev evSwept) {
	r.sweeping = false
	if ev.err != nil {
		if !errors.Is(ev.err, store.ErrRetry) {
			r.log(true, "cannot sweep", "error", ev.err)
		}
		return
	}
	if ev.buried > 0 || ev.released > 0 {
		r.log(false, "took over from dead workers", "buried", ev.buried, "workflows", ev.released)
		r.claimNext, r.queueNext = true, true
	}
	if ev.released >= sweepBatch {
		r.sweep()
	}
}

// owned compares what the database says with what is held. A workflow that is
// owned but not held, twice in a row, was claimed or started by a call whose
// answer was lost.
func (r *reactor) owned(ev evOwned) {
	if !r.current(ev.id) || ev.err != nil {
		return
	}
	before := r.strangers
	r.strangers = map[string]bool{}
	var missing []string
	for _, p := range ev.pos {
		switch {
		case r.holds[p.ID] != nil:
		case before[p.ID]:
			missing = append(missing, p.ID)
		default:
			r.strangers[p.ID] = true
		}
	}
	if len(missing) > 0 {
		r.log(false, "picked up owned workflows that were not held", "workflows", len(missing))
		r.do(cmdLoad{missing})
	}
}
