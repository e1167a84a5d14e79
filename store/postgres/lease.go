package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// joinSQL inserts a worker with a lease. Its age is that of its lease: both
// begin by the database's clock. An incarnation joins once: a second time is
// refused.
const joinSQL = `
INSERT INTO {schema}.worker (id, host, pid, definitions, started_at, expires_at)
SELECT $1, $2, $3, $4, c.now, c.now + $5 * interval '1 microsecond'
FROM  (SELECT clock_timestamp() AS now OFFSET 0) AS c`

// renewSQL lengthens a lease that nobody has buried.
const renewSQL = `
UPDATE {schema}.worker AS k
SET    expires_at = clock_timestamp() + $2 * interval '1 microsecond'
WHERE  k.id = $1 AND k.dead_at IS NULL
RETURNING 1`

// leaveSQL buries a worker.
const leaveSQL = `
UPDATE {schema}.worker AS k
SET    dead_at = clock_timestamp()
WHERE  k.id = $1 AND k.dead_at IS NULL`

// giveBackSQL gives back what a worker owns in one bucket, except for rows
// that are locked: a sweep takes those.
const giveBackSQL = `
WITH own AS (
    SELECT w.ctid AS place
    FROM   {schema}.workflow AS w
    WHERE  w.bucket = $1 AND w.owner = $2
    FOR    NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.workflow AS w
SET    owner      = NULL,
       revision   = w.revision + 1,
       updated_at = statement_timestamp(),
       wake_at    = CASE WHEN w.status IN ('PENDING', 'COMPENSATING') THEN statement_timestamp() ELSE w.wake_at END
FROM   own AS o
WHERE  w.ctid = o.place AND w.owner IS NOT DISTINCT FROM $2::uuid
RETURNING 1`

// burySQL marks workers dead whose lease has run out. One that is being
// renewed or buried by somebody else is passed over.
const burySQL = `
UPDATE {schema}.worker AS k
SET    dead_at = clock_timestamp()
WHERE  k.dead_at IS NULL AND k.expires_at <= clock_timestamp()
AND    k.id = ANY (ARRAY (
           SELECT d.id
           FROM   {schema}.worker AS d
           WHERE  d.dead_at IS NULL AND d.expires_at <= clock_timestamp()
           ORDER  BY d.id
           FOR    NO KEY UPDATE SKIP LOCKED
       ))
RETURNING k.id`

// ownedSQL lists what a worker owns in one bucket.
const ownedSQL = `
SELECT w.id, w.revision, w.owner
FROM   {schema}.workflow AS w
WHERE  w.bucket = $1 AND w.owner = $2`

// workersSQL lists the workers that are alive or were buried within the hour.
const workersSQL = `
SELECT k.id, k.host, k.pid, k.definitions, k.started_at, k.expires_at, k.dead_at
FROM   {schema}.worker AS k
WHERE  k.dead_at IS NULL OR k.dead_at > clock_timestamp() - interval '1 hour'
ORDER  BY k.started_at DESC, k.id DESC`

// Join inserts a worker with a lease, on the connection that will renew it: the
// first renewal then needs no new one, which takes its time on a busy machine.
func (s *Store) Join(ctx context.Context, w store.Worker, lease time.Duration) error {
	definitions, err := formatDefs(w.Definitions)
	if err != nil {
		return fmt.Errorf("join worker %s: %w", w.ID, err)
	}
	return s.heartbeat(ctx, "join worker "+w.ID.String(), statement{
		sql:  s.sql.join,
		args: []any{uuid(w.ID), text(w.Host), w.PID, definitions, lease.Microseconds()},
	})
}

// heartbeat is write for one statement, on a connection that nothing else uses.
func (s *Store) heartbeat(ctx context.Context, what string, st statement) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	at := unsent
	err := s.beat.use(ctx, func(conn *pgx.Conn) error {
		var err error
		at, err = transact(ctx, conn, hotSettings, []statement{st})
		return err
	})
	return translate(what, err, at)
}

// Renew lengthens the lease of w, on a connection that nothing else uses.
func (s *Store) Renew(ctx context.Context, w store.WorkerID, lease time.Duration) (alive bool, err error) {
	err = s.heartbeat(ctx, "renew worker "+w.String(), statement{
		sql:  s.sql.renew,
		args: []any{uuid(w), lease.Microseconds()},
		read: func(pgx.Rows) error { alive = true; return nil },
	})
	return alive && err == nil, err
}

// Leave buries w and gives back what it owns, in one transaction.
func (s *Store) Leave(ctx context.Context, w store.WorkerID) (released int, err error) {
	what := "leave as worker " + w.String()
	buckets, err := s.buckets(ctx)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	statements := []statement{{sql: s.sql.leave, args: []any{uuid(w)}}}
	for b := range buckets {
		statements = append(statements, statement{
			sql:  s.sql.giveBack,
			args: []any{int16(b), uuid(w)},
			read: func(pgx.Rows) error { released++; return nil },
		})
	}
	if err := s.write(ctx, what, statements...); err != nil {
		return 0, err
	}
	return released, nil
}

// Bury marks workers dead whose lease has run out.
func (s *Store) Bury(ctx context.Context) ([]store.WorkerID, error) {
	var dead []store.WorkerID
	err := s.write(ctx, "bury workers", statement{
		sql: s.sql.bury,
		read: scan(&dead, func(rows pgx.Rows, w *store.WorkerID) error {
			var id pgtype.UUID
			err := rows.Scan(&id)
			*w = id.Bytes
			return err
		}),
	})
	if err != nil {
		return nil, err
	}
	return dead, nil
}

// Owned returns all that w owns.
func (s *Store) Owned(ctx context.Context, w store.WorkerID) ([]store.Position, error) {
	var positions []store.Position
	err := s.lookInBuckets(ctx, "list what worker "+w.String()+" owns", func(bucket int16) statement {
		return statement{sql: s.sql.owned, args: []any{bucket, uuid(w)}, read: scan(&positions, scanPosition)}
	})
	return positions, err
}

// scanPosition reads the columns of ownedSQL and readBackSQL.
func scanPosition(rows pgx.Rows, p *store.Position) error {
	var owner pgtype.UUID
	err := rows.Scan(&p.ID, &p.Revision, &owner)
	p.Owner = owner.Bytes
	return err
}

// Workers returns the workers that are alive or were buried within the last
// hour, the youngest first.
func (s *Store) Workers(ctx context.Context) ([]store.Worker, error) {
	var workers []store.Worker
	err := s.query(ctx, "list workers", statement{sql: s.sql.workers, read: scan(&workers, scanWorker)})
	return workers, err
}

// scanWorker reads the columns of workersSQL.
func scanWorker(rows pgx.Rows, w *store.Worker) error {
	var (
		id          pgtype.UUID
		definitions string
		deadAt      pgtype.Timestamptz
	)
	err := rows.Scan(&id, &w.Host, &w.PID, &definitions, &w.StartedAt, &w.ExpiresAt, &deadAt)
	if err != nil {
		return err
	}
	w.ID, w.DeadAt = id.Bytes, instant(deadAt)
	w.StartedAt, w.ExpiresAt = w.StartedAt.UTC(), w.ExpiresAt.UTC()
	w.Definitions, err = parseDefs(definitions)
	return err
}

// formatDefs writes definitions as a JSON array of "name@version".
func formatDefs(defs []store.Def) (string, error) {
	list := make([]string, len(defs))
	for i, d := range defs {
		list[i] = d.Name + "@" + strconv.Itoa(d.Version)
	}
	b, err := json.Marshal(list)
	return string(b), err
}

// parseDefs reads what formatDefs wrote.
func parseDefs(text string) ([]store.Def, error) {
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	var defs []store.Def
	for _, item := range list {
		at := strings.LastIndexByte(item, '@')
		if at < 0 {
			return nil, fmt.Errorf("read definition %q: no version", item)
		}
		version, err := strconv.Atoi(item[at+1:])
		if err != nil {
			return nil, fmt.Errorf("read definition %q: %w", item, err)
		}
		defs = append(defs, store.Def{Name: item[:at], Version: version})
	}
	return defs, nil
}
