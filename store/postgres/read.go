package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// getSQL reads one workflow.
const getSQL = `
SELECT ` + workflowColumns + `
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.id = $2`

// endedSQL reads those workflows of one bucket that have ended, and names
// those that do not exist by a row of their id alone.
const endedSQL = `
SELECT t.id, w.id IS NOT NULL, ` + endedColumns + `
FROM   unnest($2::text[]) AS t(id)
       LEFT JOIN LATERAL (
           SELECT *
           FROM   {schema}.workflow AS f
           WHERE  f.bucket = $1 AND f.id = t.id
           OFFSET 0
       ) AS w ON true
WHERE  w.id IS NULL OR w.ended_at IS NOT NULL`

// endedColumns are workflowColumns that may all be missing.
const endedColumns = `
       coalesce(w.id, ''), coalesce(w.definition, ''), coalesce(w.version, 0),
       coalesce(w.status, ''), coalesce(w.state, ''), coalesce(w.revision, 0), w.owner, w.wake_at,
       coalesce(w.awaits, ''), coalesce(w.step, ''), coalesce(w.grp, 0), coalesce(w.attempt, 0),
       coalesce(w.failures, 0), coalesce(w.crashes, 0), coalesce(w.error, ''), coalesce(w.pivoted, false),
       coalesce(w.parent, ''), w.input_hash, w.cursor, w.data,
       coalesce(w.created_at, 'epoch'), coalesce(w.updated_at, 'epoch'), w.ended_at,
       coalesce(w.queue, ''), coalesce(w.queue_key, ''), coalesce(w.priority, 0)`

// historySQL reads the recorded steps of one workflow and its branches. A row's
// own records keep the order of its revisions whatever the clock has done: each
// counts as completed no earlier than the ones before it.
const historySQL = `
SELECT s.workflow_id, s.step, s.grp, s.item, s.status, s.attempt, s.input, s.output, coalesce(s.error, ''),
       s.took_us, s.revision, s.ended_at
FROM   {schema}.step AS s
WHERE  s.bucket = $1 AND s.workflow_id >= $2 AND s.workflow_id < $3
ORDER  BY max(s.ended_at) OVER (PARTITION BY s.workflow_id ORDER BY s.revision),
          s.workflow_id, s.revision, s.step, s.grp, s.item`

// inboxSQL reads the messages of one workflow that are not consumed.
const inboxSQL = `
SELECT i.workflow_id, i.message_id, i.kind, i.name, i.payload, i.sent_at
FROM   {schema}.inbox AS i
WHERE  i.bucket = $1 AND i.fresh = ANY ('{t,f}') AND i.workflow_id = $2 AND i.consumed_at IS NULL
ORDER  BY i.sent_at, i.message_id`

// listSQL reads a page of one bucket's workflows, without their data and
// without branches.
const listSQL = `
SELECT ` + listColumns + `
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.id > $2 AND strpos(w.id, chr(31)) = 0
AND   ($3 = '' OR w.definition = $3)
AND   (cardinality($4::text[]) = 0 OR w.status = ANY ($4))
ORDER  BY w.id
LIMIT  $5`

// branchesSQL reads a page of the branches of one root, without their data: of
// the ids up to $6.
const branchesSQL = `
SELECT ` + listColumns + `
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.id > $2 AND w.id < $6
AND   ($3 = '' OR w.definition = $3)
AND   (cardinality($4::text[]) = 0 OR w.status = ANY ($4))
ORDER  BY w.id
LIMIT  $5`

// listColumns are workflowColumns with NULL for the data.
const listColumns = `
       w.id, w.definition, w.version, w.status, w.state, w.revision, w.owner, w.wake_at,
       coalesce(w.awaits, ''), coalesce(w.step, ''), coalesce(w.grp, 0), coalesce(w.attempt, 0),
       coalesce(w.failures, 0), coalesce(w.crashes, 0), coalesce(w.error, ''), w.pivoted,
       coalesce(w.parent, ''), w.input_hash, w.cursor, NULL::bytea, w.created_at, w.updated_at, w.ended_at,
       coalesce(w.queue, ''), coalesce(w.queue_key, ''), coalesce(w.priority, 0)`

// defaultPage is the size of a page where the query names none.
const defaultPage = 100

// Get returns a workflow.
func (s *Store) Get(ctx context.Context, id string) (store.Workflow, error) {
	what := naming("get", 1, id)
	var found []store.Workflow
	err := s.lookAt(ctx, what, []string{id}, func(bucket int16, _ []string) statement {
		return statement{sql: s.sql.get, args: []any{bucket, id}, read: scan(&found, scanWorkflow)}
	})
	if err != nil {
		return store.Workflow{}, err
	}
	if len(found) == 0 {
		return store.Workflow{}, fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return found[0], nil
}

// Ended returns those of the workflows that have ended, and the ids of those
// that do not exist.
func (s *Store) Ended(ctx context.Context, ids []string) (ended []store.Workflow, missing []string, err error) {
	what := naming("look for the end of", len(ids), first(ids))
	err = s.lookAt(ctx, what, ids, func(bucket int16, ids []string) statement {
		return statement{sql: s.sql.ended, args: []any{bucket, ids}, read: func(rows pgx.Rows) error {
			var (
				r     row
				w     store.Workflow
				id    string
				found bool
			)
			if err := rows.Scan(append([]any{&id, &found}, r.dest(&w)...)...); err != nil {
				return err
			}
			if !found {
				missing = append(missing, id)
				return nil
			}
			r.fill(&w)
			ended = append(ended, w)
			return nil
		}}
	})
	if err != nil {
		return nil, nil, err
	}
	return ended, missing, nil
}

// History returns the recorded steps of a workflow and its branches in the
// order of their completion.
func (s *Store) History(ctx context.Context, id string) ([]store.StepRecord, error) {
	var steps []store.StepRecord
	err := s.lookAt(ctx, naming("read history of", 1, id), []string{id}, func(bucket int16, _ []string) statement {
		return statement{sql: s.sql.history, args: []any{bucket, id, store.FamilyEnd(id)}, read: scan(&steps, scanStep)}
	})
	return steps, err
}

// scanStep reads the columns of historySQL.
func scanStep(rows pgx.Rows, r *store.StepRecord) error {
	var (
		id     string
		tookUS int64
	)
	err := rows.Scan(&id, &r.Step, &r.Group, &r.Item, &r.Status, &r.Attempt, &r.Input, &r.Output, &r.Error,
		&tookUS, &r.Revision, &r.EndedAt)
	r.Branch = store.BranchOf(id)
	r.Took, r.EndedAt = time.Duration(tookUS)*time.Microsecond, r.EndedAt.UTC()
	return err
}

// Inbox returns the messages of a workflow that are not consumed, oldest
// first.
func (s *Store) Inbox(ctx context.Context, id string) ([]store.Message, error) {
	var messages []store.Message
	err := s.lookAt(ctx, naming("read inbox of", 1, id), []string{id}, func(bucket int16, _ []string) statement {
		return statement{sql: s.sql.inbox, args: []any{bucket, id}, read: scan(&messages, scanMessage)}
	})
	return messages, err
}

// List returns workflows in the order of their ids, without their data. Each
// bucket gives a page; the first of them all are the answer.
func (s *Store) List(ctx context.Context, q store.Query) ([]store.Workflow, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	statuses := make([]string, len(q.Statuses))
	for i, status := range q.Statuses {
		statuses[i] = string(status)
	}
	var found []store.Workflow
	if root := q.BranchesOf; root != "" {
		err := s.lookAt(ctx, naming("list branches of", 1, root), []string{root}, func(bucket int16, _ []string) statement {
			after := max(q.After, root) // the root itself is none
			return statement{
				sql:  s.sql.branches,
				args: []any{bucket, after, q.Definition, statuses, limit, store.FamilyEnd(root)},
				read: scan(&found, scanWorkflow),
			}
		})
		return found, err
	}
	err := s.lookInBuckets(ctx, "list workflows", func(bucket int16) statement {
		return statement{
			sql:  s.sql.list,
			args: []any{bucket, q.After, q.Definition, statuses, limit},
			read: scan(&found, scanWorkflow),
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b store.Workflow) int { return strings.Compare(a.ID, b.ID) })
	return found[:min(limit, len(found))], nil
}

// Now returns the database's time.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.query(ctx, "read the clock", statement{
		sql:  "SELECT clock_timestamp()",
		read: func(rows pgx.Rows) error { return rows.Scan(&now) },
	})
	return now.UTC(), err
}
