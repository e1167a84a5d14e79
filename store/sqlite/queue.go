package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawlhq/pawl/store"
)

const insertQueue = `INSERT INTO queue (name) VALUES (?1) ON CONFLICT (name) DO NOTHING`

// ensureQueue creates the queue that a start names and nobody has set up.
func (tx *writeTx) ensureQueue(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	_, err := tx.exec(ctx, insertQueue, name)
	return err
}

// lineColumns are queue, queue_key, priority and begun of a new workflow.
func lineColumns(l store.Line) [4]any {
	if l.Queue == "" {
		return [4]any{}
	}
	return [4]any{l.Queue, l.Key, l.Priority, false}
}

const queueColumns = `q.name, q.concurrency, q.per_worker, q.per_key, q.rate, q.period_us, q.burst, q.paused_at, q.note`

// queueRow is a queue with what is left of its rate.
type queueRow struct {
	store.Queue
	tokens float64
	filled int64
}

// scanQueue reads queueColumns and whatever more is asked for.
func scanQueue(scan func(...any) error, more ...any) (q store.Queue, err error) {
	var (
		concurrency, perWorker, perKey, rate, period, burst, paused sql.NullInt64
		note                                                        sql.NullString
	)
	dest := []any{&q.Name, &concurrency, &perWorker, &perKey, &rate, &period, &burst, &paused, &note}
	err = scan(append(dest, more...)...)
	q.Concurrency, q.PerWorker, q.PerKey = int(concurrency.Int64), int(perWorker.Int64), int(perKey.Int64)
	q.Rate, q.Period, q.Burst = int(rate.Int64), time.Duration(period.Int64)*time.Microsecond, int(burst.Int64)
	q.PausedAt, q.Note = timeOrZero(paused), note.String
	return q, err
}

func scanQueueRow(scan func(...any) error) (q queueRow, err error) {
	var (
		tokens sql.NullFloat64
		filled sql.NullInt64
	)
	q.Queue, err = scanQueue(scan, &tokens, &filled)
	q.tokens, q.filled = tokens.Float64, filled.Int64
	if !tokens.Valid {
		q.tokens = float64(q.Burst)
	}
	return q, err
}

// at is how many workflows the rate lets begin: what was left and what has come in
// since, at most a full bucket.
func (q queueRow) at(now int64) float64 {
	if q.Rate == 0 {
		return math.MaxInt32
	}
	in := float64(max(now-q.filled, 0)) * float64(q.Rate) / float64(max(q.Period.Microseconds(), 1))
	return min(q.tokens+in, float64(q.Burst))
}

const selectQueueRows = `SELECT ` + queueColumns + `, q.tokens, q.filled_at FROM queue AS q ORDER BY q.name`

const selectQueueRow = `SELECT ` + queueColumns + `, q.tokens, q.filled_at FROM queue AS q WHERE q.name = ?1`

// oldestInLine and oldestMail tell since when there may be something to claim from a
// queue.
const oldestInLine = `
	SELECT min(wake_at) FROM (
		SELECT * FROM (SELECT wake_at FROM workflow
			WHERE queue = ?1 AND begun = 1 AND owner IS NULL AND wake_at IS NOT NULL AND wake_at <= ?2
			ORDER BY wake_at - 60000000 * priority LIMIT 1)
		UNION ALL
		SELECT * FROM (SELECT wake_at FROM workflow
			WHERE queue = ?1 AND begun = 0 AND owner IS NULL AND wake_at IS NOT NULL AND wake_at <= ?2
			ORDER BY wake_at - 60000000 * priority LIMIT 1))`

const oldestMail = `
	SELECT min(i.sent_at) FROM inbox AS i
	CROSS JOIN workflow AS w ON w.id = i.workflow_id
	WHERE i.fresh AND w.queue = ?1 AND w.owner IS NULL AND w.ended_at IS NULL`

// nextInLine is the head of a queue's line, of those that have begun (?2) or not.
const nextInLine = `
	SELECT id, wake_at - 60000000 * priority, queue_key FROM workflow
	WHERE queue = ?1 AND begun = ?2 AND owner IS NULL AND wake_at IS NOT NULL AND wake_at <= ?3
		AND definition = ?5 AND version = ?6
	ORDER BY wake_at - 60000000 * priority, id
	LIMIT ?4`

// nextOfKey is the head of one key's line.
const nextOfKey = `
	SELECT id, wake_at - 60000000 * priority, queue_key FROM workflow
	WHERE queue = ?1 AND queue_key = ?7 AND begun = ?2 AND owner IS NULL AND wake_at IS NOT NULL AND wake_at <= ?3
		AND definition = ?5 AND version = ?6
	ORDER BY wake_at - 60000000 * priority, id
	LIMIT ?4`

// nextKey is the next key that somebody waits with.
const nextKey = `
	SELECT min(queue_key) FROM workflow
	WHERE queue = ?1 AND queue_key > ?2 AND owner IS NULL AND wake_at IS NOT NULL`

const mailedInLine = `
	SELECT w.id, min(i.sent_at), w.queue_key FROM inbox AS i
	CROSS JOIN workflow AS w ON w.id = i.workflow_id
	WHERE i.fresh AND w.queue = ?1 AND w.owner IS NULL AND w.ended_at IS NULL
		AND (w.begun OR w.status <> 'PENDING')
		AND w.definition = ?2 AND w.version = ?3
	GROUP BY w.id, w.queue_key`

const takenSlots = `SELECT queue_key, owner FROM workflow WHERE queue = ?1 AND owner IS NOT NULL`

const payTokens = `UPDATE queue SET tokens = ?2, filled_at = ?3 WHERE name = ?1`

// ClaimQueued looks without the write lock which queues have something to claim,
// and claims from those, the one first whose head has waited longest.
func (s *Store) ClaimQueued(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) (claim store.QueueClaim, err error) {
	if limit <= 0 || len(defs) == 0 {
		return claim, nil
	}
	const doing = "claim from queues"
	var names []string
	err = s.read(ctx, doing, func(query querier) error {
		names, claim.Any, err = linedUp(ctx, query, s.clock())
		return err
	})
	if err != nil || len(names) == 0 {
		return claim, err
	}
	some := claim.Any
	err = s.write(ctx, doing, func(tx *writeTx) error {
		claim = store.QueueClaim{Any: some}
		if alive, err := isAlive(ctx, tx, w); err != nil || !alive {
			return err
		}
		for _, name := range names {
			if err := claimFrom(ctx, tx, name, w, defs, limit, &claim); err != nil {
				return fmt.Errorf("queue %q: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return store.QueueClaim{Any: some}, err
	}
	return claim, nil
}

// linedUp returns the queues that there may be something to claim from, and whether
// there are queues at all.
func linedUp(ctx context.Context, query querier, now int64) (names []string, some bool, err error) {
	rows, err := collectRows(ctx, query, scanQueueRow, selectQueueRows)
	if err != nil {
		return nil, false, err
	}
	var heads []candidate
	for _, q := range rows {
		if !q.PausedAt.IsZero() {
			continue
		}
		line, err := collectRows(ctx, query, scanTime, oldestInLine, q.Name, now)
		if err != nil {
			return nil, true, err
		}
		mail, err := collectRows(ctx, query, scanTime, oldestMail, q.Name)
		if err != nil {
			return nil, true, err
		}
		if since := cmp.Or(line[0], mail[0]); since > 0 {
			heads = append(heads, candidate{q.Name, since})
		}
	}
	slices.SortStableFunc(heads, func(a, b candidate) int { return cmp.Compare(a.since, b.since) })
	for _, h := range heads {
		names = append(names, h.id)
	}
	return names, len(rows) > 0, nil
}

// scanTime reads a time, 0 for NULL.
func scanTime(scan func(...any) error) (int64, error) {
	var us sql.NullInt64
	err := scan(&us)
	return us.Int64, err
}

// inLine is a workflow that stands in a queue's line.
type inLine struct {
	id    string
	rank  int64
	key   string
	begun bool
}

func scanInLine(scan func(...any) error) (l inLine, err error) {
	err = scan(&l.id, &l.rank, &l.key)
	return l, err
}

// slots are what has a slot of a queue.
type slots struct {
	all, mine int
	byKey     map[string]int
}

func slotsOf(ctx context.Context, tx *writeTx, name string, w store.WorkerID) (s slots, err error) {
	s.byKey = map[string]int{}
	type slot struct {
		key   string
		owner []byte
	}
	taken, err := collectRows(ctx, tx.query, func(scan func(...any) error) (t slot, err error) {
		err = scan(&t.key, &t.owner)
		return t, err
	}, takenSlots, name)
	for _, t := range taken {
		s.all++
		s.byKey[t.key]++
		if workerID(t.owner) == w {
			s.mine++
		}
	}
	return s, err
}

// claimFrom claims from one queue what its limits allow.
func claimFrom(ctx context.Context, tx *writeTx, name string, w store.WorkerID, defs []store.Def, limit int, claim *store.QueueClaim) error {
	found, err := collectRows(ctx, tx.query, scanQueueRow, selectQueueRow, name)
	if err != nil || len(found) == 0 || !found[0].PausedAt.IsZero() {
		return err
	}
	q := found[0]
	taken, err := slotsOf(ctx, tx, name, w)
	if err != nil {
		return err
	}
	room := limit - len(claim.Rows)
	if q.Concurrency > 0 {
		room = min(room, q.Concurrency-taken.all)
	}
	if q.PerWorker > 0 {
		room = min(room, q.PerWorker-taken.mine)
	}
	if room <= 0 {
		return nil
	}
	line, err := lineOf(ctx, tx, q, defs, room)
	if err != nil {
		return err
	}
	tokens := q.at(tx.now)
	var ids []string
	for _, l := range line {
		switch {
		case len(ids) == room:
		case q.PerKey > 0 && l.key != "" && taken.byKey[l.key] >= q.PerKey:
		case !l.begun && tokens < 1:
		default:
			ids = append(ids, l.id)
			taken.byKey[l.key]++
			if !l.begun {
				tokens--
			}
		}
	}
	if q.Rate > 0 {
		if _, err := tx.exec(ctx, payTokens, name, tokens, tx.now); err != nil {
			return err
		}
		if tokens < 1 {
			next := time.Duration((1 - tokens) * float64(q.Period) / float64(q.Rate))
			if claim.Next == 0 || next < claim.Next {
				claim.Next = next
			}
		}
	}
	rows, err := own(ctx, tx, w, ids, true)
	claim.Rows = append(claim.Rows, rows...)
	return err
}

// lineOf returns the head of a queue's line in the order in which they go: those
// first that have begun. Where keys are limited it is the head of each key's line.
func lineOf(ctx context.Context, tx *writeTx, q queueRow, defs []store.Def, limit int) ([]inLine, error) {
	keys := []any{nil}
	if q.PerKey > 0 {
		var err error
		if keys, err = keysInLine(ctx, tx, q.Name); err != nil {
			return nil, err
		}
	}
	byID := map[string]inLine{}
	add := func(l inLine) {
		if have, ok := byID[l.id]; !ok || l.rank < have.rank {
			byID[l.id] = l
		}
	}
	for _, d := range defs {
		for _, key := range keys {
			for _, begun := range []bool{true, false} {
				query, args := nextInLine, []any{q.Name, begun, tx.now, limit, d.Name, d.Version}
				if key != nil {
					query, args = nextOfKey, append(args, key)
				}
				rows, err := collectRows(ctx, tx.query, scanInLine, query, args...)
				if err != nil {
					return nil, err
				}
				for _, l := range rows {
					l.begun = begun
					add(l)
				}
			}
		}
		mailed, err := collectRows(ctx, tx.query, scanInLine, mailedInLine, q.Name, d.Name, d.Version)
		if err != nil {
			return nil, err
		}
		for _, l := range mailed {
			l.begun = true
			add(l)
		}
	}
	var line []inLine
	for _, l := range byID {
		line = append(line, l)
	}
	slices.SortFunc(line, func(a, b inLine) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
	})
	return line, nil
}

// class is what is ordered by first: those that have begun go before the others.
func (l inLine) class() int {
	if l.begun {
		return 0
	}
	return 1
}

// keysInLine walks the index from one key to the next: it costs as much as there
// are keys that wait.
func keysInLine(ctx context.Context, tx *writeTx, name string) ([]any, error) {
	keys, last := []any{""}, ""
	for {
		next, err := collectRows(ctx, tx.query, func(scan func(...any) error) (k sql.NullString, err error) {
			err = scan(&k)
			return k, err
		}, nextKey, name, last)
		if err != nil || !next[0].Valid {
			return keys, err
		}
		last = next[0].String
		keys = append(keys, last)
	}
}
