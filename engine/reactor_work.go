package engine

import (
	"slices"

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

// sendWork starts what is ready, in order. While a suspect is ready nothing
// else is started, so that it comes to be alone; but for at most one lease,
// since a neighbour's body may run for hours.
func (r *reactor) sendWork() {
	if r.life != alive {
		return
	}
	if r.drain.on {
		r.releaseReady()
		return
	}
	if r.working > 0 && r.soloRuns() {
		return
	}
	if i := slices.IndexFunc(r.ready, (*hold).suspect); i >= 0 {
		h := r.ready[i]
		if r.working == 0 || r.now-h.since >= r.cfg.lease {
			r.ready = slices.Delete(r.ready, i, i+1)
			r.work(h)
		} else {
			r.after(h.since+r.cfg.lease-r.now, func() {})
		}
		return
	}
	for _, h := range r.ready {
		r.work(h)
	}
	r.ready = r.ready[:0]
}

// soloRuns reports whether a suspect's body is running.
func (r *reactor) soloRuns() bool {
	for _, h := range r.holds {
		if h.phase == holdWorking && h.suspect() {
			return true
		}
	}
	return false
}

func (r *reactor) work(h *hold) {
	h.phase = holdWorking
	r.working++
	r.do(cmdWork{job{
		id: h.id, def: h.def, rev: h.rev, cursor: h.cursor,
		run: h.run, due: h.due, wakeAt: h.wakeAt, inbox: h.inbox, unseen: h.unseen(), refused: h.refused,
	}})
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

// part lets go of a workflow that is no longer owned.
func (r *reactor) part(h *hold) {
	delete(r.holds, h.id)
	if r.room() == 1 { // the first free place: whatever was left behind can come
		r.claimNext = true
	}
}

// releaseReady gives back what has not begun.
func (r *reactor) releaseReady() {
	if len(r.ready) == 0 {
		return
	}
	holds := r.ready
	r.ready = nil
	rs := make([]store.Released, len(holds))
	for i, h := range holds {
		h.phase = holdReleasing
		rs[i] = store.Released{Guard: store.Guard{ID: h.id, Revision: h.rev}}
	}
	r.do(cmdRelease{holds, rs})
}

func (r *reactor) released(ev evReleased) {
	if !r.current(ev.id) {
		return
	}
	if ev.err != nil { // leaving gives them back in any case
		r.log(true, "cannot release", "workflows", len(ev.holds), "error", ev.err)
	}
	for _, h := range ev.holds {
		if r.holds[h.id] == h {
			delete(r.holds, h.id)
		}
	}
}
