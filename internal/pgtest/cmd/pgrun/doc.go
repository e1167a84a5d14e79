// Command pgrun runs another command beside a throw-away PostgreSQL, so that all
// test processes of one run share a server:
//
//	pgrun go test ./...
//
// The command finds the server's URL in the environment variable
// PAWL_TEST_DATABASE_URL. If that is set already, the command is run as it is, and
// no server is started. Its input, output and exit code are passed through; one that
// ended by a signal gives 128 plus the signal's number, as in a shell. If
// the server can't be started, the exit code is 125, if the command can't, 127.
//
// SIGINT and SIGTERM go to the command and all it started; a second one kills
// them. The server is stopped and removed in every case, even if pgrun is killed.
//
// The go command hides exit codes from its caller, so build pgrun and run the
// program, rather than using `go run`.
package main
