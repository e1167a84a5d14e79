package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/store"
)

const insertWorker = `
	INSERT INTO worker (id, host, pid, definitions, started_at, expires_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6)`

// Join inserts a worker with a lease.
func (s *Store) Join(ctx context.Context, w store.Worker, lease time.Duration) error {
	return s.write(ctx, fmt.Sprintf("join worker %s", w.ID), func(tx *writeTx) error {
		_, err := tx.exec(ctx, insertWorker,
			w.ID[:], w.Host, w.PID, formatDefs(w.Definitions), tx.now, tx.now+lease.Microseconds())
		return err
	})
}

// renewWorker looks at dead_at alone: a lease that has run out unnoticed may
// be renewed, a buried worker may not.
const renewWorker = `
	UPDATE worker SET expires_at = ?2
	WHERE id = ?1 AND dead_at IS NULL`

// Renew lengthens the lease of w and reports whether it is alive. It goes before
// the other writers of this process that wait.
func (s *Store) Renew(ctx context.Context, w store.WorkerID, lease time.Duration) (alive bool, err error) {
	err = s.writeAs(ctx, fmt.Sprintf("renew the lease of worker %s", w), true, func(tx *writeTx) error {
		n, err := tx.exec(ctx, renewWorker, w[:], tx.now+lease.Microseconds())
		alive = n == 1
		return err
	})
	return alive && err == nil, err
}

const buryWorker = `
	UPDATE worker SET dead_at = ?2
	WHERE id = ?1 AND dead_at IS NULL`

const giveBackAll = `
	UPDATE workflow SET
		owner = NULL, revision = revision + 1, updated_at = ?2,
		wake_at = CASE WHEN status IN ('PENDING', 'COMPENSATING') THEN ?2 ELSE wake_at END
	WHERE owner = ?1`

// Leave buries w and gives back what it owns, to be claimed at once.
func (s *Store) Leave(ctx context.Context, w store.WorkerID) (released int, err error) {
	err = s.write(ctx, fmt.Sprintf("let worker %s leave", w), func(tx *writeTx) error {
		if _, err := tx.exec(ctx, buryWorker, w[:], tx.now); err != nil {
			return err
		}
		n, err := tx.exec(ctx, giveBackAll, w[:], tx.now)
		released = int(n)
		return err
	})
	return released, err
}

const someLeaseIsOver = `
	SELECT EXISTS (
		SELECT 1 FROM worker
		WHERE dead_at IS NULL AND expires_at <= ?1)`

const buryExpired = `
	UPDATE worker SET dead_at = ?1
	WHERE dead_at IS NULL AND expires_at <= ?1
	RETURNING id`

// Bury marks every worker whose lease has run out as dead.
func (s *Store) Bury(ctx context.Context) (buried []store.WorkerID, err error) {
	const doing = "bury workers"
	if some, err := s.exists(ctx, doing, someLeaseIsOver, s.clock()); err != nil || !some {
		return nil, err
	}
	err = s.write(ctx, doing, func(tx *writeTx) error {
		buried, err = collectRows(ctx, tx.query, scanWorkerID, buryExpired, tx.now)
		return err
	})
	return buried, err
}

// exists answers a query that gives one truth value, without the write lock.
func (s *Store) exists(ctx context.Context, doing, text string, args ...any) (yes bool, err error) {
	err = s.read(ctx, doing, func(query querier) error {
		answers, err := collectRows(ctx, query, scanBool, text, args...)
		yes = err == nil && len(answers) == 1 && answers[0]
		return err
	})
	return yes, err
}

func scanBool(scan func(...any) error) (b bool, err error) {
	err = scan(&b)
	return b, err
}

func scanWorkerID(scan func(...any) error) (store.WorkerID, error) {
	var id []byte
	err := scan(&id)
	return workerID(id), err
}

// keepBuried is for how long a buried worker stays in the table.
const keepBuried = time.Hour

const selectWorkers = `
	SELECT id, host, pid, definitions, started_at, expires_at, dead_at FROM worker
	WHERE dead_at IS NULL OR dead_at >= ?1
	ORDER BY started_at DESC, id DESC`

// Workers returns the workers that are alive or were buried within the last
// hour, the youngest first.
func (s *Store) Workers(ctx context.Context) (ws []store.Worker, err error) {
	err = s.read(ctx, "list workers", func(query querier) error {
		ws, err = collectRows(ctx, query, scanWorker, selectWorkers, s.clock()-keepBuried.Microseconds())
		return err
	})
	return ws, err
}

func scanWorker(scan func(...any) error) (w store.Worker, err error) {
	var (
		id               []byte
		defs             string
		started, expires int64
		dead             sql.NullInt64
	)
	if err := scan(&id, &w.Host, &w.PID, &defs, &started, &expires, &dead); err != nil {
		return store.Worker{}, err
	}
	w.ID = workerID(id)
	w.StartedAt, w.ExpiresAt, w.DeadAt = timeOf(started), timeOf(expires), timeOrZero(dead)
	w.Definitions, err = parseDefs(defs)
	return w, err
}

// formatDefs writes definitions as a JSON list of name@version.
func formatDefs(defs []store.Def) string {
	list := make([]string, len(defs))
	for i, d := range defs {
		list[i] = d.Name + "@" + strconv.Itoa(d.Version)
	}
	return jsonOf(list)
}

func parseDefs(text string) ([]store.Def, error) {
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read a worker's definitions: %w", err)
	}
	defs := make([]store.Def, len(list))
	for i, s := range list {
		at := strings.LastIndexByte(s, '@')
		version, err := strconv.Atoi(s[at+1:])
		if at < 0 || err != nil {
			return nil, errors.Join(fmt.Errorf("read a worker's definitions: %q is not name@version", s), err)
		}
		defs[i] = store.Def{Name: s[:at], Version: version}
	}
	return defs, nil
}
