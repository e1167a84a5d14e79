package store

import "context"

// Tx is an open transaction, reduced to what every store can do, so that one
// step body runs on all of them. Placeholders are $1, $2 and so on. It is not
// safe for concurrent use, and of no use after the body has returned.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, sql string, args ...any) (rows int64, err error)

	// QueryRow runs a query that gives one row. Its error comes from Scan:
	// ErrNoRows if there was none.
	QueryRow(ctx context.Context, sql string, args ...any) Row

	// Query runs a query. The rows must be closed.
	Query(ctx context.Context, sql string, args ...any) (Rows, error)

	// Unwrap returns the store's own transaction: a pgx.Tx or a *sql.Tx.
	Unwrap() any
}

// Row is one row, or the error of the query that should have given it.
type Row interface {
	// Scan copies the row's columns into dest, or returns the query's error:
	// ErrNoRows if there was no row.
	Scan(dest ...any) error
}

// Rows is the answer to a query, read one row at a time.
type Rows interface {
	// Next goes to the next row, and reports whether there is one.
	Next() bool

	// Scan copies the row's columns into dest.
	Scan(dest ...any) error

	// Err returns why reading ended early, or nil.
	Err() error

	// Close ends the reading. It may be called more than once.
	Close() error
}
