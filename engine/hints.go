package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// hintEvery bounds how often one topic is told to other processes, so that a
// busy worker's hints cost next to nothing.
const hintEvery = 10 * time.Millisecond

// hints tells and hears that there is something to look at. Everything works
// without: hints only make it sooner.
type hints struct {
	store store.Store
	log   *slog.Logger

	mu      sync.Mutex
	subs    map[int]subscriber
	next    int
	stop    context.CancelFunc // of the listener, while there are subscribers
	pending map[store.Topic]bool
}

type subscriber struct {
	topic store.Topic
	fn    func()
}

func newHints(st store.Store, log *slog.Logger) *hints {
	return &hints{store: st, log: log, subs: map[int]subscriber{}, pending: map[store.Topic]bool{}}
}

// subscribe calls fn for each hint on topic until the returned function is
// called. It listens to the database while there is a subscriber.
func (h *hints) subscribe(topic store.Topic, fn func()) (unsubscribe func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.next
	h.next++
	h.subs[id] = subscriber{topic, fn}
	if h.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		h.stop = cancel
		go h.listen(ctx)
	}
	return func() { h.unsubscribe(id) }
}

func (h *hints) unsubscribe(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, id)
	if len(h.subs) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

func (h *hints) listen(ctx context.Context) {
	err := h.store.Listen(ctx, h.heard)
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrClosed) {
		h.log.Warn("cannot listen for hints, polling instead", "error", err)
	}
}

func (h *hints) heard(topic store.Topic) {
	h.mu.Lock()
	var fns []func()
	for _, s := range h.subs {
		if s.topic == topic {
			fns = append(fns, s.fn)
		}
	}
	h.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// tell spreads a hint: at once in this process, and soon, merged with others of
// the same topic, to the rest.
func (h *hints) tell(topic store.Topic) {
	h.heard(topic)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending[topic] {
		return
	}
	h.pending[topic] = true
	time.AfterFunc(hintEvery, func() { h.publish(topic) })
}

func (h *hints) publish(topic store.Topic) {
	h.mu.Lock()
	delete(h.pending, topic)
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.store.Notify(ctx, topic); err != nil {
		h.log.Debug("cannot send a hint", "error", err)
	}
}
