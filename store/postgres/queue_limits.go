package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// setQueueSQL creates a queue or changes its limits. A rate that was there before
// keeps what is left of its tokens; a new one begins with a full bucket.
const setQueueSQL = `
INSERT INTO {schema}.queue AS q (name, concurrency, per_worker, per_key, rate, period_us, burst)
VALUES ($1, nullif($2::int, 0), nullif($3::int, 0), nullif($4::int, 0), nullif($5::int, 0), nullif($6::bigint, 0), nullif($7::int, 0))
ON CONFLICT (name) DO UPDATE
SET    concurrency = excluded.concurrency, per_worker = excluded.per_worker, per_key = excluded.per_key,
       rate = excluded.rate, period_us = excluded.period_us, burst = excluded.burst,
       tokens = CASE WHEN excluded.rate IS NOT NULL AND q.rate IS NOT NULL THEN ` + tokensNow + ` END,
       filled_at = CASE WHEN excluded.rate IS NOT NULL AND q.rate IS NOT NULL THEN statement_timestamp() END`

// pauseQueueSQL pauses a queue, or ends its pause.
const pauseQueueSQL = `
UPDATE {schema}.queue AS q
SET    paused_at = CASE WHEN $2 THEN coalesce(q.paused_at, statement_timestamp()) END,
       note      = CASE WHEN $2 THEN nullif($3, '') END
WHERE  q.name = $1
RETURNING 1`

// queuesSQL tells how all queues stand, over $1 buckets.
const queuesSQL = `
SELECT q.name, coalesce(q.concurrency, 0), coalesce(q.per_worker, 0), coalesce(q.per_key, 0),
       coalesce(q.rate, 0), coalesce(q.period_us, 0), coalesce(q.burst, 0), q.paused_at, coalesce(q.note, ''),
       r.n, l.due, l.later, l.oldest
FROM   {schema}.queue AS q
       CROSS JOIN LATERAL (
           SELECT count(*) AS n
           FROM   generate_series(0, $1::int - 1) AS b(bucket)
                  JOIN {schema}.workflow AS w
                  ON w.bucket = b.bucket AND w.queue = q.name AND w.owner IS NOT NULL
       ) AS r
       CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE w.wake_at <= statement_timestamp()) AS due,
                  count(*) FILTER (WHERE w.wake_at > statement_timestamp()) AS later,
                  min(w.wake_at) FILTER (WHERE w.wake_at <= statement_timestamp()) AS oldest
           FROM   generate_series(0, $1::int - 1) AS b(bucket)
                  JOIN {schema}.workflow AS w
                  ON w.bucket = b.bucket AND w.queue = q.name AND w.owner IS NULL AND w.wake_at IS NOT NULL
       ) AS l
ORDER  BY q.name`

// SetQueue creates a queue or changes its limits.
func (s *Store) SetQueue(ctx context.Context, q store.Queue) error {
	return s.write(ctx, fmt.Sprintf("set queue %q", q.Name), statement{
		sql:  s.sql.setQueue,
		args: []any{q.Name, q.Concurrency, q.PerWorker, q.PerKey, q.Rate, q.Period.Microseconds(), q.Burst},
	})
}

// PauseQueue stops claims of a queue.
func (s *Store) PauseQueue(ctx context.Context, name, note string) error {
	return s.setPause(ctx, "pause", name, true, note)
}

// ResumeQueue lets claims of a queue go on.
func (s *Store) ResumeQueue(ctx context.Context, name string) error {
	return s.setPause(ctx, "resume", name, false, "")
}

func (s *Store) setPause(ctx context.Context, verb, name string, paused bool, note string) error {
	what, found := fmt.Sprintf("%s queue %q", verb, name), false
	err := s.write(ctx, what, statement{
		sql: s.sql.pauseQueue, args: []any{name, paused, text(note)},
		read: func(pgx.Rows) error { found = true; return nil },
	})
	if err == nil && !found {
		return fmt.Errorf("%s: %w", what, store.ErrQueueNotFound)
	}
	return err
}

// Queues returns how all queues stand.
func (s *Store) Queues(ctx context.Context) ([]store.QueueState, error) {
	const what = "list queues"
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	var all []store.QueueState
	err = s.look(ctx, what, statement{sql: s.sql.queues, args: []any{buckets}, read: scan(&all, scanQueue)})
	return all, err
}

// scanQueue reads the columns of queuesSQL.
func scanQueue(rows pgx.Rows, q *store.QueueState) error {
	var (
		period         int64
		paused, oldest pgtype.Timestamptz
	)
	err := rows.Scan(&q.Name, &q.Concurrency, &q.PerWorker, &q.PerKey, &q.Rate, &period, &q.Burst, &paused, &q.Note,
		&q.Running, &q.Waiting, &q.Later, &oldest)
	q.Period, q.PausedAt, q.Oldest = time.Duration(period)*time.Microsecond, instant(paused), instant(oldest)
	return err
}
