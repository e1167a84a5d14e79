package sqlite

import (
	"context"

	"github.com/pawlhq/pawl/store"
)

const selectDefinitions = `
	SELECT name, version, fingerprint, graph FROM definition
	ORDER BY name, version`

const countOpen = `
	SELECT definition, version, state, coalesce(step, ''), count(*), min(id) FROM workflow
	WHERE ended_at IS NULL
	GROUP BY definition, version, state, coalesce(step, '')
	ORDER BY definition, version, state, coalesce(step, '')`

// Definitions returns all recorded definitions.
func (s *Store) Definitions(ctx context.Context) (all []store.Definition, err error) {
	err = s.read(ctx, "read definitions", func(query querier) error {
		all, err = collectRows(ctx, query, func(scan func(...any) error) (d store.Definition, err error) {
			err = scan(&d.Name, &d.Version, &d.Fingerprint, &d.Graph)
			return d, err
		}, selectDefinitions)
		return err
	})
	return all, err
}

// Open counts what has not ended, by where it stands.
func (s *Store) Open(ctx context.Context) (all []store.Standing, err error) {
	err = s.read(ctx, "count open workflows", func(query querier) error {
		all, err = collectRows(ctx, query, func(scan func(...any) error) (o store.Standing, err error) {
			err = scan(&o.Name, &o.Version, &o.State, &o.Step, &o.Count, &o.ID)
			return o, err
		}, countOpen)
		return err
	})
	return all, err
}
