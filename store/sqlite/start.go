package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/pawlhq/pawl/store"
)

const insertWorkflow = `
	INSERT INTO workflow (
		id, definition, version, status, state, revision, owner, wake_at,
		awaits, step, grp, attempt, failures, crashes, error, pivoted,
		input_hash, cursor, data, created_at, updated_at, ended_at, parent,
		queue, queue_key, priority, begun)
	VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7,
		?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
		?16, ?17, ?18, ?19, ?19, ?20, ?21,
		?22, ?23, ?24, ?25)
	ON CONFLICT (id) DO NOTHING`

const selectStarted = `
	SELECT definition, version, input_hash, status, revision
	FROM workflow
	WHERE id = ?1`

// Start inserts the workflows that do not exist yet. The write lock is held
// from the first insert to the commit, so whoever does not get to insert finds
// the row of whoever did.
func (s *Store) Start(ctx context.Context, news []store.New) ([]store.StartResult, error) {
	results := make([]store.StartResult, len(news))
	if len(news) == 0 {
		return results, nil
	}
	err := s.write(ctx, "start workflows", func(tx *writeTx) error {
		insert, err := tx.stmt(ctx, insertWorkflow)
		if err != nil {
			return err
		}
		find, err := tx.stmt(ctx, selectStarted)
		if err != nil {
			return err
		}
		for _, i := range sortedBy(news, func(n store.New) string { return n.ID }) {
			if err := tx.ensureQueue(ctx, news[i].Queue); err != nil {
				return err
			}
			if results[i], err = start(ctx, insert, find, news[i], tx.now); err != nil {
				return fmt.Errorf("workflow %q: %w", news[i].ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// StartTx inserts a workflow in a transaction of the caller's, which begins
// with the write lock if it was opened on DB. Another one may be told that the
// database is locked (store.ErrBusy) as soon as somebody else has written.
func (s *Store) StartTx(ctx context.Context, tx store.Tx, n store.New) (store.StartResult, error) {
	own, ok := tx.Unwrap().(*sql.Tx)
	if !ok {
		return store.StartResult{}, fmt.Errorf("start workflow %q: the transaction is a %T, not a *sql.Tx", n.ID, tx.Unwrap())
	}
	n.Owner = store.WorkerID{}
	if n.Queue != "" {
		if _, err := own.ExecContext(ctx, insertQueue, n.Queue); err != nil {
			return store.StartResult{}, fmt.Errorf("start workflow %q: %w", n.ID, translate(ctx, err))
		}
	}
	r, err := start(ctx, inTx{own, insertWorkflow}, inTx{own, selectStarted}, n, s.clock())
	if err != nil {
		return store.StartResult{}, fmt.Errorf("start workflow %q: %w", n.ID, translate(ctx, err))
	}
	return r, nil
}

// start inserts n, or finds the workflow of its id.
func start(ctx context.Context, insert, find statement, n store.New, now int64) (store.StartResult, error) {
	created, err := affected(insert.ExecContext(ctx, startArgs(n, now)...))
	if err != nil {
		return store.StartResult{}, err
	}
	if created == 1 {
		return store.StartResult{Created: true, Definition: n.Definition, InputHash: n.InputHash, Status: n.Status, Revision: 1}, nil
	}
	var (
		r    store.StartResult
		hash []byte
	)
	err = find.QueryRowContext(ctx, n.ID).Scan(&r.Definition.Name, &r.Definition.Version, &hash, &r.Status, &r.Revision)
	copy(r.InputHash[:], hash)
	return r, err
}

func startArgs(n store.New, now int64) []any {
	if n.Queue != "" {
		n.Owner = store.WorkerID{}
	}
	row, line := place(n.Place, n.Owner, false, now), lineColumns(n.Line)
	data := n.Data
	if data == nil {
		data = []byte{}
	}
	return []any{
		n.ID, n.Definition.Name, n.Definition.Version, string(n.Status), n.State, row.owner, row.wakeAt,
		null(n.Awaits), row.mark[0], row.mark[1], row.mark[2], row.mark[3], row.mark[4], null(n.Error), n.Pivoted,
		n.InputHash[:], blob(n.Cursor), data, now, row.endedAt, null(n.Parent),
		line[0], line[1], line[2], line[3],
	}
}

// statement is a statement that is ready to run: prepared, or in a transaction
// of the caller's.
type statement interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
}

type inTx struct {
	tx    *sql.Tx
	query string
}

func (q inTx) ExecContext(ctx context.Context, args ...any) (sql.Result, error) {
	return q.tx.ExecContext(ctx, q.query, args...)
}

func (q inTx) QueryRowContext(ctx context.Context, args ...any) *sql.Row {
	return q.tx.QueryRowContext(ctx, q.query, args...)
}

// sortedBy returns the indexes of all in the order of their keys: rows that
// are neighbours in the file are written one after the other.
func sortedBy[T any, K cmp.Ordered](all []T, key func(T) K) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(key(all[a]), key(all[b])) })
	return order
}
