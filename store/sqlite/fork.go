package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const countCopies = `UPDATE workflow SET revision = ?2 WHERE id = ?1`

// Fork inserts a workflow with what it begins behind.
func (s *Store) Fork(ctx context.Context, f store.Fork) (r store.StartResult, err error) {
	err = s.write(ctx, fmt.Sprintf("fork workflow %q", f.ID), func(tx *writeTx) error {
		insert, err := tx.stmt(ctx, insertWorkflow)
		if err != nil {
			return err
		}
		find, err := tx.stmt(ctx, selectStarted)
		if err != nil {
			return err
		}
		f.Owner = store.WorkerID{}
		if err := tx.ensureQueue(ctx, f.Queue); err != nil {
			return err
		}
		if r, err = start(ctx, insert, find, f.New, tx.now); err != nil || !r.Created {
			return err
		}
		for i, rec := range f.Steps {
			_, err := tx.exec(ctx, insertStep, f.ID, rec.Step, rec.Group, rec.Item, string(rec.Status), rec.Attempt, blob(rec.Input), blob(rec.Output),
				null(rec.Error), micros(rec.Took), i+2, rec.EndedAt.UnixMicro())
			if err != nil {
				return err
			}
		}
		r.Revision = int64(len(f.Steps)) + 1
		if _, err := tx.exec(ctx, countCopies, f.ID, r.Revision); err != nil {
			return err
		}
		for _, q := range f.Asked {
			payload := q.Payload
			if payload == nil {
				payload = []byte{}
			}
			if _, err := tx.exec(ctx, amended, q.WorkflowID, q.ID, string(q.Kind), q.Name, payload, tx.now, null(q.Answer)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.StartResult{}, err
	}
	return r, nil
}
