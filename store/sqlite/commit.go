package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// updateWorkflow is the compare-and-swap. An ended row has no owner, so it never
// matches a worker's.
const updateWorkflow = `
	UPDATE workflow SET
		status = ?4, state = ?5, revision = revision + 1, owner = ?6,
		wake_at = CASE WHEN ?7 THEN wake_at ELSE ?8 END,
		awaits = ?9, step = ?10, grp = ?11, attempt = ?12, failures = ?13, crashes = ?14,
		error = ?15, pivoted = ?16, cursor = ?17, data = coalesce(?18, data),
		updated_at = ?19, ended_at = ?20
	WHERE id = ?1 AND revision = ?2 AND owner IS ?3`

const insertStep = `
	INSERT INTO step (
		workflow_id, step, grp, item, status, attempt, input, output, error, took_us, revision, ended_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`

const consumeMessage = `
	UPDATE inbox SET consumed_at = ?3, fresh = 0, answer = ?4
	WHERE workflow_id = ?1 AND message_id = ?2 AND consumed_at IS NULL`

const seeMessage = `
	UPDATE inbox SET fresh = 0
	WHERE workflow_id = ?1 AND message_id = ?2 AND fresh`

// Commit writes the transitions one after the other in one transaction, which
// costs one flush to the disk.
func (s *Store) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(ts))
	if len(ts) == 0 || w.IsZero() {
		return verdicts, nil // nobody owns nothing: all are lost
	}
	err := s.write(ctx, "commit transitions", func(tx *writeTx) error {
		c, err := newCommitter(ctx, tx, w)
		if err != nil {
			return err
		}
		for _, i := range sortedBy(ts, func(t store.Transition) string { return t.ID }) {
			if verdicts[i], err = c.apply(ctx, &ts[i]); err != nil {
				return fmt.Errorf("workflow %q: %w", ts[i].ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return verdicts, nil
}

// committer applies transitions of one worker in one transaction.
type committer struct {
	worker store.WorkerID
	now    int64
	tx     *writeTx

	update, step *sql.Stmt
}

func newCommitter(ctx context.Context, tx *writeTx, w store.WorkerID) (*committer, error) {
	c := &committer{worker: w, now: tx.now, tx: tx}
	var err error
	if c.update, err = tx.stmt(ctx, updateWorkflow); err != nil {
		return nil, err
	}
	c.step, err = tx.stmt(ctx, insertStep)
	return c, err
}

// apply writes t if its guard holds, and nothing otherwise.
func (c *committer) apply(ctx context.Context, t *store.Transition) (store.Verdict, error) {
	row := place(t.Place, c.worker, t.Release, c.now)
	n, err := affected(c.update.ExecContext(ctx,
		t.ID, t.Revision, owner(c.worker),
		string(t.Status), t.State, row.owner, row.keepWake, row.wakeAt,
		null(t.Awaits), row.mark[0], row.mark[1], row.mark[2], row.mark[3], row.mark[4],
		null(t.Error), t.Pivoted, blob(t.Cursor), blob(t.Data), c.now, row.endedAt))
	if err != nil || n == 0 {
		return store.Lost, err
	}
	for i := range t.Steps {
		if err := c.record(ctx, t, &t.Steps[i]); err != nil {
			return store.Lost, err
		}
	}
	if err := c.messages(ctx, t); err != nil {
		return store.Lost, err
	}
	return store.Applied, c.spread(ctx, t)
}

func (c *committer) record(ctx context.Context, t *store.Transition, r *store.StepRecord) error {
	_, err := c.step.ExecContext(ctx,
		t.ID, r.Step, r.Group, r.Item, string(r.Status), r.Attempt, blob(r.Input), blob(r.Output), null(r.Error),
		r.Took.Microseconds(), t.Revision+1, c.now)
	if err != nil {
		return fmt.Errorf("record step %q: %w", r.Step, err)
	}
	return nil
}

// messages takes up what t consumed and has seen.
func (c *committer) messages(ctx context.Context, t *store.Transition) error {
	for _, m := range t.Consumed {
		if _, err := c.tx.exec(ctx, consumeMessage, t.ID, m.MessageID, c.now, null(m.Answer)); err != nil {
			return fmt.Errorf("consume message %q: %w", m.MessageID, err)
		}
	}
	for _, id := range t.Seen {
		if _, err := c.tx.exec(ctx, seeMessage, t.ID, id); err != nil {
			return fmt.Errorf("see message %q: %w", id, err)
		}
	}
	return nil
}

// sendInside is insertMessage for a message that comes with a transition: it is
// dropped if its target has ended or is not there.
const sendInside = `
	INSERT INTO inbox (workflow_id, message_id, kind, name, payload, sent_at, fresh)
	SELECT id, ?2, ?3, ?4, ?5, ?6, 1 FROM workflow
	WHERE id = ?1 AND ended_at IS NULL
	ON CONFLICT (workflow_id, message_id) DO NOTHING`

// spread writes what t starts and sends.
func (c *committer) spread(ctx context.Context, t *store.Transition) error {
	for _, n := range t.Starts {
		n.Owner = store.WorkerID{}
		if _, err := c.tx.exec(ctx, insertWorkflow, startArgs(n, c.now)...); err != nil {
			return fmt.Errorf("start %q: %w", n.ID, err)
		}
	}
	for _, m := range t.Sends {
		payload := m.Payload
		if payload == nil {
			payload = []byte{}
		}
		_, err := c.tx.exec(ctx, sendInside, m.WorkflowID, m.ID, string(m.Kind), m.Name, payload, c.now)
		if err != nil {
			return fmt.Errorf("send message %q to %q: %w", m.ID, m.WorkflowID, err)
		}
	}
	return nil
}
