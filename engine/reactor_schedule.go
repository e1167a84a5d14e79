package engine

import (
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Schedules: when to look at them. Like all rounds this one is done by polling
// too; the time of the next slot only makes it sooner.

// schedule decides about the schedules that are due.
func (r *reactor) schedule() {
	if r.scheduling || !r.open() {
		return
	}
	r.scheduling = true
	r.do(cmdSchedule{})
}

func (r *reactor) scheduled(ev evScheduled) {
	r.scheduling = false
	if ev.err != nil && !errors.Is(ev.err, store.ErrRetry) {
		r.log(true, "cannot decide about schedules", "error", ev.err)
	}
	if ev.round.fired > 0 {
		r.claimNext = true
		r.do(cmdHint{store.TopicReady})
	}
	if ev.round.next >= 0 && ev.round.next < r.cfg.poll {
		r.scheduleAfter(max(ev.round.next, time.Millisecond))
	}
}

// scheduleAfter looks at the schedules after a while. It replaces what it was
// told before: each answer says anew what comes next.
func (r *reactor) scheduleAfter(d time.Duration) {
	r.scheduleSeq++
	mine := r.scheduleSeq
	r.after(d, func() {
		if mine == r.scheduleSeq {
			r.schedule()
		}
	})
}
