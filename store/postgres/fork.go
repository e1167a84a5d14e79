package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// copyStepsSQL gives a workflow of one bucket records of steps, in their order, and
// has its revision count them.
const copyStepsSQL = `
WITH copied AS (
    INSERT INTO {schema}.step
          (bucket, workflow_id, step, grp, item, status, attempt, input, output, error, took_us, revision, ended_at)
    SELECT $1, $2, t.step, t.grp, t.item, t.status, t.attempt, t.input, t.output, nullif(t.error, ''), t.took_us, t.n + 1, t.ended_at
    FROM   unnest($3::text[], $4::int[], $5::int[], $6::text[], $7::int[], $8::bytea[], $9::bytea[], $10::text[], $11::bigint[], $12::timestamptz[])
           WITH ORDINALITY
           AS t(step, grp, item, status, attempt, input, output, error, took_us, ended_at, n)
)
UPDATE {schema}.workflow AS w
SET    revision = cardinality($3::text[]) + 1
WHERE  w.bucket = $1 AND w.id = $2`

// Fork inserts a workflow with what it begins behind.
func (s *Store) Fork(ctx context.Context, f store.Fork) (store.StartResult, error) {
	what := naming("fork", 1, f.ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return store.StartResult{}, fmt.Errorf("%s: %w", what, err)
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return store.StartResult{}, translate(what, err, unsent)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return store.StartResult{}, translate(what, err, reading)
	}
	defer rollback(ctx, conn.Conn())
	if _, err := tx.Exec(ctx, hotSettings); err != nil {
		return store.StartResult{}, translate(what, err, reading)
	}
	r, err := s.StartTx(ctx, Tx(tx), f.New)
	if err != nil || !r.Created {
		return r, err
	}
	if err := s.copySteps(ctx, tx, bucketOf(f.ID, buckets), f); err != nil {
		return store.StartResult{}, translate(what, err, reading)
	}
	for _, q := range f.Asked {
		args := []any{bucketOf(q.WorkflowID, buckets), q.WorkflowID, q.ID, string(q.Kind), q.Name, orEmpty(q.Payload), text(q.Answer)}
		if err := queryOn(ctx, tx, statement{sql: s.sql.amended, args: args}); err != nil {
			return store.StartResult{}, translate(what, err, reading)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return store.StartResult{}, translate(what, err, committing)
	}
	r.Revision = int64(len(f.Steps)) + 1
	return r, nil
}

func (s *Store) copySteps(ctx context.Context, tx pgx.Tx, bucket int16, f store.Fork) error {
	var (
		c     recordedSteps
		ended = make([]time.Time, len(f.Steps))
	)
	for i := range f.Steps {
		c.add(i, &f.Steps[i])
		ended[i] = f.Steps[i].EndedAt
	}
	args := append([]any{bucket, f.ID}, c.args()[1:]...) // their number is their order
	return queryOn(ctx, tx, statement{sql: s.sql.copySteps, args: append(args, ended)})
}
