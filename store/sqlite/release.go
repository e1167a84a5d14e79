package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const releaseWorkflow = `
	UPDATE workflow SET
		owner = NULL, revision = revision + 1, updated_at = ?4,
		attempt = CASE WHEN ?5 OR step IS NULL OR attempt = 0 THEN attempt ELSE attempt - 1 END,
		wake_at = CASE WHEN status IN ('PENDING', 'COMPENSATING') THEN ?4 ELSE wake_at END
	WHERE id = ?1 AND revision = ?2 AND owner = ?3`

// Release gives back workflows that w owns, to be claimed at once if they were
// executing. A guard that does not hold is skipped.
func (s *Store) Release(ctx context.Context, w store.WorkerID, rs []store.Released) error {
	if len(rs) == 0 {
		return nil
	}
	return s.write(ctx, "release workflows", func(tx *writeTx) error {
		for _, i := range sortedBy(rs, func(r store.Released) string { return r.ID }) {
			r := rs[i]
			if _, err := tx.exec(ctx, releaseWorkflow, r.ID, r.Revision, w[:], tx.now, r.Begun); err != nil {
				return fmt.Errorf("workflow %q: %w", r.ID, err)
			}
		}
		return nil
	})
}
