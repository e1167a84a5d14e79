package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// leadSQL takes a named lease that is free, has run out, or is held already.
const leadSQL = `
INSERT INTO {schema}.lease AS l (name, holder, expires_at)
VALUES ($1, $2, clock_timestamp() + $3::bigint * interval '1 microsecond')
ON CONFLICT (name) DO UPDATE
SET    holder = excluded.holder, expires_at = excluded.expires_at
WHERE  l.holder = excluded.holder OR l.expires_at <= clock_timestamp()
RETURNING 1`

// expirableSQL names what is old enough to become a tombstone, in $1 buckets: the
// first of each, and of those the first.
const expirableSQL = `
SELECT w.id
FROM   generate_series(0, $1::int - 1) AS b(bucket)
CROSS  JOIN LATERAL (
       SELECT o.id, o.ended_at
       FROM   {schema}.workflow AS o
       WHERE  o.bucket = b.bucket::smallint AND o.definition = $2 AND o.ended_at IS NOT NULL
       AND    o.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
       AND    o.status <> 'EXPIRED' AND strpos(o.id, chr(31)) = 0
       ORDER  BY o.ended_at
       LIMIT  $4
       ) AS w
ORDER  BY w.ended_at
LIMIT  $4`

// forgetOldSQL removes the tombstones that are old enough, in $1 buckets.
const forgetOldSQL = `
WITH old AS (
    SELECT f.bucket, f.id
    FROM   generate_series(0, $1::int - 1) AS b(bucket)
    CROSS  JOIN LATERAL (
           SELECT o.bucket, o.id, o.ended_at
           FROM   {schema}.workflow AS o
           WHERE  o.bucket = b.bucket::smallint AND o.definition = $2 AND o.ended_at IS NOT NULL
           AND    o.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
           AND    o.status = 'EXPIRED'
           ORDER  BY o.ended_at
           LIMIT  $4
           FOR    UPDATE SKIP LOCKED
           ) AS f
    ORDER  BY f.ended_at
    LIMIT  $4
), gone AS (
    DELETE FROM {schema}.workflow AS w
    USING  old AS f
    WHERE  w.bucket = f.bucket AND w.id = f.id AND w.status = 'EXPIRED'
    RETURNING w.bucket, w.id
), mail AS (
    DELETE FROM {schema}.inbox AS i
    USING  gone AS g
    WHERE  i.bucket = g.bucket AND i.workflow_id = g.id
)
SELECT count(*) FROM gone`

// Lead takes or lengthens a named lease.
func (s *Store) Lead(ctx context.Context, name string, w store.WorkerID, lease time.Duration) (holds bool, err error) {
	err = s.write(ctx, fmt.Sprintf("take lease %q", name), statement{
		sql: s.sql.lead, args: []any{name, uuid(w), lease.Microseconds()},
		read: func(pgx.Rows) error { holds = true; return nil },
	})
	return holds && err == nil, err
}

// Expirable returns the ids of what is old enough to become a tombstone.
func (s *Store) Expirable(ctx context.Context, definition string, after time.Duration, limit int) (ids []string, err error) {
	err = s.overBuckets(ctx, fmt.Sprintf("look for expired workflows of %q", definition), s.sql.expirable,
		scan(&ids, func(rows pgx.Rows, id *string) error { return rows.Scan(id) }), definition, after.Microseconds(), limit)
	return ids, err
}

// Forget removes tombstones that are old enough.
func (s *Store) Forget(ctx context.Context, definition string, after time.Duration, limit int) (n int, err error) {
	err = s.overBuckets(ctx, fmt.Sprintf("forget tombstones of %q", definition), s.sql.forgetOld,
		func(rows pgx.Rows) error { return rows.Scan(&n) }, definition, after.Microseconds(), limit)
	return n, err
}

// overBuckets runs a statement whose first parameter is the number of buckets.
func (s *Store) overBuckets(ctx context.Context, what, sql string, read func(pgx.Rows) error, args ...any) error {
	buckets, err := s.buckets(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.write(ctx, what, statement{sql: sql, args: append([]any{buckets}, args...), read: read})
}
