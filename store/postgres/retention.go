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

// expirableSQL names what is old enough to become a tombstone, in one bucket.
const expirableSQL = `
SELECT w.id
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.definition = $2 AND w.ended_at IS NOT NULL
AND    w.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
AND    w.status <> 'EXPIRED' AND strpos(w.id, chr(31)) = 0
ORDER  BY w.ended_at
LIMIT  $4`

// forgetOldSQL removes the tombstones of one bucket that are old enough.
const forgetOldSQL = `
WITH gone AS (
    DELETE FROM {schema}.workflow AS w
    USING (SELECT f.ctid AS place
           FROM   {schema}.workflow AS f
           WHERE  f.bucket = $1 AND f.definition = $2 AND f.ended_at IS NOT NULL
           AND    f.ended_at <= statement_timestamp() - $3::bigint * interval '1 microsecond'
           AND    f.status = 'EXPIRED'
           ORDER  BY f.ended_at
           LIMIT  $4
           FOR    UPDATE SKIP LOCKED
          ) AS f
    WHERE  w.ctid = f.place
    RETURNING w.id
), mail AS (
    DELETE FROM {schema}.inbox AS i
    USING  gone AS g
    WHERE  i.bucket = $1 AND i.workflow_id = g.id
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
	what := fmt.Sprintf("look for expired workflows of %q", definition)
	err = s.eachBucket(ctx, what, func(bucket int16) statement {
		return statement{
			sql: s.sql.expirable, args: []any{bucket, definition, after.Microseconds(), limit},
			read: scan(&ids, func(rows pgx.Rows, id *string) error { return rows.Scan(id) }),
		}
	})
	return ids[:min(len(ids), limit)], err
}

// Forget removes tombstones that are old enough.
func (s *Store) Forget(ctx context.Context, definition string, after time.Duration, limit int) (n int, err error) {
	what := fmt.Sprintf("forget tombstones of %q", definition)
	err = s.eachBucket(ctx, what, func(bucket int16) statement {
		return statement{
			sql: s.sql.forgetOld, args: []any{bucket, definition, after.Microseconds(), limit},
			read: func(rows pgx.Rows) error {
				var here int
				if err := rows.Scan(&here); err != nil {
					return err
				}
				n += here
				return nil
			},
		}
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// eachBucket runs a statement for every bucket, in one transaction.
func (s *Store) eachBucket(ctx context.Context, what string, in func(bucket int16) statement) error {
	buckets, err := s.buckets(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var statements []statement
	for b := range buckets {
		statements = append(statements, in(int16(b)))
	}
	return s.write(ctx, what, statements...)
}
