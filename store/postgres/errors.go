package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlhq/pawl/store"
)

// stage is how far a call had come when it failed.
type stage uint8

const (
	unsent     stage = iota // nothing reached the server
	reading                 // nothing was to be written, or COMMIT was not sent yet
	sent                    // everything was sent, COMMIT included, but it was not its turn
	committing              // COMMIT was under way
)

// unsentError marks an error that came before anything was sent.
type unsentError struct{ error }

// Unwrap returns the error itself.
func (e *unsentError) Unwrap() error { return e.error }

// migrateHint is the command that brings a schema up to date.
const migrateHint = "run `workerd migrate up`"

// translate is the one point where errors of the driver become errors of
// package store. What came back from the driver stays reachable by errors.As.
func translate(what string, err error, at stage) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, store.ErrClosed) {
		return fmt.Errorf("%s: %w", what, err)
	}
	sentinel := outcome(err, at)
	switch {
	case sentinel == nil:
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(sentinel, store.ErrSchemaMissing):
		return fmt.Errorf("%s: %w: %s: %w", what, sentinel, migrateHint, err)
	}
	return fmt.Errorf("%s: %w: %w", what, sentinel, err)
}

// outcome says what became of a call: one of store's errors, or nil if it was
// refused for good.
func outcome(err error, at stage) error {
	var before *unsentError
	if errors.As(err, &before) {
		at = unsent
	}
	var refused *pgconn.PgError
	if at != unsent && errors.As(err, &refused) {
		return verdict(refused, at)
	}
	if at == unsent || at == reading || pgconn.SafeToRetry(err) {
		return store.ErrRetry
	}
	return store.ErrUnsure
}

// verdict reads an answer of the server's.
func verdict(e *pgconn.PgError, at stage) error {
	switch e.Code {
	case "55P03": // lock_not_available
		return store.ErrBusy
	case "53100": // disk_full
		return store.ErrFull
	case "40001", "40P01", // serialization_failure, deadlock_detected
		"57P03", // cannot_connect_now
		"53300", // too_many_connections
		"53000", // insufficient_resources
		"53200", // out_of_memory
		"25006", // read_only_sql_transaction
		"57014", // query_canceled: a timeout of the server's
		"25P03", // idle_in_transaction_session_timeout
		"25P04", // transaction_timeout
		"57P05": // idle_session_timeout
		return store.ErrRetry
	case "42P01", "3F000": // undefined_table, invalid_schema_name
		return store.ErrSchemaMissing
	}
	if !fatal(e) {
		return nil
	}
	if at == committing || (at == sent && strings.HasPrefix(e.Code, "08")) {
		return store.ErrUnsure
	}
	return store.ErrRetry
}

// fatal reports whether the server, or a pooler before it (class 08), ended
// the session. A server that does so before COMMIT has had its turn rolls
// back; a pooler cannot know how far the server had come.
func fatal(e *pgconn.PgError) bool {
	severity := e.SeverityUnlocalized
	if severity == "" {
		severity = e.Severity
	}
	return severity == "FATAL" || severity == "PANIC" || strings.HasPrefix(e.Code, "08")
}

// retryable reports whether the server asked for another try of a
// transaction of which nothing was committed.
func retryable(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "40001", "40P01", "57P03", "53300", "25006":
		return true
	}
	return fatal(refused) && refused.Code != "25P03" && refused.Code != "25P04"
}

// overLimit reports whether the server ended a statement or a transaction for
// taking too long.
func overLimit(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case "57014", "25P03", "25P04":
		return true
	}
	return false
}
