// Package pgtest gives tests a real PostgreSQL: an empty database in a few tens
// of milliseconds, or a whole server of their own that they may stop and start.
//
//	func TestTransfer(t *testing.T) {
//		pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
//		...
//	}
//
// # Which server
//
// [URL] creates its database on, in this order:
//
//   - the server that the environment variable PAWL_TEST_DATABASE_URL names. Its
//     role must be allowed to create databases. The command cmd/pgrun starts a
//     throw-away server, sets the variable and runs another command beneath it;
//     `make test` uses it so that all test processes share one server;
//   - a throw-away server that the test process starts at its first call and
//     that ends with the process. [Main] makes that end an orderly one.
//
// [Start] always starts a new server, for tests in which PostgreSQL itself fails.
//
// A machine without PostgreSQL is an error, never a reason to skip a test:
// the test fails and says what to run. The command cmd/pginstall installs one.
//
// # How a throw-away server is set up
//
// It listens on a free port of 127.0.0.1, wants a random password, and keeps
// everything in one temporary folder. One of [Start] or [Launch] is as durable as
// PostgreSQL's defaults make it, so that measurements mean something; the one
// that many tests share does not wait for the disk (see [Shared]). PostgreSQL refuses to run as root; for root
// it runs as the user postgres, or else nobody.
//
// # It never outlives the test process
//
// A small shell process reads a pipe that only the test process can write to.
// When the test process is gone, however it went, the read ends, and the shell
// stops the server and removes its folder. So neither a panic, nor a test
// timeout, nor SIGKILL leaves a server behind. This, and the way in which
// processes are started, needs a Unix system.
package pgtest
