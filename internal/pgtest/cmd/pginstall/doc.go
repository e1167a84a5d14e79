// Command pginstall makes sure that tests find a PostgreSQL: it installs one
// where none is found, and prints the folder of its programs.
//
//	go run ./internal/pgtest/cmd/pginstall
//
// It does nothing if the environment variable PAWL_TEST_DATABASE_URL names a
// server. Where it installs from is described at pgtest.Install. The exit code is
// 1 if there is no PostgreSQL in the end, and standard error says why.
package main
