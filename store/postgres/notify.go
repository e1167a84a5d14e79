package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

const (
	// keepalive is how long the listening connection may be silent before it
	// is asked whether it is still there.
	keepalive = 5 * time.Second

	// keepaliveTimeout is how long its answer may take.
	keepaliveTimeout = 5 * time.Second

	// firstBackoff and longestBackoff bound the pause before it is connected
	// again.
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 10 * time.Second
)

// topics are what a hint carries.
var topics = map[store.Topic]string{store.TopicReady: "ready", store.TopicEnded: "ended"}

// topicNamed returns the topic of a hint.
func topicNamed(payload string) (store.Topic, bool) {
	for t, name := range topics {
		if name == payload {
			return t, true
		}
	}
	return 0, false
}

// channel is where the hints of this schema go.
func (s *Store) channel() string { return "pawl:" + s.schema }

// Notify sends a hint. It is a transaction of its own: the queue of
// notifications is one for the whole server, and committing to it would make
// the commits of workflows wait for each other.
func (s *Store) Notify(ctx context.Context, t store.Topic) error {
	name, ok := topics[t]
	if !ok {
		return fmt.Errorf("notify: unknown topic %d", t)
	}
	return s.query(ctx, "notify", statement{
		sql: "SELECT pg_notify($1, $2)", args: []any{s.channel(), name},
	})
}

// Listen calls heard for each hint until ctx is done, on a connection of its
// own; it is not sent through a pooler of transactions. After each connect it
// calls heard for every topic, since hints may have been lost before. It
// returns the reason that ctx is done, or store.ErrClosed.
func (s *Store) Listen(ctx context.Context, heard func(store.Topic)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.gone:
			cancel(fmt.Errorf("listen: %w", store.ErrClosed))
		case <-ctx.Done():
		}
	}()
	pause := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		s.listenOnce(ctx, heard)
		if time.Since(began) > longestBackoff {
			pause = firstBackoff
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longestBackoff)
	}
	return context.Cause(ctx)
}

// listenOnce listens until the connection breaks or ctx is done.
func (s *Store) listenOnce(ctx context.Context, heard func(store.Topic)) {
	conn, err := pgx.ConnectConfig(ctx, s.beat.config.Copy())
	if err != nil {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return
	}
	for _, t := range []store.Topic{store.TopicReady, store.TopicEnded} {
		heard(t)
	}
	for {
		if alive := waitOnce(ctx, conn, heard); !alive {
			return
		}
	}
}

// waitOnce waits for one hint, and asks a connection that has been silent for
// long whether it is still there.
func waitOnce(ctx context.Context, conn *pgx.Conn, heard func(store.Topic)) (alive bool) {
	quiet, cancel := context.WithTimeout(ctx, keepalive)
	defer cancel()
	hint, err := conn.WaitForNotification(quiet)
	if err == nil {
		if t, ok := topicNamed(hint.Payload); ok {
			heard(t)
		}
		return true
	}
	if ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed() {
		return false
	}
	answer, cancel := context.WithTimeout(ctx, keepaliveTimeout)
	defer cancel()
	return conn.Ping(answer) == nil
}
