package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// catalogueSQL describes all that a schema holds, a line each. What names the
// schema itself says so neutrally.
const catalogueSQL = `
SELECT line FROM (
    SELECT 'relation ' || c.relname || ' kind=' || c.relkind::text || ' persistence=' || c.relpersistence::text
           || ' options=' || coalesce((SELECT string_agg(o, ',' ORDER BY o) FROM unnest(c.reloptions) AS o), '') AS line
    FROM   pg_class AS c WHERE c.relnamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'column ' || c.relname || '.' || a.attname || ' at=' || a.attnum || ' type=' || format_type(a.atttypid, a.atttypmod)
           || ' notnull=' || a.attnotnull || ' collation=' || coalesce(l.collname, '') || ' storage=' || a.attstorage::text
           || ' default=' || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
           || ' identity=' || a.attidentity::text || ' generated=' || a.attgenerated::text
    FROM   pg_class AS c
           JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
           LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
           LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
    WHERE  c.relnamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'constraint ' || c.conrelid::regclass::text || ' ' || c.conname || ' ' || pg_get_constraintdef(c.oid)
           || ' deferrable=' || c.condeferrable || ' validated=' || c.convalidated
    FROM   pg_constraint AS c WHERE c.connamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'index ' || pg_get_indexdef(i.indexrelid) || ' unique=' || i.indisunique || ' valid=' || i.indisvalid
    FROM   pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relnamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'trigger ' || t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE  c.relnamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'function ' || p.proname FROM pg_proc AS p WHERE p.pronamespace = $1::text::regnamespace
    UNION ALL
    SELECT 'type ' || t.typname FROM pg_type AS t WHERE t.typnamespace = $1::text::regnamespace
) AS catalogue
ORDER BY line COLLATE "C"`

// contentSQL describes the rows that a schema is born with.
const contentSQL = `
SELECT 'info ' || min_binary || ' ' || buckets FROM pawl.schema_info
UNION ALL
SELECT 'migration ' || version || ' ' || name FROM pawl.schema_migrations
ORDER BY 1`

// catalogue returns the description of the schema pawl.
func catalogue(t *testing.T, conn *pgx.Conn) []string {
	rows, err := conn.Query(t.Context(), catalogueSQL, "pawl")
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	rows, err = conn.Query(t.Context(), contentSQL)
	require.NoError(t, err)
	content, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return append(lines, content...)
}

// TestSchemaFileEqualsMigrations loads schema.sql into one database, migrates
// another, and compares all that their catalogues say.
func TestSchemaFileEqualsMigrations(t *testing.T) {
	t.Parallel()
	byFile := openAt(t, pgtest.URL(t))
	file := direct(t, byFile)
	_, err := file.Exec(t.Context(), pawl.SchemaSQL)
	require.NoError(t, err)
	migrated := direct(t, openNew(t))

	lines := catalogue(t, migrated)
	require.Greater(t, len(lines), 80)
	require.Equal(t, lines, catalogue(t, file))

	require.NoError(t, byFile.Check(t.Context()), "a schema made from the file is as good as a migrated one")
	again, err := byFile.Migrate(t.Context())
	require.NoError(t, err)
	require.Empty(t, again)
}

// TestCatalogueSeesDifferences shows that the comparison can fail: each change
// of a kind that matters changes the description.
func TestCatalogueSeesDifferences(t *testing.T) {
	t.Parallel()
	conn := direct(t, openNew(t))
	before := catalogue(t, conn)
	for _, change := range []string{
		`ALTER TABLE pawl.workflow SET (fillfactor = 51)`,
		`ALTER TABLE pawl.workflow ALTER COLUMN awaits SET NOT NULL`,
		`ALTER TABLE pawl.workflow ALTER COLUMN definition TYPE text COLLATE "POSIX"`,
		`ALTER TABLE pawl.inbox ALTER COLUMN sent_at SET DEFAULT now()`,
		`ALTER TABLE pawl.step ALTER COLUMN took_us TYPE integer`,
		`ALTER TABLE pawl.schema_info DROP CONSTRAINT schema_info_buckets`,
		`DROP INDEX pawl.workflow_ready; CREATE INDEX workflow_ready ON pawl.workflow (bucket, definition, version, wake_at) WHERE owner IS NULL`,
		`ALTER TABLE pawl.step ADD COLUMN more text`,
		`UPDATE pawl.schema_info SET min_binary = 2`,
	} {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), change)
		require.NoError(t, err, change)
		require.NotEqual(t, before, catalogue(t, conn), change)
		require.NoError(t, tx.Rollback(t.Context()))
	}
	require.Equal(t, before, catalogue(t, conn))
}

// TestRollingDeploy shows which programs may use which schema.
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openNew(t)
	conn := direct(t, s)
	exec := func(sql string) {
		_, err := conn.Exec(ctx, sql)
		require.NoError(t, err)
	}
	require.NoError(t, s.Check(ctx))

	// A newer program has added a migration that this one can live with.
	exec(`INSERT INTO pawl.schema_migrations (version, name) VALUES (999, 'additive')`)
	require.NoError(t, s.Check(ctx))
	applied, err := s.Migrate(ctx)
	require.NoError(t, err)
	require.Empty(t, applied)
	list, err := s.Migrations(ctx)
	require.NoError(t, err)
	require.Len(t, list, len(carried))
	require.False(t, list[0].AppliedAt.IsZero())

	// And one that it cannot.
	exec(`UPDATE pawl.schema_info SET min_binary = 999`)
	err = s.Check(ctx)
	require.ErrorIs(t, err, store.ErrSchemaAhead)
	require.ErrorContains(t, err, "run a newer program")
	_, err = s.Migrate(ctx)
	require.ErrorIs(t, err, store.ErrSchemaAhead)

	// A schema that lacks what this program brings.
	exec(`UPDATE pawl.schema_info SET min_binary = 1; DELETE FROM pawl.schema_migrations`)
	err = s.Check(ctx)
	require.ErrorIs(t, err, store.ErrSchemaBehind)
	require.ErrorContains(t, err, "workerd migrate up")
}

// TestSchemaMissing shows that every call on an empty database says so.
func TestSchemaMissing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openAt(t, pgtest.URL(t))
	calls := map[string]func() error{
		"check": func() error { return s.Check(ctx) },
		"get":   func() error { _, err := s.Get(ctx, "a"); return err },
		"start": func() error { _, err := s.Start(ctx, []store.New{{ID: "a"}}); return err },
		"renew": func() error { _, err := s.Renew(ctx, store.WorkerID{1}, 1); return err },
		"list":  func() error { _, err := s.Workers(ctx); return err },
	}
	for name, call := range calls {
		err := call()
		require.ErrorIs(t, err, store.ErrSchemaMissing, name)
		require.ErrorContains(t, err, "workerd migrate up", name)
	}
	list, err := s.Migrations(ctx)
	require.NoError(t, err)
	require.Len(t, list, len(carried))
	require.True(t, list[0].AppliedAt.IsZero())
}

// TestBucketsAreChosenOnce shows that the number of buckets is that of the
// schema, whatever later programs are told.
func TestBucketsAreChosenOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := pgtest.URL(t)
	first := openAt(t, url, WithBuckets(4))
	_, err := first.Migrate(ctx)
	require.NoError(t, err)
	second := openAt(t, url, WithBuckets(7))
	_, err = second.Migrate(ctx)
	require.NoError(t, err)
	n, err := second.buckets(ctx)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = Open(ctx, url, WithBuckets(0))
	require.ErrorContains(t, err, "0 buckets")
}

// TestBucketOfNeverChanges pins the hash: it is part of the schema.
func TestBucketOfNeverChanges(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int16{0, 0, 0}, []int16{bucketOf("", 1), bucketOf("a", 1), bucketOf("order-9527/PAY", 1)})
	require.Equal(t,
		[]int16{5, 12, 10, 0},
		[]int16{bucketOf("", 16), bucketOf("a", 16), bucketOf("order-9527/PAY", 16), bucketOf("zürich", 16)})
}
