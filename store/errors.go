package store

import (
	"errors"
	"fmt"
)

// Returned by calls that name something.
var (
	// ErrNotFound says that there is no workflow of that id.
	ErrNotFound = errors.New("not found")

	// ErrQueueNotFound says that there is no queue of that name.
	ErrQueueNotFound = errors.New("no such queue")

	// ErrGraphChanged says that a definition was registered before, under the
	// same name and version, with another graph.
	ErrGraphChanged = errors.New("graph changed without a new version")

	// ErrNoRows is what Row.Scan returns when the query gave no row.
	ErrNoRows = errors.New("no rows")
)

// Returned by every call that writes; they tell the caller what to do next.
var (
	// ErrRetry says that nothing was written and that the same call may
	// succeed: a serialization failure, a deadlock, no connection to be had, a
	// server that is starting or read-only for now.
	ErrRetry = errors.New("rolled back, may be tried again")

	// ErrBusy says that nothing was written because a row stayed locked by
	// somebody else. It is also an ErrRetry.
	ErrBusy = fmt.Errorf("row is locked: %w", ErrRetry)

	// ErrUnsure says that the answer was lost: the call may have been applied.
	// Read back before anything else.
	ErrUnsure = errors.New("answer lost, outcome unknown")

	// ErrClosed says that the store was closed by this process.
	ErrClosed = errors.New("store is closed")

	// ErrFull says that nothing was written because the disk is full. It is
	// also an ErrRetry.
	ErrFull = fmt.Errorf("disk is full: %w", ErrRetry)
)

// Returned by Open, Migrate and Check.
var (
	// ErrSchemaMissing says that the database holds no schema of pawl's.
	ErrSchemaMissing = errors.New("schema is missing")

	// ErrSchemaBehind says that the schema needs migrations that this program
	// carries.
	ErrSchemaBehind = errors.New("schema is behind this program")

	// ErrSchemaAhead says that the schema asks for a newer program.
	ErrSchemaAhead = errors.New("schema needs a newer program")

	// ErrBadURL says that a database URL cannot be used. Its message never
	// holds the URL's password.
	ErrBadURL = errors.New("bad database URL")

	// ErrBadSchemaName says that a schema name is not 1 to 48 of a-z, 0-9 and
	// '_', beginning with a letter.
	ErrBadSchemaName = errors.New("bad schema name")
)
