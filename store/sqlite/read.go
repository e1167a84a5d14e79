package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

// querier runs a prepared query, in a transaction or outside of one.
type querier func(ctx context.Context, query string, args ...any) (*sql.Rows, error)

// query runs a query in the transaction.
func (tx *writeTx) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := tx.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// read runs fn with queries of a reader's connection: they see what is
// committed, and wait for nobody. doing says what the call does, for its error.
func (s *Store) read(ctx context.Context, doing string, fn func(querier) error) error {
	if err := s.calls.enter(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer s.calls.leave()
	err := fn(func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
		stmt, err := s.reads.prepared(ctx, s.reader, query)
		if err != nil {
			return nil, err
		}
		return stmt.QueryContext(ctx, args...)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, translate(ctx, err))
	}
	return nil
}

// collectRows reads all rows of a query.
func collectRows[T any](ctx context.Context, query querier, scan func(func(...any) error) (T, error), text string, args ...any) ([]T, error) {
	rows, err := query(ctx, text, args...)
	return collect(rows, err, scan)
}

const selectWorkflow = `
	SELECT ` + workflowColumns + `, data FROM workflow
	WHERE id = ?1`

// Get returns a workflow, or store.ErrNotFound.
func (s *Store) Get(ctx context.Context, id string) (store.Workflow, error) {
	var found []store.Workflow
	err := s.read(ctx, fmt.Sprintf("get workflow %q", id), func(query querier) (err error) {
		found, err = collectRows(ctx, query, scanWorkflowData, selectWorkflow, id)
		if err == nil && len(found) == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return store.Workflow{}, err
	}
	return found[0], nil
}

const selectThese = `
	SELECT ` + workflowColumns + `, CASE WHEN ended_at IS NULL THEN NULL ELSE data END
	FROM workflow
	WHERE id IN (SELECT value FROM json_each(?1))`

// Ended returns those of the workflows that have ended, and the ids of those
// that do not exist.
func (s *Store) Ended(ctx context.Context, ids []string) (ended []store.Workflow, missing []string, err error) {
	var found []store.Workflow
	err = s.read(ctx, "look for ended workflows", func(query querier) error {
		found, err = collectRows(ctx, query, scanWorkflowData, selectThese, jsonOf(ids))
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	known := make(map[string]bool, len(found))
	for _, w := range found {
		known[w.ID] = true
		if w.Status.Ended() {
			ended = append(ended, w)
		}
	}
	for _, id := range ids {
		if !known[id] {
			known[id] = true
			missing = append(missing, id)
		}
	}
	return ended, missing, nil
}

// jsonOf makes a list of strings one argument of a query.
func jsonOf[T ~string](list []T) string {
	if list == nil {
		return "[]"
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}

// selectSteps reads the recorded steps of a workflow and its branches. A row's
// own records keep the order of its revisions whatever the clock has done: each
// counts as completed no earlier than the ones before it.
const selectSteps = `
	SELECT workflow_id, step, grp, item, status, attempt, input, output, error, took_us, revision, ended_at
	FROM step
	WHERE workflow_id >= ?1 AND workflow_id < ?2
	ORDER BY max(ended_at) OVER (PARTITION BY workflow_id ORDER BY revision), workflow_id, revision, rowid`

// History returns the recorded steps of a workflow and its branches in the
// order of their completion.
func (s *Store) History(ctx context.Context, id string) (steps []store.StepRecord, err error) {
	err = s.read(ctx, fmt.Sprintf("read the history of %q", id), func(query querier) error {
		steps, err = collectRows(ctx, query, scanStep, selectSteps, id, store.FamilyEnd(id))
		return err
	})
	return steps, err
}

func scanStep(scan func(...any) error) (r store.StepRecord, err error) {
	var (
		id          string
		reason      sql.NullString
		took, ended int64
	)
	err = scan(&id, &r.Step, &r.Group, &r.Item, &r.Status, &r.Attempt, &r.Input, &r.Output, &reason, &took, &r.Revision, &ended)
	r.Branch = store.BranchOf(id)
	r.Error, r.Took, r.EndedAt = reason.String, time.Duration(took)*time.Microsecond, timeOf(ended)
	return r, err
}

// Inbox returns the messages of a workflow that are not consumed, oldest
// first.
func (s *Store) Inbox(ctx context.Context, id string) (ms []store.Message, err error) {
	err = s.read(ctx, fmt.Sprintf("read the inbox of %q", id), func(query querier) error {
		ms, err = collectRows(ctx, query, scanMessage, unconsumedMessages, id)
		return err
	})
	return ms, err
}

const listWorkflows = `
	SELECT ` + workflowColumns + ` FROM workflow
	WHERE id > ?1 AND instr(id, char(31)) = 0
		AND (?2 = '' OR definition = ?2)
		AND (?3 = '[]' OR status IN (SELECT value FROM json_each(?3)))
	ORDER BY id
	LIMIT ?4`

const listBranches = `
	SELECT ` + workflowColumns + ` FROM workflow
	WHERE id > ?1 AND id < ?5
		AND (?2 = '' OR definition = ?2)
		AND (?3 = '[]' OR status IN (SELECT value FROM json_each(?3)))
	ORDER BY id
	LIMIT ?4`

// List returns a page of workflows, without their data.
func (s *Store) List(ctx context.Context, q store.Query) (ws []store.Workflow, err error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	text, args := listWorkflows, []any{q.After, q.Definition, jsonOf(q.Statuses), q.Limit}
	if root := q.BranchesOf; root != "" {
		text, args[0] = listBranches, max(q.After, root) // the root itself is none
		args = append(args, store.FamilyEnd(root))
	}
	err = s.read(ctx, "list workflows", func(query querier) error {
		ws, err = collectRows(ctx, query, scanListed, text, args...)
		return err
	})
	return ws, err
}

func scanListed(scan func(...any) error) (store.Workflow, error) { return scanWorkflow(scan) }
