package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// mailSQL reads the fresh messages of workflows that a worker owns.
const mailSQL = `
SELECT i.workflow_id, i.message_id, i.kind, i.name, i.payload, i.sent_at
FROM   {schema}.inbox AS i
       CROSS JOIN LATERAL (
           SELECT w.owner
           FROM   {schema}.workflow AS w
           WHERE  w.bucket = $1 AND w.id = i.workflow_id
           OFFSET 0
       ) AS w
WHERE  i.bucket = $1 AND i.fresh AND i.consumed_at IS NULL AND w.owner = $2
ORDER  BY i.sent_at, i.message_id`

// Mail returns the fresh messages of workflows that w owns, oldest first.
func (s *Store) Mail(ctx context.Context, w store.WorkerID) ([]store.Message, error) {
	var messages []store.Message
	err := s.lookInBuckets(ctx, "read mail", func(bucket int16) statement {
		return statement{sql: s.sql.mail, args: []any{bucket, uuid(w)}, read: scan(&messages, scanMessage)}
	})
	slices.SortStableFunc(messages, func(a, b store.Message) int { return a.SentAt.Compare(b.SentAt) })
	return messages, err
}

// lookInBuckets asks the same of every bucket, in one round trip.
func (s *Store) lookInBuckets(ctx context.Context, what string, ask func(bucket int16) statement) error {
	buckets, err := s.buckets(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	statements := make([]statement, buckets)
	for b := range buckets {
		statements[b] = ask(int16(b))
	}
	return s.look(ctx, what, statements...)
}

// scanMessage reads the columns of mailSQL and inboxSQL.
func scanMessage(rows pgx.Rows, m *store.Message) error {
	err := rows.Scan(&m.WorkflowID, &m.ID, &m.Kind, &m.Name, &m.Payload, &m.SentAt)
	m.SentAt = m.SentAt.UTC()
	return err
}
