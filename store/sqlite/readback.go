package sqlite

import (
	"context"

	"github.com/pawlhq/pawl/store"
)

const ownedBy = `
	SELECT id, revision, owner FROM workflow
	WHERE owner = ?1
	ORDER BY id`

// Owned returns all that w owns.
func (s *Store) Owned(ctx context.Context, w store.WorkerID) (ps []store.Position, err error) {
	err = s.read(ctx, "list owned workflows", func(query querier) error {
		ps, err = collectRows(ctx, query, scanPosition, ownedBy, w[:])
		return err
	})
	return ps, err
}

func scanPosition(scan func(...any) error) (p store.Position, err error) {
	var own []byte
	err = scan(&p.ID, &p.Revision, &own)
	p.Owner = workerID(own)
	return p, err
}

const selectOwned = `
	SELECT ` + workflowColumns + `, data FROM workflow
	WHERE owner = ?1 AND id IN (SELECT value FROM json_each(?2))
	ORDER BY id`

// Load returns those of the workflows that w owns, with their inboxes. It
// waits for the commit under way, if any, and reads both from one state.
func (s *Store) Load(ctx context.Context, w store.WorkerID, ids []string) (cs []store.Claimed, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "load workflows", func(tx *writeTx) error {
		owned, err := collectRows(ctx, tx.query, scanWorkflowData, selectOwned, w[:], jsonOf(ids))
		if err != nil {
			return err
		}
		cs = make([]store.Claimed, len(owned))
		for i := range owned {
			if cs[i], err = withInbox(ctx, tx.query, owned[i], tx.now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return cs, nil
}

const positionOf = `
	SELECT id, revision, owner FROM workflow
	WHERE id = ?1`

// ReadBack returns how the given workflows stand. It takes the write lock, and
// so waits for whatever commit is under way.
func (s *Store) ReadBack(ctx context.Context, ids []string) (ps []store.Position, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.write(ctx, "read back workflows", func(tx *writeTx) error {
		ps = make([]store.Position, 0, len(ids))
		for _, id := range ids {
			found, err := collectRows(ctx, tx.query, scanPosition, positionOf, id)
			if err != nil {
				return err
			}
			ps = append(ps, found...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ps, nil
}
