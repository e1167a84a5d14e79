package engine

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// errNotWorking says that the worker of this process cannot take a start.
var errNotWorking = errors.New("worker has stopped")

// shell carries out what the reactor decides: with goroutines, the store and
// the clock. It makes no decision of its own.
type shell struct {
	eng   *Engine
	store store.Store
	log   *slog.Logger
	defs  []store.Def
	began time.Time

	events chan event
	hinted chan struct{} // holds one: somebody has told of new work or mail
	done   chan struct{} // closed when the loop has ended

	work   context.Context // for store calls and bodies; ends with the loop
	stop   context.CancelFunc
	bodies bodies
	told   chan []StepEvent

	mu sync.Mutex
	me store.WorkerID
}

func newShell(e *Engine, defs []store.Def) *shell {
	ctx, stop := context.WithCancel(context.Background())
	return &shell{
		eng: e, store: e.store, log: e.log, defs: defs, began: time.Now(),
		events: make(chan event, 1024), hinted: make(chan struct{}, 1), done: make(chan struct{}),
		work: ctx, stop: stop, bodies: bodies{running: map[string]*running{}},
		told: make(chan []StepEvent, 4096),
	}
}

// run works until ctx is done and the drain after it has ended.
func (s *shell) run(ctx context.Context) {
	defer s.stop()
	helpers := s.beginHelpers(ctx)
	s.loop(s.reactor())
	close(s.done)
	s.stop()
	helpers.Wait()
}

func (s *shell) reactor() *reactor {
	cfg := s.eng.cfg
	clean := time.Duration(0)
	if len(s.eng.retentions()) > 0 {
		clean = cfg.Clean
	}
	return newReactor(reactorConfig{
		clean: clean, discreet: cfg.Codec != nil,
		lease: cfg.Lease, margin: cfg.Lease / 5, poll: min(cfg.Poll, cfg.Lease/3), concurrency: cfg.Concurrency,
		limits: s.store.Limits(), drain: cfg.DrainTimeout, cut: cfg.CutTimeout, spec: s.spec, deadline: s.deadline,
	})
}

// deadline is how long a workflow of a registered definition may take.
func (s *shell) deadline(d store.Def) time.Duration {
	reg, err := s.eng.lookup(d)
	if err != nil {
		return 0
	}
	return reg.machine.Deadline()
}

// spec returns a step or undo of a registered definition.
func (s *shell) spec(d store.Def, name string) (step.Spec, bool) {
	reg, err := s.eng.lookup(d)
	if err != nil {
		return step.Spec{}, false
	}
	return reg.machine.Spec(name)
}

// beginHelpers starts what feeds the loop from outside: the end of ctx, hints,
// and the teller of OnStep.
func (s *shell) beginHelpers(ctx context.Context) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
			s.send(evDrain{})
		case <-s.done:
		}
	})
	unsubscribe := s.eng.hints.subscribe(store.TopicReady, s.hint)
	wg.Go(func() { <-s.done; unsubscribe() })
	wg.Go(s.tell)
	return &wg
}

// loop is the one goroutine that owns the reactor. It takes in all events at
// hand before it asks what to do, so that they share their consequences.
func (s *shell) loop(r *reactor) {
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	r.begin()
	for {
		for _, cmd := range r.flush() {
			if _, ok := cmd.(cmdStop); ok {
				return
			}
			s.carryOut(cmd)
		}
		tick.Reset(max(r.nextTick()-s.now(), 0))
		select {
		case ev := <-s.events:
			r.handle(s.now(), ev)
		case <-s.hinted:
			r.handle(s.now(), evHint{})
		case <-tick.C:
			r.handle(s.now(), evTick{})
		}
		s.takeRest(r)
	}
}

// takeRest handles the events that are there already, within reason.
func (s *shell) takeRest(r *reactor) {
	for range cap(s.events) {
		select {
		case ev := <-s.events:
			r.handle(s.now(), ev)
		default:
			return
		}
	}
}

// now is the time of the reactor's clock.
func (s *shell) now() time.Duration { return time.Since(s.began) }

// send gives an event to the loop, unless it has ended.
func (s *shell) send(ev event) {
	select {
	case s.events <- ev:
	case <-s.done:
	}
}

// hint tells the loop to look for work and mail. It never blocks: the loop
// itself calls it, and must not wait for itself.
func (s *shell) hint() {
	select {
	case s.hinted <- struct{}{}:
	default: // it is about to look
	}
}

// start hands a start to the reactor and waits for its answer.
func (s *shell) start(ctx context.Context, n newWorkflow) (store.StartResult, error) {
	req := &startRequest{n: n, reply: make(chan startReply, 1)}
	select {
	case s.events <- evStart{req}:
	case <-s.done:
		return store.StartResult{}, errNotWorking
	case <-ctx.Done():
		return store.StartResult{}, ctx.Err()
	}
	select {
	case a := <-req.reply:
		return a.res, a.err
	case <-s.done:
		select {
		case a := <-req.reply: // the last thing that it did
			return a.res, a.err
		default:
			return store.StartResult{}, errNotWorking
		}
	case <-ctx.Done():
		return store.StartResult{}, ctx.Err()
	}
}

// worker is the row that this process joins with.
func (s *shell) worker() store.Worker {
	host, _ := os.Hostname()
	return store.Worker{ID: store.WorkerID(uuid.Must(uuid.NewV7())), Host: host, PID: os.Getpid(), Definitions: s.defs}
}

// tell calls OnStep, one batch after another.
func (s *shell) tell() {
	for {
		select {
		case events := <-s.told:
			s.tellAll(events)
		case <-s.done:
			for len(s.told) > 0 {
				s.tellAll(<-s.told)
			}
			return
		}
	}
}

func (s *shell) tellAll(events []StepEvent) {
	for _, ev := range events {
		s.eng.cfg.OnStep(ev)
	}
}
