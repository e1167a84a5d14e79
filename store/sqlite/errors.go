package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawlhq/pawl/store"
)

// translate says what an error of a call with ctx means for the caller. It is
// the one place that does; the driver's error stays reachable by errors.As.
func translate(ctx context.Context, err error) error {
	switch {
	case err == nil, isTranslated(err):
		return err
	case isBusy(err) && ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", store.ErrBusy, ctx.Err(), err)
	case isBusy(err):
		return fmt.Errorf("%w: %w", store.ErrBusy, err)
	case isFull(err):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case isInterrupted(err) && ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w: %w", store.ErrRetry, ctx.Err(), err)
	case isInterrupted(err):
		return fmt.Errorf("%w: %w", store.ErrRetry, err)
	case isMissingTable(err):
		return fmt.Errorf("%w: run \"workerd migrate up\": %w", store.ErrSchemaMissing, err)
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("%w: it is not a SQLite database: %w", store.ErrBadURL, err)
	case errors.Is(err, sqlite3.CANTOPEN):
		return fmt.Errorf("%w: the file cannot be opened: %w", store.ErrBadURL, err)
	}
	return err
}

func isTranslated(err error) bool {
	for _, is := range []error{store.ErrRetry, store.ErrUnsure, store.ErrSchemaMissing, store.ErrBadURL} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

func isBusy(err error) bool {
	return errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED)
}

// isFull reports whether there was no space for a write. The driver's files
// report a full device as a failed write (IOERR_WRITE, or IOERR_SHMSIZE for
// the index of the log) without its cause, so every failed write counts as
// one: it is told alike, nothing of it is kept, and the call may be tried
// again.
func isFull(err error) bool {
	return errors.Is(err, sqlite3.FULL) ||
		errors.Is(err, sqlite3.IOERR_WRITE) || errors.Is(err, sqlite3.IOERR_SHMSIZE)
}

// isUnsure reports whether an error of COMMIT leaves open if the transaction
// is in the log, such as a flush that failed after it was written.
func isUnsure(err error) bool { return errors.Is(err, sqlite3.IOERR) && !isFull(err) }

// isInterrupted reports whether the caller's context ended the call. Whatever
// it had written is rolled back then, since a COMMIT is never interrupted.
func isInterrupted(err error) bool {
	return errors.Is(err, sqlite3.INTERRUPT) || errors.Is(err, sql.ErrTxDone) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isDriver reports whether an error is the database's own, and not that of a
// wrong use or of a conversion.
func isDriver(err error) bool {
	var code sqlite3.ErrorCode
	return errors.As(err, &code)
}

// isMissingTable reports whether one of the schema's own tables is not there.
// A missing table of the user's is the user's business.
func isMissingTable(err error) bool {
	if !errors.Is(err, sqlite3.ERROR) {
		return false
	}
	_, table, found := strings.Cut(err.Error(), "no such table: ")
	if !found {
		return false
	}
	switch strings.TrimPrefix(table, "main.") {
	case "workflow", "step", "inbox", "worker", "definition", "schedule", "slot", "schema_migrations", "schema_info":
		return true
	}
	return false
}
