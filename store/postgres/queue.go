package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// ensureQueuesSQL creates the queues that a start names and nobody has set up.
const ensureQueuesSQL = `
INSERT INTO {schema}.queue (name)
SELECT t.name FROM unnest($1::text[]) AS t(name) ORDER BY t.name
ON CONFLICT (name) DO NOTHING`

// tokensNow is how many workflows the rate of queue q lets begin now: what was left
// at filled_at and what has come in since, at most a full bucket.
const tokensNow = `
       least(q.burst, coalesce(q.tokens + q.rate * extract(epoch FROM statement_timestamp() - q.filled_at) * 1e6 / q.period_us, q.burst))`

// rank is by when workflow w goes: it is what the line's indexes are ordered by.
const rank = `(timezone('UTC', w.wake_at) - w.priority * interval '1 minute')`

// linedUpSQL names all queues, and since when there may be something to claim from
// each: nothing if there is not, or if it is paused.
const linedUpSQL = `
WITH bucket AS MATERIALIZED (
    SELECT b.n::smallint AS n FROM generate_series(0, $1::int - 1) AS b(n)
), mailed AS MATERIALIZED (
    SELECT w.queue, min(i.sent_at) AS since
    FROM   bucket AS b
           JOIN {schema}.inbox AS i ON i.bucket = b.n AND i.fresh AND i.consumed_at IS NULL
           CROSS JOIN LATERAL (
               SELECT w.queue
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = b.n AND w.id = i.workflow_id
               AND    w.queue IS NOT NULL AND w.owner IS NULL AND w.ended_at IS NULL
               OFFSET 0
           ) AS w
    GROUP  BY w.queue
)
SELECT q.name,
       CASE WHEN q.paused_at IS NULL THEN least(l.since, m.since) END
FROM   {schema}.queue AS q
       LEFT JOIN mailed AS m ON m.queue = q.name
       CROSS JOIN LATERAL (
           SELECT min(w.wake_at) AS since
           FROM   bucket AS b
                  CROSS JOIN unnest('{t,f}'::bool[]) AS c(begun)
                  CROSS JOIN LATERAL (
                      SELECT w.wake_at
                      FROM   {schema}.workflow AS w
                      WHERE  w.bucket = b.n AND w.queue = q.name AND w.begun = c.begun
                      AND    w.owner IS NULL AND w.wake_at <= statement_timestamp()
                      ORDER  BY w.bucket, w.queue, w.begun, ` + rank + `
                      LIMIT  1
                  ) AS w
       ) AS l`

// lockQueueSQL has the claims of a queue come one after the other: the statement
// after it counts what they have taken.
const lockQueueSQL = `
SELECT 1
FROM   {schema}.queue AS q
WHERE  q.name = $1
FOR    NO KEY UPDATE`

// claimQueuedSQL makes worker $2 the owner of what goes next in queue $1.
//
// slot counts what has a slot; room is what is left for this claim. line holds the
// head of the queue, which is as long as the claim at most: those that have begun
// and those that have not, each in the order of an index. Where keys are limited it
// holds the head of each key's own line: key walks the index from one key to the
// next, so it costs as much as there are keys that wait, whoever stands before them.
// chosen numbers them to let in as many as the keys and the rate allow.
const claimQueuedSQL = `
WITH RECURSIVE bucket AS MATERIALIZED (
    SELECT b.n::smallint AS n FROM generate_series(0, $6::int - 1) AS b(n)
), def AS MATERIALIZED (
    SELECT d.name, d.version FROM unnest($3::text[], $4::int[]) AS d(name, version)
), q AS MATERIALIZED (
    SELECT q.*, floor(` + tokensNow + `)::bigint AS fits
    FROM   {schema}.queue AS q
    WHERE  q.name = $1 AND q.paused_at IS NULL
    AND    EXISTS (SELECT FROM {schema}.worker AS k WHERE k.id = $2 AND k.dead_at IS NULL)
), slot AS MATERIALIZED (
    SELECT w.queue_key, w.owner
    FROM   bucket AS b
           CROSS JOIN LATERAL (
               SELECT w.queue_key, w.owner
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = b.n AND w.queue = $1 AND w.owner IS NOT NULL
               ORDER  BY w.bucket, w.queue, w.queue_key
               OFFSET 0
           ) AS w
), room AS MATERIALIZED (
    SELECT q.per_key, q.fits,
           greatest(0, least($5::bigint,
               q.concurrency - (SELECT count(*) FROM slot),
               q.per_worker - (SELECT count(*) FROM slot AS s WHERE s.owner = $2))) AS n
    FROM   q
), key AS (
    SELECT ''::text COLLATE "C" AS name FROM room AS r WHERE r.per_key IS NOT NULL AND r.n > 0
    UNION ALL
    SELECT n.name
    FROM   key AS k
           CROSS JOIN LATERAL (
               SELECT min(f.queue_key) AS name
               FROM   bucket AS b
                      CROSS JOIN LATERAL (
                          SELECT w.queue_key
                          FROM   {schema}.workflow AS w
                          WHERE  w.bucket = b.n AND w.queue = $1 AND w.queue_key > k.name
                          AND    w.owner IS NULL AND w.wake_at IS NOT NULL
                          ORDER  BY w.bucket, w.queue, w.queue_key
                          LIMIT  1
                      ) AS f
           ) AS n
    WHERE  n.name IS NOT NULL
), line AS (
    SELECT w.bucket, w.id, w.begun, w.queue_key, w.rank
    FROM   room AS r
           CROSS JOIN bucket AS b
           CROSS JOIN unnest('{t,f}'::bool[]) AS c(begun)
           CROSS JOIN LATERAL (
               SELECT w.bucket, w.id, w.begun, w.queue_key, ` + rank + ` AS rank
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = b.n AND w.queue = $1 AND w.begun = c.begun
               AND    w.owner IS NULL AND w.wake_at <= statement_timestamp()
               AND    EXISTS (SELECT FROM def AS d WHERE d.name = w.definition AND d.version = w.version)
               ORDER  BY w.bucket, w.queue, w.begun, ` + rank + `
               LIMIT  CASE WHEN c.begun THEN r.n ELSE least(r.n, r.fits) END
           ) AS w
    WHERE  r.per_key IS NULL
    UNION ALL
    SELECT w.bucket, w.id, w.begun, w.queue_key, w.rank
    FROM   room AS r
           CROSS JOIN key AS k
           CROSS JOIN bucket AS b
           CROSS JOIN unnest('{t,f}'::bool[]) AS c(begun)
           CROSS JOIN LATERAL (
               SELECT w.bucket, w.id, w.begun, w.queue_key, ` + rank + ` AS rank
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = b.n AND w.queue = $1 AND w.queue_key = k.name AND w.begun = c.begun
               AND    w.owner IS NULL AND w.wake_at <= statement_timestamp()
               AND    EXISTS (SELECT FROM def AS d WHERE d.name = w.definition AND d.version = w.version)
               ORDER  BY w.bucket, w.queue, w.queue_key, w.begun, ` + rank + `
               LIMIT  CASE WHEN k.name = '' THEN r.n ELSE least(r.n, r.per_key) END
           ) AS w
    UNION ALL
    SELECT w.bucket, w.id, true, w.queue_key, timezone('UTC', i.sent_at)
    FROM   bucket AS b
           JOIN {schema}.inbox AS i ON i.bucket = b.n AND i.fresh AND i.consumed_at IS NULL
           CROSS JOIN LATERAL (
               SELECT w.bucket, w.id, w.queue_key
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = b.n AND w.id = i.workflow_id AND w.queue = $1
               AND    w.owner IS NULL AND w.ended_at IS NULL AND (w.begun OR w.status <> 'PENDING')
               AND    EXISTS (SELECT FROM def AS d WHERE d.name = w.definition AND d.version = w.version)
               OFFSET 0
           ) AS w
), once AS (
    SELECT l.bucket, l.id, bool_or(l.begun) AS begun, l.queue_key, min(l.rank) AS rank
    FROM   line AS l
    GROUP  BY l.bucket, l.id, l.queue_key
), bykey AS (
    SELECT o.*, row_number() OVER (PARTITION BY o.queue_key ORDER BY o.begun DESC, o.rank, o.id) AS nth
    FROM   once AS o
), allowed AS (
    SELECT k.bucket, k.id, k.begun, k.rank,
           row_number() OVER (PARTITION BY k.begun ORDER BY k.rank, k.id) AS nth
    FROM   bykey AS k CROSS JOIN room AS r
    WHERE  r.per_key IS NULL OR k.queue_key = ''
    OR     k.nth <= r.per_key - (SELECT count(*) FROM slot AS s WHERE s.queue_key = k.queue_key)
), chosen AS MATERIALIZED (
    SELECT a.bucket, a.id, a.begun, a.rank
    FROM   allowed AS a CROSS JOIN room AS r
    WHERE  a.begun OR r.fits IS NULL OR a.nth <= r.fits
    ORDER  BY a.begun DESC, a.rank, a.id
    LIMIT  (SELECT r.n FROM room AS r)
), claimed AS (
    UPDATE {schema}.workflow AS w
    SET    owner      = $2,
           revision   = w.revision + 1,
           updated_at = statement_timestamp(),
           begun      = true,
           attempt    = CASE WHEN w.step IS NOT NULL AND w.wake_at <= statement_timestamp()
                             THEN w.attempt + 1 ELSE w.attempt END,
           status     = CASE WHEN w.step IS NOT NULL AND w.wake_at <= statement_timestamp() AND w.status = 'WAITING'
                             THEN 'PENDING' ELSE w.status END
    FROM   chosen AS c
    WHERE  w.bucket = c.bucket AND w.id = c.id AND w.owner IS NULL AND w.ended_at IS NULL
    RETURNING w.*, c.begun AS begun_before, c.rank
), paid AS (
    UPDATE {schema}.queue AS q
    SET    tokens    = ` + tokensNow + ` - (SELECT count(*) FROM claimed AS c WHERE NOT c.begun_before),
           filled_at = statement_timestamp()
    WHERE  q.name = $1 AND q.rate IS NOT NULL AND EXISTS (SELECT FROM q)
)
SELECT ` + workflowColumns + `, ` + claimedColumns + `
FROM   claimed AS w
       CROSS JOIN LATERAL (
           SELECT array_agg(i.message_id ORDER BY i.sent_at, i.message_id) AS ids,
                  array_agg(i.kind       ORDER BY i.sent_at, i.message_id) AS kinds,
                  array_agg(i.name       ORDER BY i.sent_at, i.message_id) AS names,
                  array_agg(i.payload    ORDER BY i.sent_at, i.message_id) AS payloads,
                  array_agg(i.sent_at    ORDER BY i.sent_at, i.message_id) AS sent_ats
           FROM   {schema}.inbox AS i
           WHERE  i.bucket = w.bucket AND i.workflow_id = w.id AND i.consumed_at IS NULL
       ) AS m
ORDER  BY w.begun_before DESC, w.rank, w.id`

// nextTokenSQL tells in how many microseconds the rate of a queue lets the next one
// begin; nothing if it would now.
const nextTokenSQL = `
SELECT ceil((1 - q.tokens) * q.period_us / q.rate)::bigint
FROM   {schema}.queue AS q
WHERE  q.name = $1 AND q.rate IS NOT NULL AND q.tokens < 1`

// ClaimQueued claims from the queues that have something to claim, those first
// whose head has waited longest, each in a transaction of its own: the first
// statement locks the queue, the next counts and claims.
func (s *Store) ClaimQueued(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) (store.QueueClaim, error) {
	var claim store.QueueClaim
	if len(defs) == 0 || limit <= 0 {
		return claim, nil
	}
	const what = "claim from queues"
	buckets, err := s.buckets(ctx)
	if err != nil {
		return claim, fmt.Errorf("%s: %w", what, err)
	}
	queues, some, err := s.linedUp(ctx, what, buckets)
	claim.Any = some
	if err != nil {
		return claim, err
	}
	names, versions := make([]string, len(defs)), make([]int32, len(defs))
	for i, d := range defs {
		names[i], versions[i] = d.Name, int32(d.Version)
	}
	for _, q := range queues {
		left := limit - len(claim.Rows)
		if left <= 0 {
			break
		}
		before := len(claim.Rows)
		err := s.write(ctx, fmt.Sprintf("claim from queue %q", q),
			statement{sql: s.sql.lockQueue, args: []any{q}},
			statement{sql: s.sql.claimQueued, args: []any{q, uuid(w), names, versions, left, buckets}, read: scan(&claim.Rows, scanClaimed)},
			statement{sql: s.sql.nextToken, args: []any{q}, read: func(rows pgx.Rows) error {
				var us int64
				err := rows.Scan(&us)
				claim.Next = sooner(claim.Next, time.Duration(us)*time.Microsecond)
				return err
			}})
		if err != nil {
			// What was claimed from the queues before is the worker's all the same.
			claim.Rows = claim.Rows[:before]
			if before > 0 {
				return claim, nil
			}
			return claim, err
		}
	}
	return claim, nil
}

// linedUp returns the queues that there may be something to claim from, and whether
// there are queues at all.
func (s *Store) linedUp(ctx context.Context, what string, buckets int) (names []string, some bool, err error) {
	type head struct {
		name  string
		since time.Time
	}
	var heads []head
	err = s.look(ctx, what, statement{sql: s.sql.linedUp, args: []any{buckets}, read: func(rows pgx.Rows) error {
		var (
			name  string
			since pgtype.Timestamptz
		)
		some = true
		err := rows.Scan(&name, &since)
		if since.Valid {
			heads = append(heads, head{name, since.Time})
		}
		return err
	}})
	slices.SortFunc(heads, func(a, b head) int { return a.since.Compare(b.since) })
	for _, h := range heads {
		names = append(names, h.name)
	}
	return names, some, err
}

// sooner returns the shorter of two durations, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// queuesOf returns the names of the queues that new workflows stand in, each once.
func queuesOf(news []store.New) []string {
	var names []string
	for i := range news {
		if q := news[i].Queue; q != "" && !slices.Contains(names, q) {
			names = append(names, q)
		}
	}
	return names
}
