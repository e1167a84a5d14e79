package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// sendSQL puts messages into the inboxes of one bucket and tells of each, by
// its number, what became of it: 1 accepted, 2 duplicate, 3 not found, 4 ended,
// 5 past the pivot. A message that was refused by nothing that the statement
// can see lost a race to one of the same id.
const sendSQL = `
WITH message AS MATERIALIZED (
    SELECT m.*, w.id IS NOT NULL AS found, w.ended, w.pivoted,
           EXISTS (SELECT FROM {schema}.inbox AS i
                   WHERE  i.bucket = $1 AND i.workflow_id = m.workflow_id AND i.message_id = m.message_id) AS known
    FROM   unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[])
           WITH ORDINALITY AS m(workflow_id, message_id, kind, name, payload, n)
           LEFT JOIN LATERAL (
               SELECT w.id, w.ended_at IS NOT NULL AS ended, w.pivoted
               FROM   {schema}.workflow AS w
               WHERE  w.bucket = $1 AND w.id = m.workflow_id
               OFFSET 0
           ) AS w ON true
), put AS (
    INSERT INTO {schema}.inbox (bucket, workflow_id, message_id, kind, name, payload, sent_at)
    SELECT $1, m.workflow_id, m.message_id, m.kind, m.name, m.payload, clock_timestamp()
    FROM   message AS m
    WHERE  m.found AND NOT m.known AND NOT m.ended AND NOT (m.kind = 'cancel' AND m.pivoted)
    ORDER  BY m.n
    ON CONFLICT (bucket, workflow_id, message_id) DO NOTHING
    RETURNING workflow_id, message_id
)
SELECT m.n,
       CASE WHEN p.message_id IS NOT NULL THEN 1
            WHEN m.known                  THEN 2
            WHEN NOT m.found              THEN 3
            WHEN m.ended                  THEN 4
            WHEN m.kind = 'cancel' AND m.pivoted THEN 5
            ELSE 2 END
FROM   message AS m
       LEFT JOIN put AS p ON p.workflow_id = m.workflow_id AND p.message_id = m.message_id`

// Send puts messages into inboxes, in the order of their keys.
func (s *Store) Send(ctx context.Context, ms []store.Message) ([]store.SendResult, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	what := fmt.Sprintf("send %d messages", len(ms))
	if len(ms) == 1 {
		what = fmt.Sprintf("send message %q to workflow %q", ms[0].ID, ms[0].WorkflowID)
	}
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	results := make([]store.SendResult, len(ms))
	var statements []statement
	for _, g := range groupsOfMessages(ms, buckets) {
		statements = append(statements, s.sendStatement(ms, g, results))
	}
	if err := s.write(ctx, what, statements...); err != nil {
		return nil, err
	}
	return results, nil
}

// SendTx puts one message into an inbox inside the caller's transaction, as StartTx
// starts a workflow.
func (s *Store) SendTx(ctx context.Context, tx store.Tx, m store.Message) (store.SendResult, error) {
	what := fmt.Sprintf("send message %q to workflow %q", m.ID, m.WorkflowID)
	on, ok := tx.Unwrap().(pgx.Tx)
	if !ok {
		return 0, fmt.Errorf("%s: the transaction is a %T, want a pgx.Tx", what, tx.Unwrap())
	}
	buckets, err := s.bucketsIn(ctx, on)
	if err != nil {
		return 0, translate(what, err, reading)
	}
	results := make([]store.SendResult, 1)
	g := group{bucket: bucketOf(m.WorkflowID, buckets), at: []int{0}}
	if err := queryOn(ctx, on, s.sendStatement([]store.Message{m}, g, results)); err != nil {
		return 0, translate(what, err, reading)
	}
	return results[0], nil
}

// groupsOfMessages deals messages by their workflows, each group sorted by
// workflow and id.
func groupsOfMessages(ms []store.Message, buckets int) []group {
	key := func(i int) string { return ms[i].WorkflowID + "\x00" + ms[i].ID }
	sorted := groups(len(ms), 1, key)[0].at
	dealt := groups(len(sorted), buckets, func(i int) string { return ms[sorted[i]].WorkflowID })
	for _, g := range dealt {
		for k, i := range g.at {
			g.at[k] = sorted[i]
		}
	}
	return dealt
}

// sendStatement makes the statement for one bucket; reading its answer fills
// in results.
func (s *Store) sendStatement(ms []store.Message, g group, results []store.SendResult) statement {
	n := len(g.at)
	workflows, ids, kinds, names := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	payloads := make([][]byte, n)
	for k, i := range g.at {
		m := &ms[i]
		workflows[k], ids[k], kinds[k], names[k], payloads[k] = m.WorkflowID, m.ID, string(m.Kind), m.Name, m.Payload
	}
	return statement{
		sql:  s.sql.send,
		args: []any{g.bucket, workflows, ids, kinds, names, payloads},
		read: func(rows pgx.Rows) error {
			var n, result int64
			if err := rows.Scan(&n, &result); err != nil {
				return err
			}
			results[g.at[n-1]] = store.SendResult(result)
			return nil
		},
	}
}
