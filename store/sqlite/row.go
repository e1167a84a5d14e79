package sqlite

import (
	"database/sql"
	"time"

	"github.com/pawlhq/pawl/store"
)

// null returns nil for a zero value, which is stored as NULL.
func null[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// blob returns nil for nil and the bytes otherwise, empty ones included.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// owner returns the bytes of w, or nil for nobody.
func owner(w store.WorkerID) any {
	if w.IsZero() {
		return nil
	}
	return w[:]
}

func workerID(b []byte) (w store.WorkerID) {
	copy(w[:], b)
	return w
}

// timeOf returns the instant of a stored time.
func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

// timeOrZero returns the instant of a stored time, the zero time for NULL.
func timeOrZero(us sql.NullInt64) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return timeOf(us.Int64)
}

// workflowColumns are what scanWorkflow reads, in its order.
const workflowColumns = `id, definition, version, status, state, revision, owner, wake_at,
	awaits, step, grp, attempt, failures, crashes, error, pivoted,
	parent, input_hash, cursor, created_at, updated_at, ended_at, queue, queue_key, priority`

// scanWorkflow reads workflowColumns and whatever more is asked for.
func scanWorkflow(scan func(...any) error, more ...any) (w store.Workflow, err error) {
	var (
		own, hash                       []byte
		wake, ended                     sql.NullInt64
		awaits, step, reason, parent    sql.NullString
		queue, key                      sql.NullString
		priority                        sql.NullInt64
		group, attempt, failures, crash sql.NullInt64
		created, updated                int64
	)
	dest := []any{
		&w.ID, &w.Definition.Name, &w.Definition.Version, &w.Status, &w.State, &w.Revision, &own, &wake,
		&awaits, &step, &group, &attempt, &failures, &crash, &reason, &w.Pivoted,
		&parent, &hash, &w.Cursor, &created, &updated, &ended, &queue, &key, &priority,
	}
	if err := scan(append(dest, more...)...); err != nil {
		return store.Workflow{}, err
	}
	w.Owner, w.WakeAt = workerID(own), timeOrZero(wake)
	w.Awaits, w.Error, w.Parent = awaits.String, reason.String, parent.String
	w.Mark = store.Mark{
		Step:     step.String,
		Group:    int(group.Int64),
		Attempt:  int(attempt.Int64),
		Failures: int(failures.Int64),
		Crashes:  int(crash.Int64),
	}
	w.Line = store.Line{Queue: queue.String, Key: key.String, Priority: int(priority.Int64)}
	copy(w.InputHash[:], hash)
	w.CreatedAt, w.UpdatedAt, w.EndedAt = timeOf(created), timeOf(updated), timeOrZero(ended)
	return w, nil
}

// scanWorkflowData reads workflowColumns and data.
func scanWorkflowData(scan func(...any) error) (store.Workflow, error) {
	var data []byte
	w, err := scanWorkflow(scan, &data)
	w.Data = data
	return w, err
}

// collect reads all rows with scan and closes them.
func collect[T any](rows *sql.Rows, err error, scan func(func(...any) error) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	var all []T
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

func scanString(scan func(...any) error) (s string, err error) {
	err = scan(&s)
	return s, err
}
