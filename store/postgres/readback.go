package postgres

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// readBackSQL tells how workflows of one bucket stand, waiting for whatever
// commit is under way on them. Without the lock it would answer with the row
// before a commit that is about to be visible.
const readBackSQL = `
SELECT w.id, w.revision, w.owner
FROM   unnest($2::text[]) AS t(id)
       CROSS JOIN LATERAL (
           SELECT f.id, f.revision, f.owner
           FROM   {schema}.workflow AS f
           WHERE  f.bucket = $1 AND f.id = t.id
           FOR    NO KEY UPDATE
       ) AS w`

// readBackSettings wait for a lock as long as the caller does.
const readBackSettings = `
SELECT set_config('lock_timeout', '0', true),
       set_config('enable_seqscan', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)`

// ReadBack returns how the given workflows stand.
func (s *Store) ReadBack(ctx context.Context, ids []string) ([]store.Position, error) {
	var positions []store.Position
	what := naming("read back", len(ids), first(ids))
	statements, err := s.byBucket(ctx, what, ids, func(bucket int16, ids []string) statement {
		return statement{sql: s.sql.readBack, args: []any{bucket, ids}, read: scan(&positions, scanPosition)}
	})
	if err != nil || len(statements) == 0 {
		return nil, err
	}
	if err := s.lookWith(ctx, what, readBackSettings, statements...); err != nil {
		return nil, err
	}
	return positions, nil
}

// lookAt asks about some workflows, one statement for each of their buckets,
// in one round trip.
func (s *Store) lookAt(
	ctx context.Context, what string, ids []string, ask func(bucket int16, ids []string) statement,
) error {
	statements, err := s.byBucket(ctx, what, ids, ask)
	if err != nil || len(statements) == 0 {
		return err
	}
	return s.look(ctx, what, statements...)
}

// byBucket makes a statement for each bucket that the ids lie in.
func (s *Store) byBucket(
	ctx context.Context, what string, ids []string, ask func(bucket int16, ids []string) statement,
) ([]statement, error) {
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var statements []statement
	for _, g := range groups(len(ids), buckets, func(i int) string { return ids[i] }) {
		part := make([]string, len(g.at))
		for k, i := range g.at {
			part[k] = ids[i]
		}
		statements = append(statements, ask(g.bucket, part))
	}
	return statements, nil
}
