package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// EnvURL is the environment variable that names the server on which [URL] creates
// its databases, as a URL: postgres://user:password@host:port/database.
const EnvURL = "PAWL_TEST_DATABASE_URL"

// databaseTimeout bounds the creation and the removal of a database.
const databaseTimeout = 60 * time.Second

// URL returns the URL of a new, empty database in UTF-8, which is dropped when
// the test ends, even if connections to it are still open. A call takes
// some tens of milliseconds, the first one of a process about two seconds
// where it has to start the server.
func URL(t testing.TB) string {
	t.Helper()
	server, err := sharedURL()
	if err != nil {
		t.Fatalf("find PostgreSQL for the test: %v", err)
	}
	name := databaseName(t.Name())
	// template0 holds nothing that somebody added, and nobody is connected to
	// it, so that many databases can be copied from it at once.
	if err := execute(server, "CREATE DATABASE "+quote(name)+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		t.Fatalf("create database %q: %v", name, err)
	}
	t.Cleanup(func() {
		if err := execute(server, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Errorf("drop database %q: %v", name, err)
		}
	})
	return withDatabase(server, name)
}

// Main runs a package's tests, stops the server that they started, and exits with
// the tests' code. It is for a package's TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// Without it the server ends a moment after the test process.
func Main(m *testing.M) {
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// shared is the server of this test process, where the environment names none.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error // why it could not be started; not tried again
}

// sharedURL returns the server on which databases are created.
func sharedURL() (*url.URL, error) {
	if text := os.Getenv(EnvURL); text != "" {
		return parseURL(text)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Launch()
	}
	if shared.err != nil {
		return nil, shared.err
	}
	return parseURL(shared.server.URL())
}

// closeShared removes the server that sharedURL started, if it did.
func closeShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return nil
	}
	server := shared.server
	shared.server, shared.err = nil, errors.New("the tests of this process are over")
	return server.Close()
}

// parseURL reads the URL of a server. Its errors don't repeat the URL, which
// may hold a password.
func parseURL(text string) (*url.URL, error) {
	server, err := url.Parse(text)
	if err != nil || (server.Scheme != "postgres" && server.Scheme != "postgresql") {
		return nil, fmt.Errorf("%s is not a URL of the form postgres://user:password@host:port/database", EnvURL)
	}
	return server, nil
}

// withDatabase returns the URL of another database on the same server.
func withDatabase(server *url.URL, name string) string {
	other := *server
	other.Path, other.RawPath = "/"+name, ""
	return other.String()
}

// databaseName returns a new name, which shows in PostgreSQL's own views which
// test a database belongs to.
func databaseName(test string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, test)
	// PostgreSQL cuts a name after 63 bytes.
	return "pawl_" + readable[:min(len(readable), 32)] + "_" + strings.ToLower(rand.Text()[:16])
}

func quote(name string) string {
	return pgx.Identifier{name}.Sanitize()
}

// execute runs one statement on a connection of its own.
func execute(server *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
