package sqlite

import (
	"context"

	"github.com/pawlhq/pawl/store"
)

const messageColumns = `workflow_id, message_id, kind, name, payload, sent_at`

func scanMessage(scan func(...any) error) (m store.Message, err error) {
	var sent int64
	err = scan(&m.WorkflowID, &m.ID, &m.Kind, &m.Name, &m.Payload, &sent)
	m.SentAt = timeOf(sent)
	return m, err
}

const freshMessages = `
	SELECT ` + messageColumns + ` FROM inbox i
	CROSS JOIN workflow w ON w.id = i.workflow_id
	WHERE i.fresh AND w.owner = ?1
	ORDER BY i.sent_at, i.message_id`

// Mail returns the fresh messages of the workflows that w owns.
func (s *Store) Mail(ctx context.Context, w store.WorkerID) (ms []store.Message, err error) {
	err = s.read(ctx, "read mail", func(query querier) error {
		ms, err = collectRows(ctx, query, scanMessage, freshMessages, w[:])
		return err
	})
	return ms, err
}
