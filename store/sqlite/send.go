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
	err := s.write(ctx, "send messages", func(tx *writeTx) error {
		find, err := tx.stmt(ctx, selectTarget)
		if err != nil {
			return err
		}
		insert, err := tx.stmt(ctx, insertMessage)
		if err != nil {
			return err
		}
		for _, i := range sortedBy(ms, func(m store.Message) string { return m.WorkflowID }) {
			if results[i], err = send(ctx, find, insert, &ms[i], tx.now); err != nil {
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

// SendTx puts one message into an inbox in a transaction of the caller's, as StartTx
// starts a workflow.
func (s *Store) SendTx(ctx context.Context, tx store.Tx, m store.Message) (store.SendResult, error) {
	own, ok := tx.Unwrap().(*sql.Tx)
	if !ok {
		return 0, fmt.Errorf("send to workflow %q: the transaction is a %T, not a *sql.Tx", m.WorkflowID, tx.Unwrap())
	}
	r, err := send(ctx, inTx{own, selectTarget}, inTx{own, insertMessage}, &m, s.clock())
	if err != nil {
		return 0, fmt.Errorf("send to workflow %q: %w", m.WorkflowID, translate(ctx, err))
	}
	return r, nil
}

// send inserts m, or says why not.
func send(ctx context.Context, find, insert statement, m *store.Message, now int64) (store.SendResult, error) {
	var (
		status             store.Status
		pivoted, duplicate bool
	)
	err := find.QueryRowContext(ctx, m.WorkflowID, m.ID).Scan(&status, &pivoted, &duplicate)
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
	_, err = insert.ExecContext(ctx, m.WorkflowID, m.ID, string(m.Kind), m.Name, payload, now)
	return store.SendAccepted, err
}
