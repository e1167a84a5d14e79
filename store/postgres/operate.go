package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// amendedSQL keeps the request that has caused a transition as taken up. One that
// was taken up before is left as it is, and nothing is returned.
const amendedSQL = `
INSERT INTO {schema}.inbox AS i
      (bucket, workflow_id, message_id, kind, name, payload, sent_at, fresh, consumed_at, answer)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), false, clock_timestamp(), nullif($7, ''))
ON CONFLICT (bucket, workflow_id, message_id) DO UPDATE
SET    fresh = false, consumed_at = clock_timestamp(), answer = excluded.answer
WHERE  i.consumed_at IS NULL
RETURNING 1`

// requestsSQL reads what was asked of a workflow and its branches.
const requestsSQL = `
SELECT i.workflow_id, i.message_id, i.kind, i.name, i.payload, i.sent_at, i.consumed_at, coalesce(i.answer, '')
FROM   {schema}.inbox AS i
WHERE  i.bucket = $1 AND i.workflow_id >= $2 AND i.workflow_id < $3
AND    i.kind IN ('signal', 'cancel', 'verb')
ORDER  BY i.sent_at, i.workflow_id, i.message_id`

// expireSQL makes tombstones in one bucket.
const expireSQL = `
WITH gone AS (
    UPDATE {schema}.workflow AS w
    SET    status = 'EXPIRED', revision = w.revision + 1, data = '', cursor = NULL, error = NULL,
           step = NULL, grp = NULL, attempt = NULL, failures = NULL, crashes = NULL, awaits = NULL,
           updated_at = statement_timestamp()
    WHERE  w.bucket = $1 AND w.id = ANY ($2::text[]) AND strpos(w.id, chr(31)) = 0
    AND    w.ended_at IS NOT NULL AND w.status <> 'EXPIRED'
    RETURNING w.id
), steps AS (
    DELETE FROM {schema}.step AS s
    USING  gone AS g
    WHERE  s.bucket = $1 AND s.workflow_id >= g.id AND s.workflow_id < g.id || ' '
), mail AS (
    DELETE FROM {schema}.inbox AS i
    USING  gone AS g
    WHERE  i.bucket = $1 AND i.workflow_id >= g.id AND i.workflow_id < g.id || ' '
    AND    i.kind NOT IN ('cancel', 'verb')
), progress AS (
    DELETE FROM {schema}.progress AS p
    USING  gone AS g
    WHERE  p.bucket = $1 AND p.workflow_id >= g.id AND p.workflow_id < g.id || ' '
), branches AS (
    DELETE FROM {schema}.workflow AS b
    USING  gone AS g
    WHERE  b.bucket = $1 AND b.id > g.id AND b.id < g.id || ' '
)
SELECT g.id FROM gone AS g ORDER BY g.id`

// Amend writes a transition of a workflow that nobody owns, and its request.
func (s *Store) Amend(ctx context.Context, t store.Transition, r store.Request) (store.Verdict, error) {
	what := naming("amend", 1, t.ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return store.Lost, fmt.Errorf("%s: %w", what, err)
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return store.Lost, translate(what, err, unsent)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return store.Lost, translate(what, err, reading)
	}
	defer rollback(ctx, conn.Conn())
	applied, err := s.amend(ctx, tx, bucketOf(t.ID, buckets), t, r)
	if err != nil || !applied {
		return store.Lost, translate(what, err, reading)
	}
	if err := tx.Commit(ctx); err != nil {
		return store.Lost, translate(what, err, committing)
	}
	return store.Applied, nil
}

func (s *Store) amend(ctx context.Context, tx pgx.Tx, bucket int16, t store.Transition, r store.Request) (applied bool, err error) {
	if _, err := tx.Exec(ctx, hotSettings); err != nil {
		return false, err
	}
	t.Release = true
	verdicts := make([]store.Verdict, 1)
	g := group{bucket: bucket, at: []int{0}}
	if err := queryOn(ctx, tx, s.commitStatement(store.WorkerID{}, []store.Transition{t}, g, verdicts)); err != nil {
		return false, err
	}
	if verdicts[0] != store.Applied {
		return false, nil
	}
	payload := r.Payload
	if payload == nil {
		payload = []byte{}
	}
	err = queryOn(ctx, tx, statement{
		sql:  s.sql.amended,
		args: []any{bucket, t.ID, r.ID, string(r.Kind), r.Name, payload, text(r.Answer)},
		read: func(pgx.Rows) error { applied = true; return nil },
	})
	return applied, err
}

// Requests returns what was asked of a workflow, oldest first.
func (s *Store) Requests(ctx context.Context, id string) ([]store.Request, error) {
	var found []store.Request
	err := s.lookAt(ctx, naming("read requests of", 1, id), []string{id}, func(bucket int16, _ []string) statement {
		return statement{sql: s.sql.requests, args: []any{bucket, id, store.FamilyEnd(id)}, read: scan(&found, scanRequest)}
	})
	return found, err
}

// scanRequest reads the columns of requestsSQL.
func scanRequest(rows pgx.Rows, r *store.Request) error {
	var taken *time.Time
	err := rows.Scan(&r.WorkflowID, &r.ID, &r.Kind, &r.Name, &r.Payload, &r.SentAt, &taken, &r.Answer)
	r.SentAt = r.SentAt.UTC()
	if taken != nil {
		r.TakenAt = taken.UTC()
	}
	return err
}

// Expire makes tombstones of workflows that have ended.
func (s *Store) Expire(ctx context.Context, ids []string) (expired []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	what := naming("expire", len(ids), ids[0])
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	var statements []statement
	for _, g := range groups(len(ids), buckets, func(i int) string { return ids[i] }) {
		these := make([]string, len(g.at))
		for k, i := range g.at {
			these[k] = ids[i]
		}
		statements = append(statements, statement{
			sql: s.sql.expire, args: []any{g.bucket, these},
			read: scan(&expired, func(rows pgx.Rows, id *string) error { return rows.Scan(id) }),
		})
	}
	if err := s.write(ctx, what, statements...); err != nil {
		return nil, err
	}
	return expired, nil
}
