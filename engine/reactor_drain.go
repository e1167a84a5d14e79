package engine

import "time"

// Draining: the worker leaves in good order.

type drain struct {
	on      bool
	cutAt   time.Duration // when running bodies are cancelled
	leaveAt time.Duration // when it leaves regardless
	cut     bool
	leaving bool
}

func (r *reactor) beginDrain() {
	if r.drain.on {
		return
	}
	r.drain = drain{on: true, cutAt: r.now + r.cfg.drain, leaveAt: r.now + r.cfg.drain + r.cfg.cut}
	r.after(r.cfg.drain, func() {})
	r.after(r.cfg.drain+r.cfg.cut, func() {})
	r.log(false, "draining", "worker", r.me.String(), "running", r.working)
	r.reportDrain()
}

// reportDrain says once a second what the drain waits for.
func (r *reactor) reportDrain() {
	r.after(time.Second, func() {
		if !r.drain.leaving && r.life != gone {
			r.log(false, "drain waits for running steps", "running", r.working, "left", (r.drain.cutAt - r.now).Round(time.Second).String())
			r.reportDrain()
		}
	})
}

func (r *reactor) checkDrain() {
	if !r.drain.on || r.drain.leaving {
		return
	}
	if r.life == unborn {
		r.life = gone
		r.do(cmdStop{})
		return
	}
	if !r.drain.cut && r.now >= r.drain.cutAt {
		r.drain.cut = true
		r.log(true, "drain timeout is over, cancelling running steps", "running", r.working)
		r.interruptAll(ErrDraining)
	}
	idle := len(r.holds) == 0 && len(r.starts) == 0 && r.starting == 0 && r.committing == 0
	if idle || r.now >= r.drain.leaveAt {
		r.drain.leaving = true
		r.do(cmdLeave{})
	}
}
