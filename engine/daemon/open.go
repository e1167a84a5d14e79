package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/postgres"
	"github.com/pawlhq/pawl/store/sqlite"
)

// OpenStore opens the store that the scheme of a database URL chooses:
//
//	sqlite:PATH                  a file, which is created and migrated where needed
//	postgres://…, postgresql://… a server; the schema is neither made nor checked
//
// Schema names the PostgreSQL schema; "" leaves it to the URL or the default,
// and SQLite has none. Errors: store.ErrBadURL and store.ErrBadSchemaName, or
// those of opening the store. None holds the URL's password.
func OpenStore(ctx context.Context, url, schema string) (store.Store, error) {
	db, err := parseDatabase(url, schema)
	if err != nil {
		return nil, err
	}
	return db.open(ctx)
}

// database is what a database URL names.
type database struct {
	path   string // of the SQLite file, or ""
	url    string // of PostgreSQL, with its password
	schema string // as asked for
	shown  string // for people: without the password
}

func parseDatabase(text, schema string) (database, error) {
	if path, ok := strings.CutPrefix(text, "sqlite:"); ok {
		return parseSQLite(path, schema)
	}
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return parsePostgres(text, schema)
	}
	// A text that is not understood may hold a password anywhere.
	return database{}, fmt.Errorf("%w: it begins with none of sqlite:, postgres:// and postgresql://", store.ErrBadURL)
}

func parseSQLite(path, schema string) (database, error) {
	rest, slashes := strings.CutPrefix(path, "//")
	_, behind, _ := strings.Cut(rest, ":")
	switch {
	case schema != "":
		return database{}, fmt.Errorf("%w: SQLite has no schemas, leave out --schema", store.ErrBadSchemaName)
	case slashes && strings.Contains(rest, "@"), strings.Contains(behind, "@"):
		return database{}, fmt.Errorf("%w: SQLite has no users and no passwords", store.ErrBadURL)
	case strings.Contains(rest, "?"):
		return database{}, fmt.Errorf("%w: options after a SQLite path are not understood", store.ErrBadURL)
	case strings.TrimSpace(rest) == "":
		return database{}, fmt.Errorf("%w: the path of the SQLite file is missing", store.ErrBadURL)
	}
	return database{path: rest, shown: "sqlite:" + rest}, nil
}

// parsePostgres checks that it is certain which part of a URL is the password,
// so that the rest may be shown. It shows nothing of one where it is not.
func parsePostgres(text, schema string) (database, error) {
	u, err := url.Parse(text)
	if err != nil {
		return database{}, fmt.Errorf("%w: it cannot be parsed", store.ErrBadURL)
	}
	_, rest, _ := strings.Cut(text, "://")
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.Contains(rest[len(authority):], "@") || strings.Contains(rest, "#") {
		return database{}, fmt.Errorf("%w: it holds a @ or # that must be written as %%40 or %%23, or a / or ? in its password", store.ErrBadURL)
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if user := u.User.Username(); user != "" && !strings.ContainsAny(user, ":@") {
		shown.User = url.User(user)
	}
	return database{url: text, schema: schema, shown: shown.String()}, nil
}

// open opens the database for use.
func (d database) open(ctx context.Context) (store.Store, error) {
	if d.path != "" {
		return asStore(sqlite.Open(ctx, d.path))
	}
	return d.openPostgres(ctx)
}

// openBare opens the database without migrating it.
func (d database) openBare(ctx context.Context) (store.Store, error) {
	if d.path != "" {
		return asStore(sqlite.Open(ctx, d.path, sqlite.WithoutMigrations()))
	}
	return d.openPostgres(ctx)
}

func (d database) openPostgres(ctx context.Context) (store.Store, error) {
	var opts []postgres.Option
	if d.schema != "" {
		opts = append(opts, postgres.WithSchema(d.schema))
	}
	return asStore(postgres.Open(ctx, d.url, opts...))
}

// asStore turns a nil of either store into a nil store.Store.
func asStore[S store.Store](st S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return st, nil
}

// exists returns an error if the database is a file that is not there.
func (d database) exists() error {
	if d.path == "" {
		return nil
	}
	if _, err := os.Stat(d.path); errors.Is(err, fs.ErrNotExist) {
		return &noFileError{d.path}
	}
	return nil
}

// noFileError says that there is no SQLite file to read.
type noFileError struct{ path string }

func (e *noFileError) Error() string { return fmt.Sprintf("there is no database file %q", e.path) }

// schemaShown is the schema's name for people; "" for SQLite.
func (d database) schemaShown() string {
	if d.path != "" {
		return ""
	}
	if d.schema != "" {
		return d.schema
	}
	if u, err := url.Parse(d.url); err == nil && u.Query().Get("schema") != "" {
		return u.Query().Get("schema")
	}
	return postgres.DefaultSchema
}
