package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// Wait returns the workflow once it has ended, however it ended, or the error
// of ctx; ErrNotFound if there is no such workflow, or no longer.
func (e *Engine) Wait(ctx context.Context, id string) (Info, error) {
	if err := CheckID(id); err != nil {
		return Info{}, err
	}
	answer, cancel := e.waits.add(id)
	defer cancel()
	select {
	case a := <-answer:
		if a.err != nil {
			return Info{}, fmt.Errorf("wait for workflow %q: %w", id, a.err)
		}
		return infoOf(a.workflow)
	case <-ctx.Done():
		return Info{}, fmt.Errorf("wait for workflow %q: %w", id, context.Cause(ctx))
	}
}

// waits answers everybody who waits for an end, with one query for all of them
// whenever there is a hint that something has ended, and at each poll.
type waits struct {
	store store.Store
	hints *hints
	poll  time.Duration

	mu      sync.Mutex
	waiting map[string][]chan waitAnswer
	kick    chan struct{}
	looking bool
}

type waitAnswer struct {
	workflow store.Workflow
	err      error
}

func newWaits(st store.Store, h *hints, poll time.Duration) *waits {
	return &waits{store: st, hints: h, poll: poll, waiting: map[string][]chan waitAnswer{}, kick: make(chan struct{}, 1)}
}

// add waits for one workflow, and sees to it that somebody looks.
func (w *waits) add(id string) (<-chan waitAnswer, func()) {
	ch := make(chan waitAnswer, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[id] = append(w.waiting[id], ch)
	if w.looking {
		w.hurry()
	} else {
		w.looking = true
		go w.look()
	}
	return ch, func() { w.remove(id, ch) }
}

func (w *waits) remove(id string, ch chan waitAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[id] = slices.DeleteFunc(w.waiting[id], func(c chan waitAnswer) bool { return c == ch })
	if len(w.waiting[id]) == 0 {
		delete(w.waiting, id)
	}
	w.hurry()
}

// hurry makes look look now.
func (w *waits) hurry() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// look asks the database until nobody waits any more.
func (w *waits) look() {
	unsubscribe := w.hints.subscribe(store.TopicEnded, w.hurry)
	defer unsubscribe()
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	for {
		ids := w.ids()
		if ids == nil {
			return
		}
		w.ask(ids)
		select {
		case <-w.kick:
		case <-poll.C:
		}
	}
}

// ids returns who is waited for, or nil once nobody is: then look must end.
func (w *waits) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.looking = false
		return nil
	}
	return slices.Sorted(maps.Keys(w.waiting))
}

func (w *waits) ask(ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for chunk := range slices.Chunk(ids, w.store.Limits().Batch) {
		ended, missing, err := w.store.Ended(ctx, chunk)
		if err != nil {
			return // the next poll asks again; each waiter's own ctx bounds it
		}
		for _, wf := range ended {
			w.answer(wf.ID, waitAnswer{workflow: wf})
		}
		for _, id := range missing {
			w.answer(id, waitAnswer{err: ErrNotFound})
		}
	}
}

func (w *waits) answer(id string, a waitAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.waiting[id] {
		ch <- a
	}
	delete(w.waiting, id)
}
