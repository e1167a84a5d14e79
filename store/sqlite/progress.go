package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const putProgress = `
	INSERT INTO progress (workflow_id, key, progress, made_at)
	SELECT id, ?4, ?5, ?6 FROM workflow WHERE id = ?1 AND revision = ?2 AND owner IS ?3
	ON CONFLICT (workflow_id) DO UPDATE SET
		key = excluded.key, progress = excluded.progress, made_at = excluded.made_at`

const selectProgress = `SELECT progress FROM progress WHERE workflow_id = ?1 AND key = ?2`

const expireProgress = `DELETE FROM progress WHERE workflow_id >= ?1 AND workflow_id < ?2`

// Beat keeps how far a body has come.
func (s *Store) Beat(ctx context.Context, w store.WorkerID, g store.Guard, key string, progress []byte) (store.Verdict, error) {
	verdict := store.Lost
	if w.IsZero() {
		return verdict, nil
	}
	err := s.write(ctx, fmt.Sprintf("keep progress of workflow %q", g.ID), func(tx *writeTx) error {
		n, err := tx.exec(ctx, putProgress, g.ID, g.Revision, w[:], key, progress, tx.now)
		if n > 0 {
			verdict = store.Applied
		}
		return err
	})
	if err != nil {
		return store.Lost, err
	}
	return verdict, nil
}

// LastBeat returns the progress that is kept under a key.
func (s *Store) LastBeat(ctx context.Context, id, key string) (progress []byte, err error) {
	err = s.read(ctx, fmt.Sprintf("read progress of workflow %q", id), func(query querier) error {
		rows, err := collectRows(ctx, query, func(scan func(...any) error) (b []byte, err error) {
			err = scan(&b)
			return b, err
		}, selectProgress, id, key)
		if len(rows) > 0 {
			progress = rows[0]
		}
		return err
	})
	return progress, err
}
