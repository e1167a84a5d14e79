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

// claimSQL makes a worker the owner of what may be claimed in one bucket.
//
// due: how many of the oldest due rows fall to each definition is settled
// first, without locks, so that no row is locked which is not taken. Each
// definition is asked by itself: one index range each, whatever else waits.
// mailed: workflows with fresh mail, whether due or not. Of those in a queue only
// the ones that are to be cancelled before they have begun.
//
// A worker that is buried claims nothing. Should it be buried while this runs,
// its rows are those of a dead worker and the next sweep frees them.
const claimSQL = `
WITH def AS MATERIALIZED (
    SELECT d.name, d.version
    FROM   unnest($3::text[], $4::int[]) AS d(name, version)
    WHERE  EXISTS (SELECT FROM {schema}.worker AS k WHERE k.id = $2 AND k.dead_at IS NULL)
), share AS (
    SELECT o.name, o.version, count(*) AS n
    FROM  (SELECT d.name, d.version
           FROM   def AS d
                  CROSS JOIN LATERAL (
                      SELECT w.wake_at
                      FROM   {schema}.workflow AS w
                      WHERE  w.bucket = $1 AND w.definition = d.name AND w.version = d.version
                      AND    w.owner IS NULL AND w.wake_at <= statement_timestamp() AND w.queue IS NULL
                      ORDER  BY w.definition, w.version, w.wake_at
                      LIMIT  $5
                  ) AS w
           ORDER  BY w.wake_at
           LIMIT  $5
          ) AS o
    GROUP  BY o.name, o.version
), due AS (
    SELECT w.place, w.since
    FROM   share AS s
           CROSS JOIN LATERAL (
               SELECT w.ctid AS place, w.wake_at AS since
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.definition = s.name AND w.version = s.version
               AND    w.owner IS NULL AND w.wake_at <= statement_timestamp() AND w.queue IS NULL
               ORDER  BY w.definition, w.version, w.wake_at
               LIMIT  s.n
               FOR    NO KEY UPDATE SKIP LOCKED
           ) AS w
), mailed AS (
    SELECT w.place, m.since
    FROM  (SELECT i.workflow_id, min(i.sent_at) AS since, bool_or(i.kind = 'cancel') AS cancelled
           FROM   {schema}.inbox AS i
           WHERE  i.bucket = $1 AND i.fresh AND i.consumed_at IS NULL
           GROUP  BY i.workflow_id
           ORDER  BY min(i.sent_at)
          ) AS m
          CROSS JOIN LATERAL (
              SELECT w.ctid AS place
              FROM   {schema}.workflow AS w
              WHERE  w.bucket = $1 AND w.id = m.workflow_id
              AND    w.owner IS NULL AND w.ended_at IS NULL
              AND   (w.queue IS NULL OR (NOT w.begun AND m.cancelled))
              AND    EXISTS (SELECT FROM def AS d WHERE d.name = w.definition AND d.version = w.version)
              FOR    NO KEY UPDATE SKIP LOCKED
          ) AS w
    LIMIT $5
), picked AS (
    SELECT p.place, min(p.since) AS since
    FROM  (SELECT * FROM due UNION ALL SELECT * FROM mailed) AS p
    GROUP  BY p.place
    ORDER  BY min(p.since)
    LIMIT  $5
), claimed AS (
    UPDATE {schema}.workflow AS w
    SET    owner      = $2,
           revision   = w.revision + 1,
           updated_at = statement_timestamp(),
           attempt    = CASE WHEN w.step IS NOT NULL AND w.wake_at <= statement_timestamp()
                             THEN w.attempt + 1 ELSE w.attempt END,
           status     = CASE WHEN w.step IS NOT NULL AND w.wake_at <= statement_timestamp() AND w.status = 'WAITING'
                             THEN 'PENDING' ELSE w.status END
    FROM   picked AS p
    WHERE  w.ctid = p.place AND w.owner IS NULL
    RETURNING w.*, p.since
)
SELECT ` + workflowColumns + `, ` + claimedColumns + `
FROM   claimed AS w
       CROSS JOIN LATERAL (` + openMailSQL + `) AS m
ORDER  BY w.since, w.id`

// openMailSQL collects the messages of workflow w that are not consumed, seen
// ones too, as arrays: the row of a workflow is sent once.
const openMailSQL = `
    SELECT array_agg(i.message_id ORDER BY i.sent_at, i.message_id) AS ids,
           array_agg(i.kind       ORDER BY i.sent_at, i.message_id) AS kinds,
           array_agg(i.name       ORDER BY i.sent_at, i.message_id) AS names,
           array_agg(i.payload    ORDER BY i.sent_at, i.message_id) AS payloads,
           array_agg(i.sent_at    ORDER BY i.sent_at, i.message_id) AS sent_ats
    FROM   {schema}.inbox AS i
    WHERE  i.bucket = $1 AND i.fresh = ANY ('{t,f}') AND i.workflow_id = w.id AND i.consumed_at IS NULL`

// claimedColumns are what a claim tells beyond the row; scanClaimed reads them.
const claimedColumns = `
       coalesce(w.wake_at <= statement_timestamp(), false), m.ids, m.kinds, m.names, m.payloads, m.sent_ats`

// readySQL tells since when the oldest of one bucket may be claimed, without
// claiming any.
const readySQL = `
WITH def AS MATERIALIZED (
    SELECT d.name, d.version
    FROM   unnest($2::text[], $3::int[]) AS d(name, version)
), due AS (
    SELECT w.id, w.wake_at AS since
    FROM   def AS d
           CROSS JOIN LATERAL (
               SELECT w.id, w.wake_at
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.definition = d.name AND w.version = d.version
               AND    w.owner IS NULL AND w.wake_at <= statement_timestamp() AND w.queue IS NULL
               ORDER  BY w.definition, w.version, w.wake_at
               LIMIT  $4
           ) AS w
), mailed AS (
    SELECT i.workflow_id AS id, i.sent_at AS since
    FROM   {schema}.inbox AS i
           CROSS JOIN LATERAL (
               SELECT w.definition, w.version
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.id = i.workflow_id
               AND    w.owner IS NULL AND w.ended_at IS NULL
               AND   (w.queue IS NULL OR (NOT w.begun AND i.kind = 'cancel'))
               OFFSET 0
           ) AS w
    WHERE  i.bucket = $1 AND i.fresh AND i.consumed_at IS NULL
    AND    EXISTS (SELECT FROM def AS d WHERE d.name = w.definition AND d.version = w.version)
)
SELECT min(r.since)
FROM  (SELECT * FROM due UNION ALL SELECT * FROM mailed) AS r
GROUP  BY r.id
ORDER  BY min(r.since)
LIMIT  $4`

// Claim makes w the owner of what may be claimed, in one round trip. With
// several buckets it is two: the first learns where the oldest are, so that
// each bucket gives its share.
func (s *Store) Claim(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	if len(defs) == 0 || limit <= 0 {
		return nil, nil
	}
	const what = "claim workflows"
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	names, versions := make([]string, len(defs)), make([]int32, len(defs))
	for i, d := range defs {
		names[i], versions[i] = d.Name, int32(d.Version)
	}
	shares := []int{limit}
	if buckets > 1 {
		if shares, err = s.shares(ctx, what, buckets, names, versions, limit); err != nil {
			return nil, err
		}
	}
	var (
		claimed    []store.Claimed
		statements []statement
	)
	for bucket, share := range shares {
		if share > 0 {
			statements = append(statements, statement{
				sql:  s.sql.claim,
				args: []any{int16(bucket), uuid(w), names, versions, share},
				read: scan(&claimed, scanClaimed),
			})
		}
	}
	if len(statements) == 0 {
		return nil, nil
	}
	if err := s.write(ctx, what, statements...); err != nil {
		return nil, err
	}
	return claimed, nil
}

// shares tells how many of the oldest that may be claimed lie in each bucket.
func (s *Store) shares(
	ctx context.Context, what string, buckets int, names []string, versions []int32, limit int,
) ([]int, error) {
	type ready struct {
		since  time.Time
		bucket int
	}
	var all []ready
	err := s.lookInBuckets(ctx, what, func(bucket int16) statement {
		return statement{
			sql:  s.sql.ready,
			args: []any{bucket, names, versions, limit},
			read: scan(&all, func(rows pgx.Rows, r *ready) error {
				r.bucket = int(bucket)
				return rows.Scan(&r.since)
			}),
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ready) int { return a.since.Compare(b.since) })
	shares := make([]int, buckets)
	for _, r := range all[:min(limit, len(all))] {
		shares[r.bucket]++
	}
	return shares, nil
}

// workflowColumns are the columns of workflow w; scanWorkflow reads them.
const workflowColumns = `
       w.id, w.definition, w.version, w.status, w.state, w.revision, w.owner, w.wake_at,
       coalesce(w.awaits, ''), coalesce(w.step, ''), coalesce(w.grp, 0), coalesce(w.attempt, 0),
       coalesce(w.failures, 0), coalesce(w.crashes, 0), coalesce(w.error, ''), w.pivoted,
       coalesce(w.parent, ''), w.input_hash, w.cursor, w.data, w.created_at, w.updated_at, w.ended_at,
       coalesce(w.queue, ''), coalesce(w.queue_key, ''), coalesce(w.priority, 0)`

// row is a workflow's row on its way from the database.
type row struct {
	owner   pgtype.UUID
	hash    []byte
	wakeAt  pgtype.Timestamptz
	endedAt pgtype.Timestamptz
}

// dest is where workflowColumns go.
func (r *row) dest(w *store.Workflow) []any {
	return []any{
		&w.ID, &w.Definition.Name, &w.Definition.Version, &w.Status, &w.State, &w.Revision, &r.owner, &r.wakeAt,
		&w.Awaits, &w.Mark.Step, &w.Mark.Group, &w.Mark.Attempt,
		&w.Mark.Failures, &w.Mark.Crashes, &w.Error, &w.Pivoted,
		&w.Parent, &r.hash, &w.Cursor, &w.Data, &w.CreatedAt, &w.UpdatedAt, &r.endedAt,
		&w.Queue, &w.Key, &w.Priority,
	}
}

// fill completes w by what could not be scanned into it.
func (r *row) fill(w *store.Workflow) {
	w.Owner = r.owner.Bytes
	copy(w.InputHash[:], r.hash)
	w.WakeAt, w.EndedAt = instant(r.wakeAt), instant(r.endedAt)
	w.CreatedAt, w.UpdatedAt = w.CreatedAt.UTC(), w.UpdatedAt.UTC()
}

// instant returns the time, or zero for NULL.
func instant(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// scanWorkflow reads workflowColumns.
func scanWorkflow(rows pgx.Rows, w *store.Workflow) error {
	var r row
	if err := rows.Scan(r.dest(w)...); err != nil {
		return err
	}
	r.fill(w)
	return nil
}

// scanClaimed reads workflowColumns and claimedColumns.
func scanClaimed(rows pgx.Rows, c *store.Claimed) error {
	var (
		r                 row
		ids, kinds, names []string
		payloads          [][]byte
		sentAts           []time.Time
	)
	dest := append(r.dest(&c.Workflow), &c.Due, &ids, &kinds, &names, &payloads, &sentAts)
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	r.fill(&c.Workflow)
	for i, id := range ids {
		c.Inbox = append(c.Inbox, store.Message{
			WorkflowID: c.ID, ID: id, Kind: store.MessageKind(kinds[i]), Name: names[i],
			Payload: payloads[i], SentAt: sentAts[i].UTC(),
		})
	}
	return nil
}
