package engine

import (
	"context"
	"time"

	"github.com/pawlhq/pawl/store"
)

// callTimeout bounds one call to the store, so that a connection that has gone
// silent is given up. It never exceeds the lease: a renewal that takes longer
// is of no use.
func (s *shell) callTimeout() time.Duration { return min(s.eng.cfg.Lease, 10*time.Second) }

// carryOut begins what a command asks for and returns at once.
func (s *shell) carryOut(cmd command) {
	switch cmd := cmd.(type) {
	case cmdJoin:
		s.call(s.join)
	case cmdRenew:
		s.call(s.renew)
	case cmdClaim:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			rows, err := s.store.Claim(ctx, me, s.defs, cmd.limit)
			return evClaimed{me, cmd.limit, rows, err}
		})
	case cmdClaimQueued:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			claim, err := s.store.ClaimQueued(ctx, me, s.defs, cmd.limit)
			return evQueued{me, cmd.limit, claim, err}
		})
	case cmdLoad:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			rows, err := s.store.Load(ctx, me, cmd.ids)
			return evLoaded{me, rows, err}
		})
	case cmdMail:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			msgs, err := s.store.Mail(ctx, me)
			return evMail{me, msgs, err}
		})
	case cmdSweep:
		s.call(s.sweep)
	case cmdSchedule:
		s.call(func(ctx context.Context, _ store.WorkerID) event {
			round, err := s.eng.runSchedules(ctx)
			return evScheduled{round, err}
		})
	case cmdOwned:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			pos, err := s.store.Owned(ctx, me)
			return evOwned{me, pos, err}
		})
	case cmdStart:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			results, err := s.store.Start(ctx, rowsOf(cmd.reqs))
			return evStarted{me, cmd.reqs, results, err}
		})
	case cmdCommit:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			verdicts, err := s.store.Commit(ctx, me, cmd.ts)
			return evCommitted{me, cmd.batch, verdicts, err}
		})
	case cmdReadBack:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			pos, err := s.store.ReadBack(ctx, idsOf(cmd.holds))
			return evReadBack{me, cmd.holds, pos, err}
		})
	case cmdRelease:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			return evReleased{me, cmd.holds, s.store.Release(ctx, me, cmd.rs)}
		})
	case cmdClean:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			round, err := s.eng.clean(ctx, me, 2*s.eng.cfg.Clean+s.callTimeout())
			return evCleaned{me, round, err}
		})
	case cmdLeave:
		s.call(func(ctx context.Context, me store.WorkerID) event {
			_, err := s.store.Leave(ctx, me)
			s.eng.hints.tell(store.TopicReady)
			return evLeft{err}
		})
	default:
		s.carryOutHere(cmd)
	}
}

// carryOutHere is for commands that need neither the store nor an answer.
func (s *shell) carryOutHere(cmd command) {
	switch cmd := cmd.(type) {
	case cmdWork:
		s.begin(cmd.job)
	case cmdInterrupt:
		s.bodies.interrupt(cmd.id, cmd.cause)
	case cmdReply:
		cmd.req.reply <- cmd.reply
	case cmdHint:
		s.eng.hints.tell(cmd.topic)
	case cmdTell:
		if s.eng.cfg.OnStep != nil {
			select {
			case s.told <- cmd.events:
			default:
			}
		}
	case cmdLog:
		if cmd.warn {
			s.log.Warn(cmd.msg, cmd.args...)
		} else {
			s.log.Info(cmd.msg, cmd.args...)
		}
	}
}

// call makes a store call in a goroutine of its own and sends its answer.
func (s *shell) call(fn func(context.Context, store.WorkerID) event) {
	me := s.self()
	go func() {
		ctx, cancel := context.WithTimeout(s.work, s.callTimeout())
		defer cancel()
		s.send(fn(ctx, me))
	}()
}

func (s *shell) join(ctx context.Context, _ store.WorkerID) event {
	w, sentAt := s.worker(), s.now()
	err := s.store.Join(ctx, w, s.eng.cfg.Lease)
	if err == nil {
		s.setSelf(w.ID)
	}
	return evJoined{w.ID, sentAt, err}
}

func (s *shell) renew(ctx context.Context, me store.WorkerID) event {
	ctx, cancel := context.WithTimeout(ctx, s.eng.cfg.Lease/3)
	defer cancel()
	sentAt := s.now()
	alive, err := s.store.Renew(ctx, me, s.eng.cfg.Lease)
	return evRenewed{me, sentAt, alive, err}
}

func (s *shell) sweep(ctx context.Context, _ store.WorkerID) event {
	buried, err := s.store.Bury(ctx)
	if err != nil {
		return evSwept{err: err}
	}
	n, err := s.store.Takeover(ctx, s.eng.cfg.Poll, sweepBatch)
	return evSwept{len(buried), n, err}
}

// self is the id of the incarnation that commands are carried out for.
func (s *shell) self() store.WorkerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.me
}

func (s *shell) setSelf(id store.WorkerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.me = id
}

func rowsOf(reqs []*startRequest) []store.New {
	rows := make([]store.New, len(reqs))
	for i, q := range reqs {
		rows[i] = q.n.ownedBy(q.owner)
	}
	return rows
}

func idsOf(holds []*hold) []string {
	ids := make([]string, len(holds))
	for i, h := range holds {
		ids[i] = h.id
	}
	return ids
}
