package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// takeLease takes a named lease that is free, has run out, or is held already.
const takeLease = `
	INSERT INTO lease (name, holder, expires_at) VALUES (?1, ?2, ?3)
	ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
	WHERE holder = excluded.holder OR expires_at <= ?4`

const expirableWorkflows = `
	SELECT id FROM workflow
	WHERE definition = ?1 AND ended_at IS NOT NULL AND ended_at <= ?2
		AND status <> 'EXPIRED' AND instr(id, char(31)) = 0
	ORDER BY ended_at
	LIMIT ?3`

const oldTombstones = `
	SELECT id FROM workflow
	WHERE definition = ?1 AND ended_at IS NOT NULL AND ended_at <= ?2 AND status = 'EXPIRED'
	ORDER BY ended_at
	LIMIT ?3`

// Lead takes or lengthens a named lease.
func (s *Store) Lead(ctx context.Context, name string, w store.WorkerID, lease time.Duration) (holds bool, err error) {
	err = s.write(ctx, fmt.Sprintf("take lease %q", name), func(tx *writeTx) error {
		n, err := tx.exec(ctx, takeLease, name, w[:], tx.now+micros(lease), tx.now)
		holds = n > 0
		return err
	})
	return holds && err == nil, err
}

// Expirable returns the ids of what is old enough to become a tombstone.
func (s *Store) Expirable(ctx context.Context, definition string, after time.Duration, limit int) (ids []string, err error) {
	err = s.read(ctx, fmt.Sprintf("look for expired workflows of %q", definition), func(query querier) error {
		ids, err = collectRows(ctx, query, scanID, expirableWorkflows, definition, s.clock()-micros(after), limit)
		return err
	})
	return ids, err
}

func scanID(scan func(...any) error) (id string, err error) {
	err = scan(&id)
	return id, err
}

// Forget removes tombstones that are old enough.
func (s *Store) Forget(ctx context.Context, definition string, after time.Duration, limit int) (n int, err error) {
	err = s.write(ctx, fmt.Sprintf("forget tombstones of %q", definition), func(tx *writeTx) error {
		ids, err := collectRows(ctx, tx.query, scanID, oldTombstones, definition, tx.now-micros(after), limit)
		if err != nil {
			return err
		}
		for _, id := range ids {
			for _, text := range []string{`DELETE FROM inbox WHERE workflow_id = ?1`, `DELETE FROM workflow WHERE id = ?1`} {
				if _, err := tx.exec(ctx, text, id); err != nil {
					return fmt.Errorf("workflow %q: %w", id, err)
				}
			}
		}
		n = len(ids)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
