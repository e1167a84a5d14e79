package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

const definitionsSQL = `
SELECT d.name, d.version, d.fingerprint, d.graph
FROM   {schema}.definition AS d
ORDER  BY d.name, d.version`

// openSQL counts what has not ended in all buckets. It reads the whole table.
const openSQL = `
SELECT w.definition, w.version, w.state, coalesce(w.step, ''), count(*), min(w.id)
FROM   {schema}.workflow AS w
WHERE  w.ended_at IS NULL
GROUP  BY w.definition, w.version, w.state, coalesce(w.step, '')
ORDER  BY w.definition, w.version, w.state, coalesce(w.step, '')`

// Definitions returns all recorded definitions.
func (s *Store) Definitions(ctx context.Context) (all []store.Definition, err error) {
	err = s.query(ctx, "read definitions", statement{sql: s.sql.definitions, read: scan(&all, func(rows pgx.Rows, d *store.Definition) error {
		return rows.Scan(&d.Name, &d.Version, &d.Fingerprint, &d.Graph)
	})})
	return all, err
}

// Open counts what has not ended, by where it stands.
func (s *Store) Open(ctx context.Context) (all []store.Standing, err error) {
	err = s.query(ctx, "count open workflows", statement{sql: s.sql.open, read: scan(&all, func(rows pgx.Rows, o *store.Standing) error {
		return rows.Scan(&o.Name, &o.Version, &o.State, &o.Step, &o.Count, &o.ID)
	})})
	return all, err
}
