package engine

import (
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Cleaning up: a slow round of its own. One worker does it at a time, by a lease in
// the database; one that dies between two batches is followed by another.

// setClean sees to the next round, if there is anything to clean.
func (r *reactor) setClean(after time.Duration) {
	if r.cfg.clean <= 0 {
		return
	}
	r.cleanSeq++
	me, mine := r.me, r.cleanSeq
	r.after(after, func() {
		if !r.current(me) || mine != r.cleanSeq {
			return
		}
		if !r.open() {
			r.setClean(r.cfg.clean)
			return
		}
		r.do(cmdClean{})
	})
}

func (r *reactor) cleaned(ev evCleaned) {
	if !r.current(ev.id) {
		return
	}
	if ev.err != nil && !errors.Is(ev.err, store.ErrRetry) {
		r.log(true, "cannot clean up", "error", ev.err)
	}
	if n := ev.round.expired + ev.round.forgotten; n > 0 {
		r.log(false, "cleaned up", "expired", ev.round.expired, "forgotten", ev.round.forgotten)
	}
	after := r.cfg.clean
	if ev.err == nil && ev.round.more {
		after = 0
	}
	r.setClean(after)
}
