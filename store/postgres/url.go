package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/store"
)

// DefaultSchema is the schema that is used where none is named.
const DefaultSchema = "pawl"

// Option tunes Open.
type Option func(*settings)

// settings is what options set.
type settings struct {
	schema  string
	pool    int
	buckets int
}

// WithSchema names the schema that holds the tables: 1 to 48 of a-z, 0-9 and
// '_', beginning with a letter. The default is [DefaultSchema].
func WithSchema(name string) Option {
	return func(s *settings) { s.schema = name }
}

// WithPool bounds the pool of connections. One is enough to work; the default
// is 10. Two more are held beside it: one renews the worker's lease, one
// listens for hints.
func WithPool(connections int) Option {
	return func(s *settings) { s.pool = connections }
}

// WithBuckets says into how many buckets the workflows are dealt, 1 to 1,024,
// in a schema that Migrate makes. An existing schema keeps its number. The
// default is 1, and right for one server: buckets are what a distributed
// PostgreSQL spreads over its nodes, and each costs a claim a statement.
func WithBuckets(n int) Option {
	return func(s *settings) { s.buckets = n }
}

// parseURL turns a URL and the options into the pool's configuration and the
// schema's name.
func parseURL(text string, set settings) (*pgxpool.Config, string, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, "", fmt.Errorf("%w: it must begin with postgres:// or postgresql://", store.ErrBadURL)
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %s", store.ErrBadURL, reason(text, err))
	}

	params := config.ConnConfig.RuntimeParams
	schema, named := params["schema"]
	delete(params, "schema")
	if !named {
		schema = DefaultSchema
	}
	if set.schema != "" {
		schema = set.schema
	}
	if !goodSchemaName(schema) {
		return nil, "", fmt.Errorf("%w: %q", store.ErrBadSchemaName, schema)
	}

	switch {
	case set.pool < 0 || set.pool > 10_000:
		return nil, "", fmt.Errorf("a pool of %d connections, want 1 to 10000", set.pool)
	case set.pool > 0:
		config.MaxConns = int32(set.pool)
	case !strings.Contains(text, "pool_max_conns"):
		config.MaxConns = defaultPool
	}
	config.MinConns = min(config.MinConns, config.MaxConns)
	if config.ConnConfig.ConnectTimeout == 0 || !strings.Contains(text, "connect_timeout") {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.PingTimeout = connectTimeout
	if _, ok := params["application_name"]; !ok {
		params["application_name"] = "pawl"
	}
	return config, schema, nil
}

// reason says why a URL cannot be parsed. It quotes nothing of a URL whose
// password it cannot tell apart, and blanks the password out of the others.
func reason(text string, err error) string {
	u, bad := url.Parse(text)
	if bad != nil {
		return "it cannot be parsed (special characters in the user or password must be percent-encoded)"
	}
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return "it holds a setting that is not understood"
	}
	inner := parse.Unwrap()
	if inner == nil {
		return "it holds a setting that is not understood"
	}
	message := inner.Error()
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, secret := range secrets {
		if secret != "" && (strings.Contains(message, secret) || strings.Contains(message, url.QueryEscape(secret))) {
			return "it holds a setting that is not understood"
		}
	}
	if strings.Contains(message, "://") {
		return "it cannot be parsed"
	}
	return message
}

// goodSchemaName reports whether a name may be used for a schema. It is quoted
// wherever it is used all the same.
func goodSchemaName(name string) bool {
	if len(name) == 0 || len(name) > 48 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return !strings.HasPrefix(name, "pg_")
}

// line is a connection outside the pool: a renewal must not queue behind a
// worker's own work. It connects when it is first needed, and again after it
// broke.
type line struct {
	config *pgx.ConnConfig
	turn   chan struct{} // holds one token: whoever has it may use conn
	conn   *pgx.Conn
}

// newLine returns a line that has not connected yet.
func newLine(config *pgx.ConnConfig) *line {
	l := &line{config: config, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// use hands the connection to do, alone. Its error says that there was none
// to be had, or is do's.
func (l *line) use(ctx context.Context, do func(*pgx.Conn) error) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return &unsentError{ctx.Err()}
	}
	defer func() { l.turn <- struct{}{} }()
	if l.conn == nil || l.conn.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, l.config.Copy())
		if err != nil {
			return &unsentError{err}
		}
		l.conn = conn
	}
	return do(l.conn)
}

// close waits for whoever uses the connection, and closes it for good.
func (l *line) close() {
	<-l.turn
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = l.conn.Close(ctx)
}
