package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// beatSQL keeps progress, in the place of what there was. The row of the workflow
// is locked so that it cannot change hands meanwhile: a worker that has lost it
// would write over what its successor has come to.
const beatSQL = `
WITH mine AS (
    SELECT w.id
    FROM   {schema}.workflow AS w
    WHERE  w.bucket = $1 AND w.id = $2 AND w.revision = $4 AND w.owner IS NOT DISTINCT FROM $3::uuid
    FOR    SHARE
)
INSERT INTO {schema}.progress AS p (bucket, workflow_id, key, progress, made_at)
SELECT $1, m.id, $5, $6, statement_timestamp() FROM mine AS m
ON CONFLICT (bucket, workflow_id) DO UPDATE
SET    key = excluded.key, progress = excluded.progress, made_at = excluded.made_at
RETURNING 1`

// lastBeatSQL reads the progress of one key.
const lastBeatSQL = `
SELECT p.progress
FROM   {schema}.progress AS p
WHERE  p.bucket = $1 AND p.workflow_id = $2 AND p.key = $3`

// Beat keeps how far a body has come.
func (s *Store) Beat(ctx context.Context, w store.WorkerID, g store.Guard, key string, progress []byte) (store.Verdict, error) {
	what := naming("keep progress of", 1, g.ID)
	if w.IsZero() {
		return store.Lost, nil
	}
	buckets, err := s.buckets(ctx)
	if err != nil {
		return store.Lost, err
	}
	verdict := store.Lost
	err = s.write(ctx, what, statement{
		sql: s.sql.beat, args: []any{bucketOf(g.ID, buckets), g.ID, uuid(w), g.Revision, key, progress},
		read: func(pgx.Rows) error { verdict = store.Applied; return nil },
	})
	if err != nil {
		return store.Lost, err
	}
	return verdict, nil
}

// LastBeat returns the progress that is kept under a key.
func (s *Store) LastBeat(ctx context.Context, id, key string) (progress []byte, err error) {
	err = s.lookAt(ctx, naming("read progress of", 1, id), []string{id}, func(bucket int16, _ []string) statement {
		return statement{sql: s.sql.lastBeat, args: []any{bucket, id, key}, read: func(rows pgx.Rows) error { return rows.Scan(&progress) }}
	})
	return progress, err
}
