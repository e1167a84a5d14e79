package engine

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/pawlhq/pawl/store"
)

// StartOption tunes one call of Start. It says when the workflow runs, not what it
// does: a duplicate start with other options finds the same workflow, where it
// stands.
type StartOption func(*startOptions)

type startOptions struct {
	line  store.Line
	delay time.Duration
}

// InQueue has the workflow wait in a queue for a worker, under the queue's limits
// ([Engine.SetQueue]), whenever one of its own steps is to run. A queue that nobody
// has set up is created without limits. Branches and children run outside of it.
func InQueue(name string) StartOption { return func(o *startOptions) { o.line.Queue = name } }

// QueueKey says whose workflow it is in its queue: [QueueLimits.PerKey] limits each
// key by itself. Without a key that limit does not concern it.
func QueueKey(key string) StartOption { return func(o *startOptions) { o.line.Key = key } }

// Priority has the workflow go before those of a lower one in its queue: 0, the
// default, to 100. A level is worth a minute of waiting ([store.PriorityWorth]), so
// that nobody waits for ever behind those of a higher one.
func Priority(p int) StartOption { return func(o *startOptions) { o.line.Priority = p } }

// Delay has the workflow begin that much later, in a queue or not. Its definition's
// Deadline counts from the start all the same.
func Delay(d time.Duration) StartOption { return func(o *startOptions) { o.delay = d } }

// ByQueue has the workflows of a definition wait in a queue unless their start names
// another one; see InQueue.
func ByQueue(name string) RegisterOption { return func(reg *registered) { reg.queue = name } }

// queueName is what a queue may be called.
var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// maxDelay bounds Delay.
const maxDelay = 10 * 365 * 24 * time.Hour

func checkQueueName(name string) error {
	if queueName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%w: queue %q: a name is 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', and begins with a letter or digit", ErrBadInput, cutText(name, 64))
}

// optionsOf collects the options of a start and checks them.
func optionsOf(reg *registered, opts []StartOption) (o startOptions, err error) {
	o.line.Queue = reg.queue
	for _, opt := range opts {
		opt(&o)
	}
	switch {
	case o.delay < 0 || o.delay > maxDelay:
		return o, fmt.Errorf("%w: delay %v: 0 to ten years", ErrBadInput, o.delay)
	case o.line.Queue == "" && o.line != store.Line{}:
		return o, fmt.Errorf("%w: a key or a priority is for a workflow in a queue: name one with InQueue", ErrBadInput)
	case o.line.Queue == "":
		return o, nil
	case o.line.Priority < 0 || o.line.Priority > store.MaxPriority:
		return o, fmt.Errorf("%w: priority %d: 0 to %d", ErrBadInput, o.line.Priority, store.MaxPriority)
	}
	if o.line.Key != "" {
		if err := CheckID(o.line.Key); err != nil {
			return o, fmt.Errorf("%w: queue key: %w", ErrBadInput, err)
		}
	}
	return o, checkQueueName(o.line.Queue)
}

// QueueLimits are the limits of a queue; zero limits nothing. A workflow counts
// while a worker is at work on it: not while it waits for a timer, a signal, a
// branch or a child.
type QueueLimits struct {
	Concurrency int // how many run at once, on all workers
	PerWorker   int // how many run at once on one worker
	PerKey      int // how many run at once of one QueueKey

	// Rate is how many workflows begin in a Period at most, over time. Burst is how
	// many may do so at once after a time of rest; default: Rate.
	Rate   int
	Period time.Duration // default: 1 s
	Burst  int
}

// SetQueue creates a queue or changes its limits, at once and for all workers. What
// runs already goes on. A pause stays.
func (e *Engine) SetQueue(ctx context.Context, name string, l QueueLimits) error {
	if err := checkQueueName(name); err != nil {
		return fmt.Errorf("set queue: %w", err)
	}
	if l.Rate > 0 {
		l.Period, l.Burst = or(l.Period, time.Second), or(l.Burst, l.Rate)
	}
	if err := l.check(); err != nil {
		return fmt.Errorf("set queue %q: %w", name, err)
	}
	err := retry(ctx, func() error {
		return e.store.SetQueue(ctx, store.Queue{
			Name: name, Concurrency: l.Concurrency, PerWorker: l.PerWorker, PerKey: l.PerKey,
			Rate: l.Rate, Period: l.Period, Burst: l.Burst,
		})
	})
	if err == nil {
		e.hints.tell(store.TopicReady)
	}
	return err
}

// maxLimit bounds each number of a queue's limits.
const maxLimit = 1_000_000

func (l QueueLimits) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"concurrency", l.Concurrency}, {"per worker", l.PerWorker}, {"per key", l.PerKey}, {"rate", l.Rate}, {"burst", l.Burst}} {
		if n.value < 0 || n.value > maxLimit {
			return fmt.Errorf("%w: %s %d: 0 to %d", ErrBadInput, n.name, n.value, maxLimit)
		}
	}
	switch {
	case l.Rate == 0 && (l.Period != 0 || l.Burst != 0):
		return fmt.Errorf("%w: a period or a burst is for a rate", ErrBadInput)
	case l.Rate > 0 && (l.Period < time.Millisecond || l.Period > maxDelay):
		return fmt.Errorf("%w: period %v: 1 ms to ten years", ErrBadInput, l.Period)
	}
	return nil
}

// PauseQueue stops workers from taking up anything of a queue; what runs goes on to
// its end or its next wait. ErrQueueNotFound if there is no such queue.
func (e *Engine) PauseQueue(ctx context.Context, name, actor, reason string) error {
	note := Order{Actor: or(actor, "somebody"), Reason: reason}.by()
	return retry(ctx, func() error { return e.store.PauseQueue(ctx, name, storable(note)) })
}

// ResumeQueue ends a queue's pause. ErrQueueNotFound if there is no such queue.
func (e *Engine) ResumeQueue(ctx context.Context, name string) error {
	err := retry(ctx, func() error { return e.store.ResumeQueue(ctx, name) })
	if err == nil {
		e.hints.tell(store.TopicReady)
	}
	return err
}

// Queues returns how all queues stand, by name.
func (e *Engine) Queues(ctx context.Context) ([]store.QueueState, error) {
	all, err := e.store.Queues(ctx)
	for i := range all {
		all[i].Note = shown(all[i].Note)
	}
	return all, err
}

// queueOf returns the queue that a workflow waits in.
func (e *Engine) queueOf(ctx context.Context, info Info) (q store.QueueState, err error) {
	if info.Queue == "" || !info.Owner.IsZero() || info.Status.Ended() {
		return q, nil
	}
	all, err := e.Queues(ctx)
	for _, have := range all {
		if have.Name == info.Queue {
			q = have
		}
	}
	return q, err
}
