package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const setQueue = `
	INSERT INTO queue (name, concurrency, per_worker, per_key, rate, period_us, burst)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
	ON CONFLICT (name) DO UPDATE SET
		concurrency = excluded.concurrency, per_worker = excluded.per_worker, per_key = excluded.per_key,
		rate = excluded.rate, period_us = excluded.period_us, burst = excluded.burst,
		tokens = ?8, filled_at = ?9`

// SetQueue creates a queue or changes its limits. A rate that was there before keeps
// what is left of its tokens; a new one begins with a full bucket.
func (s *Store) SetQueue(ctx context.Context, q store.Queue) error {
	return s.write(ctx, fmt.Sprintf("set queue %q", q.Name), func(tx *writeTx) error {
		var tokens, filled any
		rows, err := collectRows(ctx, tx.query, scanQueueRow, selectQueueRow, q.Name)
		if err != nil {
			return err
		}
		if len(rows) > 0 && rows[0].Rate > 0 && q.Rate > 0 {
			tokens, filled = min(rows[0].at(tx.now), float64(q.Burst)), tx.now
		}
		_, err = tx.exec(ctx, setQueue, q.Name, null(q.Concurrency), null(q.PerWorker), null(q.PerKey),
			null(q.Rate), null(q.Period.Microseconds()), null(q.Burst), tokens, filled)
		return err
	})
}

const pauseQueue = `UPDATE queue SET paused_at = coalesce(paused_at, ?2), note = ?3 WHERE name = ?1`

const resumeQueue = `UPDATE queue SET paused_at = NULL, note = NULL WHERE name = ?1`

// PauseQueue stops claims of a queue.
func (s *Store) PauseQueue(ctx context.Context, name, note string) error {
	return s.changeQueue(ctx, "pause", name, func(tx *writeTx) (int64, error) {
		return tx.exec(ctx, pauseQueue, name, tx.now, null(note))
	})
}

// ResumeQueue lets claims of a queue go on.
func (s *Store) ResumeQueue(ctx context.Context, name string) error {
	return s.changeQueue(ctx, "resume", name, func(tx *writeTx) (int64, error) { return tx.exec(ctx, resumeQueue, name) })
}

func (s *Store) changeQueue(ctx context.Context, verb, name string, change func(*writeTx) (int64, error)) error {
	return s.write(ctx, fmt.Sprintf("%s queue %q", verb, name), func(tx *writeTx) error {
		n, err := change(tx)
		if err == nil && n == 0 {
			return store.ErrQueueNotFound
		}
		return err
	})
}

const selectQueues = `
	SELECT ` + queueColumns + `,
		(SELECT count(*) FROM workflow AS w WHERE w.queue = q.name AND w.owner IS NOT NULL),
		(SELECT count(*) FROM workflow AS w WHERE w.queue = q.name AND w.owner IS NULL AND w.wake_at IS NOT NULL AND w.wake_at <= ?1),
		(SELECT count(*) FROM workflow AS w WHERE w.queue = q.name AND w.owner IS NULL AND w.wake_at IS NOT NULL AND w.wake_at > ?1),
		(SELECT min(w.wake_at) FROM workflow AS w WHERE w.queue = q.name AND w.owner IS NULL AND w.wake_at IS NOT NULL AND w.wake_at <= ?1)
	FROM queue AS q
	ORDER BY q.name`

// Queues returns how all queues stand.
func (s *Store) Queues(ctx context.Context) (all []store.QueueState, err error) {
	err = s.read(ctx, "list queues", func(query querier) error {
		all, err = collectRows(ctx, query, func(scan func(...any) error) (q store.QueueState, err error) {
			var oldest sql.NullInt64
			q.Queue, err = scanQueue(scan, &q.Running, &q.Waiting, &q.Later, &oldest)
			q.Oldest = timeOrZero(oldest)
			return q, err
		}, selectQueues, s.clock())
		return err
	})
	return all, err
}
