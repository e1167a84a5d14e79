package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// takeoverSQL frees workflows of one bucket whose owners are not among the
// living; a worker whose row is gone is dead.
//
// owners walks the index from one owner to the next: a sweep costs as much as
// there are owners, not as much as they own.
const takeoverSQL = `
WITH RECURSIVE owners AS (
   (SELECT w.owner
    FROM   {schema}.workflow AS w
    WHERE  w.bucket = $1 AND w.owner IS NOT NULL
    ORDER  BY w.bucket, w.owner
    LIMIT  1)
    UNION ALL
    SELECT n.owner
    FROM   owners AS o
           CROSS JOIN LATERAL (
               SELECT w.owner
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.owner > o.owner
               ORDER  BY w.bucket, w.owner
               LIMIT  1
           ) AS n
), dead AS (
    SELECT o.owner
    FROM   owners AS o
    WHERE  NOT EXISTS (SELECT FROM {schema}.worker AS k WHERE k.id = o.owner AND k.dead_at IS NULL)
), orphan AS (
    SELECT w.place, w.owner, w.busy, w.begun, w.crashes
    FROM   dead AS d
           CROSS JOIN LATERAL (
               SELECT w.ctid AS place, w.owner,
                      w.status IN ('PENDING', 'COMPENSATING') AS busy,
                      w.status IN ('PENDING', 'COMPENSATING') AND w.step IS NOT NULL AS begun,
                      coalesce(w.crashes, 0) + 1 AS crashes
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.owner = d.owner
               LIMIT  $2
               FOR    NO KEY UPDATE SKIP LOCKED
           ) AS w
    LIMIT $2
)
UPDATE {schema}.workflow AS w
SET    owner      = NULL,
       revision   = w.revision + 1,
       updated_at = statement_timestamp(),
       crashes    = CASE WHEN o.begun THEN o.crashes ELSE w.crashes END,
       wake_at    = CASE WHEN NOT o.busy THEN w.wake_at
                         WHEN NOT o.begun OR o.crashes <= 1 THEN statement_timestamp()
                         ELSE statement_timestamp() + interval '1 microsecond'
                              * least($3::float8 * power(2, least(o.crashes - 2, 40)), $4::float8) END
FROM   orphan AS o
WHERE  w.ctid = o.place AND w.owner IS NOT DISTINCT FROM o.owner
RETURNING 1`

// sweepSQL lets the mail of ended workflows of one bucket rest: nobody will
// look at it any more.
const sweepSQL = `
WITH late AS (
    SELECT i.ctid AS place
    FROM   {schema}.inbox AS i
           CROSS JOIN LATERAL (
               SELECT w.ended_at
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.id = i.workflow_id
               OFFSET 0
           ) AS w
    WHERE  i.bucket = $1 AND i.fresh AND i.consumed_at IS NULL AND w.ended_at IS NOT NULL
    LIMIT  $2
    FOR    NO KEY UPDATE OF i SKIP LOCKED
)
UPDATE {schema}.inbox AS i
SET    fresh = false
FROM   late AS l
WHERE  i.ctid = l.place`

// forgetSQL removes workers that have been dead for over an hour.
const forgetSQL = `
DELETE FROM {schema}.worker AS k
WHERE  k.id = ANY (ARRAY (
           SELECT d.id
           FROM   {schema}.worker AS d
           WHERE  d.dead_at < clock_timestamp() - interval '1 hour'
           FOR    UPDATE SKIP LOCKED
       ))`

// longestPause bounds the pause after a crash.
const longestPause = time.Minute

// sweepLimit is how many messages of ended workflows one sweep lets rest in a
// bucket.
const sweepLimit = 500

// Takeover frees up to limit workflows of the dead, and tidies up.
func (s *Store) Takeover(ctx context.Context, base time.Duration, limit int) (released int, err error) {
	const what = "take over workflows"
	buckets, err := s.buckets(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	for b := range buckets {
		bucket, freed := int16(b), 0
		statements := []statement{
			{
				sql: s.sql.takeover,
				args: []any{
					bucket, limit - released,
					float64(base.Microseconds()), float64(longestPause.Microseconds()),
				},
				read: func(pgx.Rows) error { freed++; return nil },
			},
			{sql: s.sql.sweep, args: []any{bucket, sweepLimit}},
		}
		if b == 0 {
			statements = append(statements, statement{sql: s.sql.forget})
		}
		if err := s.write(ctx, what, statements...); err != nil {
			return released, err
		}
		released += freed
	}
	return released, nil
}

// loadSQL reads workflows of one bucket that a worker owns, as a claim would.
const loadSQL = `
SELECT ` + workflowColumns + `, ` + claimedColumns + `
FROM   unnest($3::text[]) AS t(id)
       CROSS JOIN LATERAL (
           SELECT *
           FROM   {schema}.workflow AS f
           WHERE  f.bucket = $1 AND f.id = t.id AND f.owner IS NOT DISTINCT FROM $2::uuid
           OFFSET 0
       ) AS w
       CROSS JOIN LATERAL (` + openMailSQL + `) AS m`

// Load returns those of the workflows that w owns.
func (s *Store) Load(ctx context.Context, w store.WorkerID, ids []string) ([]store.Claimed, error) {
	if w.IsZero() {
		return nil, nil
	}
	var claimed []store.Claimed
	err := s.lookAt(ctx, naming("load", len(ids), first(ids)), ids, func(bucket int16, ids []string) statement {
		return statement{sql: s.sql.load, args: []any{bucket, uuid(w), ids}, read: scan(&claimed, scanClaimed)}
	})
	return claimed, err
}

// first returns the first id, if any.
func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}
