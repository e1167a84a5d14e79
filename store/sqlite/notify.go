package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/store"
)

// A listener looks often whether the file has changed while it does change,
// and less often once it has been quiet for a while: a look costs little, but
// waking up for it is most of what an idle process does.
const (
	watchBusy  = 25 * time.Millisecond
	watchQuiet = 100 * time.Millisecond
	quietAfter = time.Second
)

// Notify wakes the listeners of this process. Those of other processes see by
// themselves that the file has changed.
func (s *Store) Notify(_ context.Context, t store.Topic) error {
	s.hints.send(t)
	return nil
}

// Listen calls heard, never twice at once, for each Notify of this process,
// and for every topic when the file was changed by any process. It returns
// nil when ctx is done and an error when the store is closed.
func (s *Store) Listen(ctx context.Context, heard func(store.Topic)) error {
	local, stop := s.hints.join()
	defer stop()
	w := watcher{db: s.watch, changedAt: time.Now()}
	defer w.disconnect()
	closing := s.calls.closing()
	tick := time.NewTimer(watchBusy)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-closing:
			return fmt.Errorf("listen: %w", store.ErrClosed)
		case <-local.wake:
			local.drain(heard)
		case <-tick.C:
			if w.changed(ctx) {
				heard(store.TopicReady)
				heard(store.TopicEnded)
			}
			tick.Reset(w.pause())
		}
	}
}

// watcher sees changes by the file's change counter, as one connection of its
// own sees it.
type watcher struct {
	db   *sql.DB
	conn *sql.Conn
	look *sql.Stmt
	last int64

	changedAt time.Time // when it last saw a change
}

// pause is how long to wait before the next look.
func (w *watcher) pause() time.Duration {
	if time.Since(w.changedAt) < quietAfter {
		return watchBusy
	}
	return watchQuiet
}

// changed reports whether the file has changed since the call before. A
// failure counts as a change, and the next call connects anew.
func (w *watcher) changed(ctx context.Context) bool {
	fresh := w.conn == nil
	version, err := w.version(ctx)
	if err != nil {
		w.disconnect()
		return ctx.Err() == nil
	}
	changed := !fresh && version != w.last
	w.last = version
	if changed {
		w.changedAt = time.Now()
	}
	return changed
}

func (w *watcher) version(ctx context.Context) (v int64, err error) {
	if w.conn == nil {
		if w.conn, err = w.db.Conn(ctx); err != nil {
			w.conn = nil
			return 0, err
		}
		if w.look, err = w.conn.PrepareContext(ctx, "PRAGMA data_version"); err != nil {
			return 0, err
		}
	}
	err = w.look.QueryRowContext(ctx).Scan(&v)
	return v, err
}

func (w *watcher) disconnect() {
	if w.look != nil {
		w.look.Close() //nolint:errcheck // the connection goes with it
	}
	if w.conn != nil {
		w.conn.Close() //nolint:errcheck // nothing to save
	}
	w.conn, w.look = nil, nil
}

// fanout hands hints to the listeners of this process.
type fanout struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
}

// listener keeps the topics that it has not heard yet; one hint of each is
// enough.
type listener struct {
	wake    chan struct{}
	mu      sync.Mutex
	pending [store.TopicEnded + 1]bool
}

func (f *fanout) join() (l *listener, leave func()) {
	l = &listener{wake: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listeners == nil {
		f.listeners = make(map[*listener]struct{})
	}
	f.listeners[l] = struct{}{}
	return l, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.listeners, l)
	}
}

func (f *fanout) send(t store.Topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		l.add(t)
	}
}

func (l *listener) add(t store.Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(t) >= len(l.pending) {
		return
	}
	l.pending[t] = true
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) drain(heard func(store.Topic)) {
	l.mu.Lock()
	pending := l.pending
	clear(l.pending[:])
	l.mu.Unlock()
	for t, is := range pending {
		if is {
			heard(store.Topic(t))
		}
	}
}
