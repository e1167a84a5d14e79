package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one file: NNNN_name.sql.
type migration struct {
	version int
	name    string
	sql     string
}

// carried are the migrations of this program, oldest first.
var carried = mustRead(migrationFiles)

// generation is the newest migration that this program knows. A schema says
// the lowest generation that may use it.
var generation = carried[len(carried)-1].version

// mustRead reads the embedded migrations, which are numbered without gaps.
func mustRead(files fs.FS) []migration {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		panic(err)
	}
	var list []migration
	for i, path := range names {
		number, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			panic(fmt.Sprintf("migration %s: want number %d", path, i+1))
		}
		sql, err := fs.ReadFile(files, path)
		if err != nil {
			panic(err)
		}
		list = append(list, migration{version: version, name: name, sql: string(sql)})
	}
	return list
}

// infoSQL reads the lowest generation that may use the schema.
const infoSQL = `SELECT min_binary FROM {schema}.schema_info`

// appliedSQL reads which migrations were applied.
const appliedSQL = `SELECT version, applied_at FROM {schema}.schema_migrations ORDER BY version`

// migrateSettings bound how long a migration waits for a lock on a table in
// use: those who come after it wait as long.
const migrateSettings = `
SELECT set_config('lock_timeout', '5s', true)`

// state is what a schema says about itself.
type state struct {
	minBinary int
	applied   map[int]time.Time
}

// newest is the newest migration that was applied.
func (st state) newest() int {
	n := 0
	for version := range st.applied {
		n = max(n, version)
	}
	return n
}

// ahead returns ErrSchemaAhead if the schema asks for a newer program.
func (st state) ahead() error {
	if st.minBinary > generation {
		return fmt.Errorf("%w: it is for generation %d and later, this program is of %d: run a newer program",
			store.ErrSchemaAhead, st.minBinary, generation)
	}
	return nil
}

// readState asks the schema about itself.
func (s *Store) readState(ctx context.Context, on queryer) (state, error) {
	st := state{applied: map[int]time.Time{}}
	err := queryOn(ctx, on, statement{sql: s.sql.info, read: func(rows pgx.Rows) error {
		return rows.Scan(&st.minBinary)
	}})
	if err != nil {
		return state{}, err
	}
	err = queryOn(ctx, on, statement{sql: s.sql.applied, read: func(rows pgx.Rows) error {
		var version int
		var at time.Time
		err := rows.Scan(&version, &at)
		st.applied[version] = at.UTC()
		return err
	}})
	return st, err
}

// Check returns nil if this program may work on the schema.
func (s *Store) Check(ctx context.Context) error {
	what := fmt.Sprintf("check schema %q", s.schema)
	st, err := s.stateNow(ctx, what)
	if err != nil {
		return err
	}
	if err := st.ahead(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if newest := st.newest(); newest < generation {
		return fmt.Errorf("%s: %w: it is at migration %d, this program needs %d: %s",
			what, store.ErrSchemaBehind, newest, generation, migrateHint)
	}
	return nil
}

// stateNow is readState on a connection of the pool.
func (s *Store) stateNow(ctx context.Context, what string) (state, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return state{}, translate(what, err, unsent)
	}
	defer conn.Release()
	st, err := s.readState(ctx, conn)
	return st, translate(what, err, reading)
}

// Migrations returns all migrations that this program carries and when each
// was applied.
func (s *Store) Migrations(ctx context.Context) ([]store.Migration, error) {
	st, err := s.stateNow(ctx, fmt.Sprintf("read migrations of schema %q", s.schema))
	if err != nil && !errors.Is(err, store.ErrSchemaMissing) {
		return nil, err
	}
	list := make([]store.Migration, len(carried))
	for i, m := range carried {
		list[i] = store.Migration{Version: m.version, Name: m.name, AppliedAt: st.applied[m.version]}
	}
	return list, nil
}

// Migrate brings the schema up to date in one transaction, under a lock that
// ends with it. It needs the right to create tables in the schema, and to
// create the schema where there is none. It returns store.ErrSchemaAhead if
// the schema asks for a newer program.
func (s *Store) Migrate(ctx context.Context) ([]store.Migration, error) {
	what := fmt.Sprintf("migrate schema %q", s.schema)
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, translate(what, err, unsent)
	}
	defer conn.Release()
	applied, at, err := s.migrateOn(ctx, conn.Conn())
	if err != nil {
		rollback(ctx, conn.Conn())
		if errors.Is(err, store.ErrSchemaAhead) {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		return nil, translate(what, err, at)
	}
	return applied, nil
}

// migrateOn is Migrate on a connection. On an error it says how far it came.
func (s *Store) migrateOn(ctx context.Context, conn *pgx.Conn) ([]store.Migration, stage, error) {
	exists, err := s.lockSchema(ctx, conn)
	if err != nil {
		return nil, reading, err
	}
	st := state{}
	if exists {
		if st, err = s.readState(ctx, conn); err != nil {
			return nil, reading, err
		}
		if err := st.ahead(); err != nil {
			return nil, reading, err
		}
	}
	var applied []store.Migration
	for _, m := range carried {
		if m.version <= st.newest() {
			continue
		}
		at, err := s.apply(ctx, conn, m)
		if err != nil {
			return nil, reading, fmt.Errorf("migration %d (%s): %w", m.version, m.name, err)
		}
		applied = append(applied, store.Migration{Version: m.version, Name: m.name, AppliedAt: at})
	}
	if _, err := conn.Exec(ctx, commit); err != nil {
		return nil, committing, err
	}
	return applied, committing, nil
}

// lockSchema begins the transaction and waits for its turn, then makes the
// schema if it must, and tells whether there are tables in it already.
func (s *Store) lockSchema(ctx context.Context, conn *pgx.Conn) (exists bool, err error) {
	if _, err := conn.Exec(ctx, begin); err != nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.lockKey()); err != nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, migrateSettings); err != nil {
		return false, err
	}
	var found bool
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1),
		       EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'schema_migrations')`,
		s.schema).Scan(&found, &exists)
	if err != nil || found {
		return exists, err
	}
	_, err = conn.Exec(ctx, inSchema("CREATE SCHEMA {schema}", s.schema))
	return false, err
}

// lockKey is the advisory lock under which the schema is migrated.
func (s *Store) lockKey() int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("pawl migrate " + s.schema))
	return int64(h.Sum64())
}

// apply runs one migration and records it.
func (s *Store) apply(ctx context.Context, conn *pgx.Conn, m migration) (at time.Time, err error) {
	if _, err := conn.Exec(ctx, inSchema(m.sql, s.schema)); err != nil {
		return at, err
	}
	if m.version == 1 {
		_, err := conn.Exec(ctx, inSchema("UPDATE {schema}.schema_info SET buckets = $1", s.schema), s.wanted)
		if err != nil {
			return at, err
		}
	}
	err = conn.QueryRow(ctx,
		inSchema("INSERT INTO {schema}.schema_migrations (version, name) VALUES ($1, $2) RETURNING applied_at", s.schema),
		m.version, m.name).Scan(&at)
	return at.UTC(), err
}
