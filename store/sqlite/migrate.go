package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pawlhq/pawl/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// generation is the newest migration that this program carries: what it needs
// of a schema, and what a schema's min_binary is compared with.
var generation = len(migrations)

// migration is a file of the folder migrations, named <version>_<name>.sql.
type migration struct {
	store.Migration
	sql string
}

var migrations = mustLoad()

// mustLoad reads the embedded migrations, whose versions count from 1.
func mustLoad() []migration {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic(err)
	}
	all := make([]migration, len(names))
	for i, file := range names {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file, "migrations/"), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			panic(fmt.Sprintf("migration %s is not number %d", file, i+1))
		}
		all[i] = migration{store.Migration{Version: version, Name: name}, string(text)}
	}
	return all
}

const createMigrations = `
	CREATE TABLE IF NOT EXISTS schema_migrations (
		version    INTEGER NOT NULL PRIMARY KEY,
		name       TEXT    NOT NULL,
		applied_at INTEGER NOT NULL)`

const insertMigration = `
	INSERT INTO schema_migrations (version, name, applied_at)
	VALUES (?1, ?2, ?3)`

// Migrate applies the missing migrations in one transaction, which holds the
// write lock: of any number of processes one applies them, and the others find
// them applied. A schema that needs a newer program is left alone.
func (s *Store) Migrate(ctx context.Context) (applied []store.Migration, err error) {
	if err := s.Check(ctx); err == nil {
		return nil, nil
	}
	end, err := s.enterTurn(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer end()
	if applied, err = s.migrateInTurn(ctx); err != nil {
		return nil, fmt.Errorf("migrate: %w", translate(ctx, err))
	}
	return applied, nil
}

func (s *Store) migrateInTurn(ctx context.Context) ([]store.Migration, error) {
	sqlTx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer sqlTx.Rollback() //nolint:errcheck // does nothing after the commit
	tx := &writeTx{Tx: sqlTx, stmts: &s.stmts, now: s.clock()}
	if _, err := tx.ExecContext(ctx, createMigrations); err != nil {
		return nil, err
	}
	st, err := readSchema(ctx, tx.query)
	if err != nil {
		return nil, err
	}
	if st.minBinary > generation {
		return nil, st.check()
	}
	var applied []store.Migration
	for _, m := range migrations[min(st.newest, len(migrations)):] {
		if err := tx.apply(ctx, m); err != nil {
			return nil, fmt.Errorf("migration %d %s: %w", m.Version, m.Name, err)
		}
		m.AppliedAt = timeOf(tx.now)
		applied = append(applied, m.Migration)
	}
	return applied, commit(tx.Tx)
}

func (tx *writeTx) apply(ctx context.Context, m migration) error {
	if _, err := tx.ExecContext(ctx, m.sql); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, insertMigration, m.Version, m.Name, tx.now)
	return err
}

const selectTables = `
	SELECT count(*) FROM sqlite_schema
	WHERE type = 'table' AND name IN ('schema_migrations', 'schema_info')`

const selectMigrations = `
	SELECT version, name, applied_at FROM schema_migrations
	ORDER BY version`

const selectMinBinary = `SELECT min_binary FROM schema_info`

// schema is what a file says of its schema.
type schema struct {
	applied   []store.Migration
	newest    int // 0 if none is applied
	minBinary int
}

func readSchema(ctx context.Context, query querier) (st schema, err error) {
	tables, err := collectRows(ctx, query, scanInt, selectTables)
	if err != nil || tables[0] == 0 {
		return st, err
	}
	if st.applied, err = collectRows(ctx, query, scanMigration, selectMigrations); err != nil || len(st.applied) == 0 {
		return st, err
	}
	st.newest = st.applied[len(st.applied)-1].Version
	lowest, err := collectRows(ctx, query, scanInt, selectMinBinary)
	if err == nil && len(lowest) == 1 {
		st.minBinary = lowest[0]
	}
	return st, err
}

func scanInt(scan func(...any) error) (n int, err error) {
	err = scan(&n)
	return n, err
}

func scanMigration(scan func(...any) error) (m store.Migration, err error) {
	var applied int64
	err = scan(&m.Version, &m.Name, &applied)
	m.AppliedAt = timeOf(applied)
	return m, err
}

// check says whether this program may work on the schema.
func (st schema) check() error {
	switch {
	case st.newest == 0:
		return fmt.Errorf("%w: run \"workerd migrate up\"", store.ErrSchemaMissing)
	case st.minBinary > generation:
		return fmt.Errorf("%w: the schema needs a program of generation %d, this one is %d: run a newer program", store.ErrSchemaAhead, st.minBinary, generation)
	case st.newest < generation:
		return fmt.Errorf("%w: it is at migration %d and this program needs %d: run \"workerd migrate up\"", store.ErrSchemaBehind, st.newest, generation)
	}
	return nil
}

// Check returns nil if this program may work on the schema.
func (s *Store) Check(ctx context.Context) error {
	return s.read(ctx, "check the schema", func(query querier) error {
		st, err := readSchema(ctx, query)
		if err != nil {
			return err
		}
		return st.check()
	})
}

// Migrations returns all migrations that this program carries, and when each
// was applied.
func (s *Store) Migrations(ctx context.Context) (all []store.Migration, err error) {
	var st schema
	err = s.read(ctx, "list migrations", func(query querier) error {
		st, err = readSchema(ctx, query)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range migrations {
		for _, a := range st.applied {
			if a.Version == m.Version {
				m.AppliedAt = a.AppliedAt
			}
		}
		all = append(all, m.Migration)
	}
	return all, nil
}
