package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const selectTarget = `
	SELECT status, pivoted,
		EXISTS (SELECT 1 FROM inbox WHERE workflow_id = ?1 AND message_id = ?2)
	FROM workflow
	WHERE id = ?1`

const insertMessage = `
	INSERT INTO inbox (workflow_id, message_id, kind, name, payload, sent_at, fresh)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)`

// Send puts messages into inboxes. A message that was there before is a
// duplicate, whatever has become of it or of the workflow since.
func (s *Store) Send(ctx context.Context, ms []store.Message) ([]store.SendResult, error) {
	results := make([]store.SendResult, len(ms))
	if len(ms) == 0 {
		return results, nil
	}
	err := s.write(ctx, "send messages", func(tx *writeTx) (err error) {
		for _, i := range sortedBy(ms, func(m store.Message) string { return m.WorkflowID }) {
			if results[i], err = send(ctx, tx, &ms[i]); err != nil {
				return fmt.Errorf("workflow %q: %w", ms[i].WorkflowID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func send(ctx context.Context, tx *writeTx, m *store.Message) (store.SendResult, error) {
	find, err := tx.stmt(ctx, selectTarget)
	if err != nil {
		return 0, err
	}
	var (
		status             store.Status
		pivoted, duplicate bool
	)
	err = find.QueryRowContext(ctx, m.WorkflowID, m.ID).Scan(&status, &pivoted, &duplicate)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.SendNotFound, nil
	case err != nil:
		return 0, err
	case duplicate:
		return store.SendDuplicate, nil
	case status.Ended():
		return store.SendEnded, nil
	case pivoted && m.Kind == store.MessageCancel:
		return store.SendPastPivot, nil
	}
	payload := m.Payload
	if payload == nil {
		payload = []byte{}
	}
	_, err = tx.exec(ctx, insertMessage, m.WorkflowID, m.ID, string(m.Kind), m.Name, payload, tx.now)
	return store.SendAccepted, err
}
