package sqlite

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

const selectFingerprint = `
	SELECT fingerprint FROM definition
	WHERE name = ?1 AND version = ?2`

const insertDefinition = `
	INSERT INTO definition (name, version, fingerprint, graph, created_at)
	VALUES (?1, ?2, ?3, ?4, ?5)
	ON CONFLICT (name, version) DO NOTHING`

// PutDefinition records a definition once. Every later call compares.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition) error {
	return s.write(ctx, fmt.Sprintf("record definition %q version %d", d.Name, d.Version), func(tx *writeTx) error {
		graph := d.Graph
		if graph == nil {
			graph = []byte{}
		}
		if _, err := tx.exec(ctx, insertDefinition, d.Name, d.Version, d.Fingerprint, graph, tx.now); err != nil {
			return err
		}
		recorded, err := collectRows(ctx, tx.query, scanString, selectFingerprint, d.Name, d.Version)
		if err != nil {
			return err
		}
		if len(recorded) != 1 || recorded[0] != d.Fingerprint {
			return store.ErrGraphChanged
		}
		return nil
	})
}
