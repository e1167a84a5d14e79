package engine

import (
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Work: which body runs when.

// soloCrashes is from how many crashes in a row on a step is a suspect: its
// body runs alone in its worker, so that it takes nobody along if it kills the
// process once more. The first crash is held against nobody, since most are
// nobody's fault.
const soloCrashes = 2

func (h *hold) suspect() bool { return h.cursor.Mark.Crashes >= soloCrashes }

func (r *reactor) makeReady(h *hold) {
	h.phase, h.since = holdReady, r.now
	r.ready = append(r.ready, h)
}

// sendWork starts what is ready, in order.
func (r *reactor) sendWork() {
	switch {
	case r.life != alive:
	case r.drain.on:
		r.releaseReady(nil)
	case r.findSuspect():
		r.isolate(r.alone)
	default:
		for _, h := range r.ready {
			r.work(h)
		}
		r.ready = r.ready[:0]
	}
}

// findSuspect reports whether a suspect is held, and sees to it that r.alone is
// the one that is dealt with first.
func (r *reactor) findSuspect() bool {
	if h := r.alone; h != nil && r.holds[h.id] == h && h.suspect() {
		return true
	}
	if r.alone != nil {
		r.alone, r.claimNext = nil, true // it has survived
	}
	if i := slices.IndexFunc(r.ready, (*hold).suspect); i >= 0 {
		r.alone = r.ready[i]
		r.after(r.cfg.lease, func() {})
	}
	return r.alone != nil
}

// isolate runs a suspect once nothing else is held: should it kill the process,
// that is counted against whatever the worker owns. So what is ready is given
// back, and what runs is waited for; but for at most one lease, since a
// neighbour's body may run for hours.
func (r *reactor) isolate(h *hold) {
	r.releaseReady(h)
	if h.phase == holdReady && (len(r.holds) == 1 || r.now-h.since >= r.cfg.lease) {
		r.ready = r.ready[:0]
		r.work(h)
	}
}

func (r *reactor) work(h *hold) {
	h.phase = holdWorking
	r.working++
	r.do(cmdWork{job{
		id: h.id, def: h.def, rev: h.rev, parent: h.parent, cursor: h.cursor,
		left: r.left(h), run: h.run, due: h.due, wakeAt: h.wakeAt, inbox: h.inbox, unseen: h.unseen(), refused: h.refused, unread: h.unread,
	}})
}

// left is how long a workflow has until its deadline; not positive once that has
// passed, and noDeadline if it has none.
func (r *reactor) left(h *hold) time.Duration {
	if h.ends == 0 {
		return noDeadline
	}
	return h.ends - r.now
}

// unseen returns the ids of messages that the next transition will mark as seen.
func (h *hold) unseen() []string {
	var ids []string
	for _, m := range h.inbox {
		if !h.seen[m.ID] {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// sawAll remembers which messages are no longer fresh.
func (h *hold) sawAll(t store.Transition) {
	if h.seen == nil && len(t.Seen)+len(t.Consumed) > 0 {
		h.seen = map[string]bool{}
	}
	for _, id := range t.Seen {
		h.seen[id] = true
	}
	for _, c := range t.Consumed {
		h.seen[c.MessageID] = true
	}
}

func (r *reactor) worked(ev evWorked) {
	if !r.current(ev.id) {
		return
	}
	r.working--
	h := r.holds[ev.job.id]
	if h == nil || h.phase != holdWorking || h.rev != ev.job.rev {
		return
	}
	h.kept, h.sends = ev.out, 0
	if !ev.out.inTx {
		r.enqueue(h)
		return
	}
	r.judge(h, ev.out.verdict, ev.out.err)
}

// part lets go of a workflow that is no longer owned, unless it has come back in
// the meantime.
func (r *reactor) part(h *hold) {
	delete(r.holds, h.id)
	if h.heir != nil && h.heir.Revision > h.rev {
		r.take(*h.heir)
	}
	if r.room() == 1 { // the first free place: whatever was left behind can come
		r.claimNext = true
	}
}

// releaseReady gives back what has not begun, except for one.
func (r *reactor) releaseReady(except *hold) {
	var holds, kept []*hold
	var rs []store.Released
	for _, h := range r.ready {
		if h == except {
			kept = append(kept, h)
			continue
		}
		h.phase = holdReleasing
		holds = append(holds, h)
		rs = append(rs, store.Released{Guard: store.Guard{ID: h.id, Revision: h.rev}, Begun: !h.counted()})
	}
	r.ready = kept
	if len(holds) > 0 {
		r.do(cmdRelease{holds, rs})
	}
}

// counted reports whether an attempt was counted that has not begun: by the
// claim of a due workflow, or by this worker's own last transition.
func (h *hold) counted() bool { return h.due || h.run != nil }

func (r *reactor) released(ev evReleased) {
	if !r.current(ev.id) {
		return
	}
	if ev.err != nil { // leaving gives them back, or else they are found when reconciling
		r.log(true, "cannot release", "workflows", len(ev.holds), "error", ev.err)
	}
	for _, h := range ev.holds {
		if r.holds[h.id] == h {
			r.part(h)
		}
	}
}
