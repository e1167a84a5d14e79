package postgres

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// releaseSQL gives back workflows of one bucket whose guard holds.
const releaseSQL = `
UPDATE {schema}.workflow AS w
SET    owner      = NULL,
       revision   = w.revision + 1,
       updated_at = statement_timestamp(),
       attempt    = CASE WHEN NOT t.begun AND w.step IS NOT NULL AND w.attempt > 0
                         THEN w.attempt - 1 ELSE w.attempt END,
       wake_at    = CASE WHEN w.status IN ('PENDING', 'COMPENSATING') THEN statement_timestamp() ELSE w.wake_at END
FROM  (SELECT t.revision, t.begun, f.place
       FROM   unnest($3::text[], $4::bigint[], $5::bool[]) AS t(id, revision, begun)
              CROSS JOIN LATERAL (
                  SELECT f.ctid AS place
                  FROM   {schema}.workflow AS f
                  WHERE  f.bucket = $1 AND f.id = t.id
                  AND    f.revision = t.revision AND f.owner IS NOT DISTINCT FROM $2::uuid
                  OFFSET 0
              ) AS f
       OFFSET 0
      ) AS t
WHERE  w.ctid = t.place
AND    w.revision = t.revision AND w.owner IS NOT DISTINCT FROM $2::uuid`

// Release gives back workflows that w owns.
func (s *Store) Release(ctx context.Context, w store.WorkerID, rs []store.Released) error {
	if len(rs) == 0 || w.IsZero() {
		return nil
	}
	what := naming("release", len(rs), rs[0].ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var statements []statement
	for _, g := range groups(len(rs), buckets, func(i int) string { return rs[i].ID }) {
		n := len(g.at)
		ids, revisions, begun := make([]string, n), make([]int64, n), make([]bool, n)
		for k, i := range g.at {
			ids[k], revisions[k], begun[k] = rs[i].ID, rs[i].Revision, rs[i].Begun
		}
		statements = append(statements, statement{
			sql: s.sql.release, args: []any{g.bucket, uuid(w), ids, revisions, begun},
		})
	}
	return s.write(ctx, what, statements...)
}
