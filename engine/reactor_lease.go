package engine

import (
	"maps"
	"slices"

	"github.com/pawlhq/pawl/store"
)

// The lease. A worker is alive while nobody has buried it; that is decided in
// the database alone. This file keeps the worker's own, more careful count: it
// stops its bodies before anybody can have buried it.

// begin is called once, before any event.
func (r *reactor) begin() { r.join() }

func (r *reactor) join() {
	r.life, r.me = unborn, store.WorkerID{}
	r.do(cmdJoin{})
}

func (r *reactor) joined(ev evJoined) {
	if r.life != unborn {
		return
	}
	if ev.err != nil {
		r.log(true, "cannot join", "error", ev.err)
		r.after(r.cfg.poll, func() {
			if r.life == unborn && !r.drain.on {
				r.do(cmdJoin{})
			}
		})
		return
	}
	r.me, r.life, r.renewing, r.late = ev.id, alive, false, false
	r.leaseEnd = ev.sentAt + r.cfg.lease - r.cfg.margin
	r.nextRenew = ev.sentAt + r.cfg.lease/3
	r.claimNext = true
	r.setRenewal()
	r.setPoll()
	r.setClean(r.cfg.clean)
	r.sweep()
	r.schedule()
	r.log(false, "worker joined", "worker", r.me.String())
}

// setRenewal sees to the next renewal.
func (r *reactor) setRenewal() {
	me := r.me
	r.after(max(r.nextRenew-r.now, 0), func() {
		if r.current(me) && !r.renewing && r.life != unborn {
			r.renewing = true
			r.do(cmdRenew{})
		}
	})
}

func (r *reactor) renewed(ev evRenewed) {
	if !r.current(ev.id) {
		return
	}
	r.renewing = false
	switch {
	case ev.err != nil:
		r.late = true
		r.log(true, "cannot renew the lease", "error", ev.err)
		r.nextRenew = r.now + r.cfg.lease/10
		r.setRenewal()
	case !ev.alive:
		r.buried()
	default:
		r.late = r.now-ev.sentAt > r.cfg.lease/3
		r.leaseEnd = ev.sentAt + r.cfg.lease - r.cfg.margin
		r.nextRenew = ev.sentAt + r.cfg.lease/3
		if r.life == fenced && r.leaseEnd > r.now {
			r.log(false, "lease renewed in time, nobody had taken over", "worker", r.me.String())
			r.life, r.claimNext = alive, true
		}
		r.setRenewal()
		r.do(cmdOwned{})
	}
}

// checkLease stops all bodies once the lease may be about to end. Their results
// so far are kept: a renewal that still succeeds proves that nobody has taken
// over.
func (r *reactor) checkLease() {
	if r.life != alive || r.now < r.leaseEnd {
		return
	}
	r.life = fenced
	r.log(true, "lease not renewed in time, stopping bodies", "worker", r.me.String(), "error", ErrLeaseLost)
	r.interruptAll(ErrLeaseLost)
}

// buried forgets everything: whatever was held belongs to others now.
func (r *reactor) buried() {
	r.log(true, "worker was buried by another, beginning anew", "worker", r.me.String(), "held", len(r.holds), "error", ErrLeaseLost)
	r.interruptAll(ErrLeaseLost)
	r.forget()
	if r.drain.on {
		r.life = gone
		r.do(cmdStop{})
		return
	}
	r.join()
}

func (r *reactor) forget() {
	r.holds = map[string]*hold{}
	r.strangers = map[string]bool{}
	r.ready, r.queue, r.batches, r.alone = nil, nil, nil, nil
	r.working, r.committing, r.starting = 0, 0, 0
	r.claiming, r.mailing, r.mailNext, r.polling = false, false, false, false
}

// interruptAll cancels the bodies that are running, in the order of their ids.
func (r *reactor) interruptAll(cause error) {
	for _, id := range slices.Sorted(maps.Keys(r.holds)) {
		if r.holds[id].phase == holdWorking {
			r.do(cmdInterrupt{id, cause})
		}
	}
}
