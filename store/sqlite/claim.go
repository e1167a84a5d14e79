package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/store"
)

const livingWorker = `
	SELECT 1 FROM worker
	WHERE id = ?1 AND dead_at IS NULL`

// dueWorkflows reads the head of the index workflow_ready, one definition at a
// time: what nobody here knows never stands in the way.
const dueWorkflows = `
	SELECT id, wake_at FROM workflow
	WHERE owner IS NULL AND wake_at IS NOT NULL
		AND definition = ?1 AND version = ?2 AND wake_at <= ?3 AND queue IS NULL
	ORDER BY wake_at
	LIMIT ?4`

// mailedWorkflows begins with the fresh messages, which are few. Of those in a queue
// it takes only the ones that are to be cancelled before they have begun.
const mailedWorkflows = `
	SELECT w.id, min(i.sent_at) FROM inbox i
	CROSS JOIN workflow w ON w.id = i.workflow_id
	WHERE i.fresh
		AND w.owner IS NULL AND w.ended_at IS NULL
		AND w.definition = ?1 AND w.version = ?2
		AND (w.queue IS NULL OR (NOT w.begun AND i.kind = 'cancel'))
	GROUP BY w.id
	ORDER BY min(i.sent_at)
	LIMIT ?3`

// claimWorkflow begins the next attempt of a due workflow that has a mark; ?4 says
// that it has gone through its queue.
const claimWorkflow = `
	UPDATE workflow SET
		owner = ?2, revision = revision + 1, updated_at = ?3,
		begun = CASE WHEN ?4 THEN 1 ELSE begun END,
		attempt = CASE WHEN step IS NOT NULL AND wake_at <= ?3 THEN attempt + 1 ELSE attempt END,
		status = CASE WHEN step IS NOT NULL AND wake_at <= ?3 AND status = 'WAITING' THEN 'PENDING' ELSE status END
	WHERE id = ?1 AND owner IS NULL AND ended_at IS NULL
	RETURNING ` + workflowColumns + `, data`

const unconsumedMessages = `
	SELECT ` + messageColumns + ` FROM inbox
	WHERE workflow_id = ?1 AND consumed_at IS NULL
	ORDER BY sent_at, message_id`

// Claim looks without the write lock whether there is anything to claim, so an
// idle worker keeps nobody from writing.
func (s *Store) Claim(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	if limit <= 0 || len(defs) == 0 {
		return nil, nil
	}
	found := false
	err := s.read(ctx, "claim workflows", func(query querier) error {
		ids, err := candidates(ctx, query, defs, s.clock(), 1)
		found = len(ids) > 0
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	var claimed []store.Claimed
	err = s.write(ctx, "claim workflows", func(tx *writeTx) error {
		claimed, err = claim(ctx, tx, w, defs, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

func claim(ctx context.Context, tx *writeTx, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	if alive, err := isAlive(ctx, tx, w); err != nil || !alive {
		return nil, err
	}
	ids, err := candidates(ctx, tx.query, defs, tx.now, limit)
	if err != nil {
		return nil, err
	}
	return own(ctx, tx, w, ids, false)
}

// own makes w the owner of the workflows; queued says that they come from a queue.
func own(ctx context.Context, tx *writeTx, w store.WorkerID, ids []string, queued bool) ([]store.Claimed, error) {
	update, err := tx.stmt(ctx, claimWorkflow)
	if err != nil {
		return nil, err
	}
	claimed := make([]store.Claimed, 0, len(ids))
	for _, id := range ids {
		wf, err := scanWorkflowData(update.QueryRowContext(ctx, id, w[:], tx.now, queued).Scan)
		if err != nil {
			return nil, fmt.Errorf("workflow %q: %w", id, err)
		}
		c, err := withInbox(ctx, tx.query, wf, tx.now)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, c)
	}
	return claimed, nil
}

func isAlive(ctx context.Context, tx *writeTx, w store.WorkerID) (bool, error) {
	find, err := tx.stmt(ctx, livingWorker)
	if err != nil {
		return false, err
	}
	var one int
	err = find.QueryRowContext(ctx, w[:]).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// candidate is a workflow that may be claimed, and since when.
type candidate struct {
	id    string
	since int64
}

// candidates returns the ids of up to limit workflows of defs that may be
// claimed, those first that have waited longest.
func candidates(ctx context.Context, query querier, defs []store.Def, now int64, limit int) ([]string, error) {
	var all []candidate
	for _, d := range defs {
		due, err := collectRows(ctx, query, scanCandidate, dueWorkflows, d.Name, d.Version, now, limit)
		if err != nil {
			return nil, err
		}
		mailed, err := collectRows(ctx, query, scanCandidate, mailedWorkflows, d.Name, d.Version, limit)
		if err != nil {
			return nil, err
		}
		all = append(append(all, due...), mailed...)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.since, b.since) })
	ids := make([]string, 0, min(limit, len(all)))
	seen := make(map[string]bool, cap(ids))
	for _, c := range all {
		if len(ids) == limit {
			break
		}
		if !seen[c.id] {
			seen[c.id] = true
			ids = append(ids, c.id)
		}
	}
	return ids, nil
}

func scanCandidate(scan func(...any) error) (c candidate, err error) {
	err = scan(&c.id, &c.since)
	return c, err
}

// withInbox adds to a workflow what its owner must know beside it.
func withInbox(ctx context.Context, query querier, w store.Workflow, now int64) (store.Claimed, error) {
	due := !w.WakeAt.IsZero() && w.WakeAt.UnixMicro() <= now
	inbox, err := collectRows(ctx, query, scanMessage, unconsumedMessages, w.ID)
	return store.Claimed{Workflow: w, Due: due, Inbox: inbox}, err
}
