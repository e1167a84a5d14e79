package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// amended keeps the request that has caused a transition as taken up. One that was
// taken up before is left as it is.
const amended = `
	INSERT INTO inbox (workflow_id, message_id, kind, name, payload, sent_at, fresh, consumed_at, answer)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?6, ?7)
	ON CONFLICT (workflow_id, message_id) DO UPDATE
	SET fresh = 0, consumed_at = excluded.consumed_at, answer = excluded.answer
	WHERE consumed_at IS NULL`

const selectRequests = `
	SELECT workflow_id, message_id, kind, name, payload, sent_at, consumed_at, coalesce(answer, '') FROM inbox
	WHERE workflow_id >= ?1 AND workflow_id < ?2 AND kind IN ('signal', 'cancel', 'verb')
	ORDER BY sent_at, workflow_id, rowid`

const expireWorkflow = `
	UPDATE workflow SET
		status = 'EXPIRED', revision = revision + 1, data = x'', cursor = NULL, error = NULL,
		step = NULL, grp = NULL, attempt = NULL, failures = NULL, crashes = NULL, awaits = NULL,
		updated_at = ?2
	WHERE id = ?1 AND instr(id, char(31)) = 0 AND ended_at IS NOT NULL AND status <> 'EXPIRED'`

// What goes with the payloads of an expired workflow, from its id up to the end of
// its family.
const (
	expireSteps    = `DELETE FROM step WHERE workflow_id >= ?1 AND workflow_id < ?2`
	expireMail     = `DELETE FROM inbox WHERE workflow_id >= ?1 AND workflow_id < ?2 AND kind NOT IN ('cancel', 'verb')`
	expireBranches = `DELETE FROM workflow WHERE id > ?1 AND id < ?2`
)

// errTakenBefore rolls back a transition whose request was taken up before.
var errTakenBefore = errors.New("the request was taken up before")

// Amend writes a transition of a workflow that nobody owns, and its request.
func (s *Store) Amend(ctx context.Context, t store.Transition, r store.Request) (store.Verdict, error) {
	verdict := store.Lost
	err := s.write(ctx, fmt.Sprintf("amend workflow %q", t.ID), func(tx *writeTx) error {
		c, err := newCommitter(ctx, tx, store.WorkerID{})
		if err != nil {
			return err
		}
		t.Release = true
		if verdict, err = c.apply(ctx, &t); err != nil || verdict == store.Lost {
			return err
		}
		payload := r.Payload
		if payload == nil {
			payload = []byte{}
		}
		n, err := tx.exec(ctx, amended, t.ID, r.ID, string(r.Kind), r.Name, payload, tx.now, null(r.Answer))
		if err == nil && n == 0 {
			verdict = store.Lost
			return errTakenBefore
		}
		return err
	})
	if errors.Is(err, errTakenBefore) {
		return store.Lost, nil
	}
	if err != nil {
		return store.Lost, err
	}
	return verdict, nil
}

// Requests returns what was asked of a workflow, oldest first.
func (s *Store) Requests(ctx context.Context, id string) (found []store.Request, err error) {
	err = s.read(ctx, fmt.Sprintf("read the requests of %q", id), func(query querier) error {
		found, err = collectRows(ctx, query, scanRequest, selectRequests, id, store.FamilyEnd(id))
		return err
	})
	return found, err
}

func scanRequest(scan func(...any) error) (r store.Request, err error) {
	var sent int64
	var taken sql.NullInt64
	err = scan(&r.WorkflowID, &r.ID, &r.Kind, &r.Name, &r.Payload, &sent, &taken, &r.Answer)
	r.SentAt, r.TakenAt = timeOf(sent), timeOrZero(taken)
	return r, err
}

// Expire makes tombstones of workflows that have ended.
func (s *Store) Expire(ctx context.Context, ids []string) (expired []string, err error) {
	err = s.write(ctx, fmt.Sprintf("expire %d workflows", len(ids)), func(tx *writeTx) error {
		expired = nil
		for _, id := range ids {
			n, err := tx.exec(ctx, expireWorkflow, id, tx.now)
			if err != nil {
				return fmt.Errorf("workflow %q: %w", id, err)
			}
			if n == 0 {
				continue
			}
			for _, text := range []string{expireSteps, expireMail, expireProgress, expireBranches} {
				if _, err := tx.exec(ctx, text, id, store.FamilyEnd(id)); err != nil {
					return fmt.Errorf("workflow %q: %w", id, err)
				}
			}
			expired = append(expired, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return expired, nil
}
