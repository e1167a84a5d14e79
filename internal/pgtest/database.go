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

// URL returns the URL of an empty database in UTF-8, which is gone when the test
// ends, even if connections to it are still open. A call takes some tens of
// milliseconds, or less in a package whose TestMain calls [Main]. The first
// one of a process takes about two seconds where it has to start the server.
func URL(t testing.TB) string {
	t.Helper()
	server, own, err := sharedURL()
	if err != nil {
		t.Fatalf("find PostgreSQL for the test: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	name := databaseName(t.Name())
	if err := provide(ctx, server, name); err != nil {
		t.Fatalf("create database %q: %v", name, err)
	}
	t.Cleanup(func() {
		if err := giveBack(server, name, own || underMain.Load()); err != nil {
			t.Errorf("drop database %q: %v", name, err)
		}
	})
	return withDatabase(server, name)
}

// Main runs a package's tests, removes what they had on the server, and exits
// with the tests' code. It is for a package's TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// With it, tests one after another share the cost of creating a database: an
// emptied one serves the next test under a new name. Without it every database is
// dropped when its test ends, and a server that this process started ends a moment
// after the process.
func Main(m *testing.M) {
	underMain.Store(true)
	code := m.Run()
	if err := cleanUp(); err != nil {
		fmt.Fprintln(os.Stderr, "clean up PostgreSQL after the tests:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// cleanUp removes the server that this process started, or else the databases
// that it kept on somebody else's.
func cleanUp() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if server := shared.server; server != nil {
		shared.server, shared.err = nil, errors.New("the tests of this process are over")
		return server.Close()
	}
	text := os.Getenv(EnvURL)
	if text == "" {
		return nil
	}
	server, err := parseURL(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	return dropSpares(ctx, server)
}

// shared is the server of this test process, where the environment names none.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error // why it could not be started; not tried again
}

// sharedURL returns the server on which databases are created, and whether it
// ends with this process.
func sharedURL() (server *url.URL, own bool, err error) {
	if text := os.Getenv(EnvURL); text != "" {
		server, err := parseURL(text)
		return server, false, err
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = Launch(Shared...)
	}
	if shared.err != nil {
		return nil, false, shared.err
	}
	server, err = parseURL(shared.server.URL())
	return server, true, err
}

// provide makes an empty database of the given name: one that another test has
// used, or else a new one.
func provide(ctx context.Context, server *url.URL, name string) error {
	if spare := takeSpare(); spare != "" {
		return rename(ctx, server, spare, name)
	}
	// template0 holds nothing that somebody added, and nobody is connected to
	// it, so that many databases can be copied from it at once.
	return execute(ctx, server, "CREATE DATABASE "+quote(name)+" TEMPLATE template0 ENCODING 'UTF8'")
}

// giveBack removes a database, or keeps it for another test where that is allowed.
func giveBack(server *url.URL, name string, mayKeep bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if mayKeep {
		now, kept, err := keepSpare(ctx, server, name)
		if err == nil && kept {
			return nil
		}
		// Dropping it needs less than emptying it.
		name = now
	}
	return drop(ctx, server, name)
}

// drop removes a database, with the sessions that are still in it.
func drop(ctx context.Context, server *url.URL, name string) error {
	return execute(ctx, server, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
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
func execute(ctx context.Context, server *url.URL, statement string) error {
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
