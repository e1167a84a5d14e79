package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// putDefinitionSQL records a version of a definition that is not known yet.
const putDefinitionSQL = `
INSERT INTO {schema}.definition (name, version, fingerprint, graph)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name, version) DO NOTHING`

// fingerprintSQL reads by which graph a version is known.
const fingerprintSQL = `
SELECT d.fingerprint
FROM   {schema}.definition AS d
WHERE  d.name = $1 AND d.version = $2`

// PutDefinition records a definition, or finds it recorded.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition) error {
	what := fmt.Sprintf("record definition %q version %d", d.Name, d.Version)
	known := ""
	graph := d.Graph
	if graph == nil {
		graph = []byte{}
	}
	err := s.write(ctx, what,
		statement{sql: s.sql.putDefinition, args: []any{d.Name, d.Version, d.Fingerprint, graph}},
		statement{
			sql:  s.sql.fingerprint,
			args: []any{d.Name, d.Version},
			read: func(rows pgx.Rows) error { return rows.Scan(&known) },
		})
	if err != nil {
		return err
	}
	if known != d.Fingerprint {
		return fmt.Errorf("%s: %w", what, store.ErrGraphChanged)
	}
	return nil
}
