package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// startSQL inserts the workflows of one bucket that do not exist yet, in the
// order given, and returns which.
const startSQL = `
INSERT INTO {schema}.workflow AS w
      (bucket, id, definition, version, input_hash, owner, parent, revision,
       status, state, step, grp, attempt, failures, crashes,
       awaits, wake_at, data, cursor, error, pivoted,
       created_at, updated_at, ended_at,
       queue, queue_key, priority, begun)
SELECT $1, t.id, t.definition, t.version, t.input_hash, CASE WHEN NOT t.ended AND t.queue = '' THEN t.owner END, nullif(t.parent, ''), 1,
       t.status, t.state, nullif(t.step, ''),
       CASE WHEN t.step <> '' THEN t.grp END,
       CASE WHEN t.step <> '' THEN t.attempt END,
       CASE WHEN t.step <> '' THEN nullif(t.failures, 0) END,
       CASE WHEN t.step <> '' THEN nullif(t.crashes, 0) END,
       nullif(t.awaits, ''),
       CASE WHEN t.ended THEN NULL
            WHEN t.wakes = 1 THEN statement_timestamp() + t.wake_us * interval '1 microsecond'
            WHEN t.wakes = 3 THEN 'epoch'::timestamptz + t.wake_us * interval '1 microsecond' END,
       coalesce(t.data, ''), t.cursor, nullif(t.error, ''), t.pivoted,
       statement_timestamp(), statement_timestamp(),
       CASE WHEN t.ended THEN statement_timestamp() END,
       nullif(t.queue, ''),
       CASE WHEN t.queue <> '' THEN t.queue_key END,
       CASE WHEN t.queue <> '' THEN t.priority END,
       CASE WHEN t.queue <> '' THEN false END
FROM   unnest($2::text[], $3::text[], $4::int[], $5::bytea[], $6::uuid[], $7::text[],
              $8::text[], $9::text[], $10::text[], $11::int[], $12::int[], $13::int[], $14::int[],
              $15::text[], $16::int[], $17::bigint[], $18::bytea[], $19::bytea[], $20::text[],
              $21::bool[], $22::bool[], $23::text[], $24::text[], $25::int[])
       AS t(id, definition, version, input_hash, owner, parent,
            status, state, step, grp, attempt, failures, crashes,
            awaits, wakes, wake_us, data, cursor, error,
            pivoted, ended, queue, queue_key, priority)
ON CONFLICT (bucket, id) DO NOTHING
RETURNING w.id`

// existingSQL tells of the workflows of one bucket that lost to an earlier
// start.
const existingSQL = `
SELECT w.id, w.definition, w.version, w.input_hash, w.status, w.revision
FROM   unnest($2::text[]) AS t(id)
       CROSS JOIN LATERAL (
           SELECT * FROM {schema}.workflow AS f
           WHERE  f.bucket = $1 AND f.id = t.id
           OFFSET 0
       ) AS w`

// startRounds bounds how often an id may vanish between the insert that it
// refused and the look at it.
const startRounds = 5

// starting is a call of Start under way.
type starting struct {
	news     []store.New
	results  []store.StartResult
	answered []bool
	index    map[string]int
}

// newStarting returns the state of a call before its first round.
func newStarting(news []store.New) *starting {
	st := &starting{
		news:     news,
		results:  make([]store.StartResult, len(news)),
		answered: make([]bool, len(news)),
		index:    make(map[string]int, len(news)),
	}
	for i, n := range news {
		st.index[n.ID] = i
	}
	return st
}

// pending returns the indexes that have no answer yet.
func (st *starting) pending() []int {
	var at []int
	for i, done := range st.answered {
		if !done {
			at = append(at, i)
		}
	}
	return at
}

// created reads a row of startSQL.
func (st *starting) created(rows pgx.Rows) error {
	var id string
	if err := rows.Scan(&id); err != nil {
		return err
	}
	i := st.index[id]
	n := st.news[i]
	st.answered[i] = true
	st.results[i] = store.StartResult{
		Created: true, Definition: n.Definition, InputHash: n.InputHash, Status: n.Status, Revision: 1,
	}
	return nil
}

// existing reads a row of existingSQL.
func (st *starting) existing(rows pgx.Rows) error {
	var (
		id   string
		hash []byte
		r    store.StartResult
	)
	if err := rows.Scan(&id, &r.Definition.Name, &r.Definition.Version, &hash, &r.Status, &r.Revision); err != nil {
		return err
	}
	copy(r.InputHash[:], hash)
	i := st.index[id]
	st.answered[i], st.results[i] = true, r
	return nil
}

// Start inserts workflows and looks at those that were there before. The two
// are two statements: in one, the loser of a race would be answered nothing.
func (s *Store) Start(ctx context.Context, news []store.New) ([]store.StartResult, error) {
	if len(news) == 0 {
		return nil, nil
	}
	what := naming("start", len(news), news[0].ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	st := newStarting(news)
	for range startRounds {
		at := st.pending()
		if len(at) == 0 {
			return st.results, nil
		}
		insert := s.startStatements(st, at, buckets, s.sql.start, st.created)
		if queues := queuesOf(news); len(queues) > 0 {
			insert = append(insert, statement{sql: s.sql.ensureQueues, args: []any{queues}})
		}
		if err := s.write(ctx, what, insert...); err != nil {
			return nil, err
		}
		if at = st.pending(); len(at) == 0 {
			return st.results, nil
		}
		look := s.startStatements(st, at, buckets, s.sql.existing, st.existing)
		if err := s.look(ctx, what, look...); err != nil {
			return nil, st.lookFailed(err)
		}
	}
	return nil, fmt.Errorf("%s: %w: the id keeps vanishing", what, store.ErrRetry)
}

// lookFailed is the error of a start whose insert is committed and whose look
// at the losers failed: what it created, it cannot take back.
func (st *starting) lookFailed(err error) error {
	for i := range st.results {
		if st.answered[i] && st.results[i].Created {
			return fmt.Errorf("%w: some were created, the others not looked at: %s", store.ErrUnsure, err)
		}
	}
	return err
}

// startStatements makes one statement for each bucket that at touches.
func (s *Store) startStatements(
	st *starting, at []int, buckets int, sql string, read func(pgx.Rows) error,
) []statement {
	var made []statement
	for _, g := range groups(len(at), buckets, func(i int) string { return st.news[at[i]].ID }) {
		news := make([]store.New, len(g.at))
		for k, i := range g.at {
			news[k] = st.news[at[i]]
		}
		args := startArgs(g.bucket, news)
		if sql == s.sql.existing {
			args = args[:2]
		}
		made = append(made, statement{sql: sql, args: args, read: read})
	}
	return made
}

// startArgs are the arguments of startSQL.
func startArgs(bucket int16, news []store.New) []any {
	n := len(news)
	p := newPlaces(n)
	queues, keys, priorities := make([]string, n), make([]string, n), make([]int32, n)
	ids, names, versions := make([]string, n), make([]string, n), make([]int32, n)
	hashes, owners, parents := make([][]byte, n), make([]pgtype.UUID, n), make([]string, n)
	for i := range news {
		ids[i] = news[i].ID
		names[i], versions[i] = news[i].Definition.Name, int32(news[i].Definition.Version)
		hashes[i], owners[i], parents[i] = news[i].InputHash[:], uuid(news[i].Owner), news[i].Parent
		queues[i], keys[i], priorities[i] = news[i].Queue, news[i].Key, int32(news[i].Priority)
		p.set(i, &news[i].Place)
	}
	args := append([]any{bucket, ids, names, versions, hashes, owners, parents}, p.args()...)
	return append(args, queues, keys, priorities)
}

// StartTx starts one workflow inside the caller's transaction, which may be of
// any isolation level; it must be one that [Tx] wrapped, or that a step's body
// was given. An error of the database's leaves the transaction aborted.
func (s *Store) StartTx(ctx context.Context, tx store.Tx, n store.New) (store.StartResult, error) {
	what := naming("start", 1, n.ID)
	on, ok := tx.Unwrap().(pgx.Tx)
	if !ok {
		return store.StartResult{}, fmt.Errorf("%s: the transaction is a %T, want a pgx.Tx", what, tx.Unwrap())
	}
	buckets, err := s.bucketsIn(ctx, on)
	if err != nil {
		return store.StartResult{}, translate(what, err, reading)
	}
	n.Owner = store.WorkerID{}
	st := newStarting([]store.New{n})
	args := startArgs(bucketOf(n.ID, buckets), st.news)
	if queues := queuesOf(st.news); len(queues) > 0 {
		if err := queryOn(ctx, on, statement{sql: s.sql.ensureQueues, args: []any{queues}}); err != nil {
			return store.StartResult{}, translate(what, err, reading)
		}
	}
	for range startRounds {
		for _, step := range []statement{
			{sql: s.sql.start, args: args, read: st.created},
			{sql: s.sql.existing, args: args[:2], read: st.existing},
		} {
			if err := queryOn(ctx, on, step); err != nil {
				return store.StartResult{}, translate(what, err, reading)
			}
			if st.answered[0] {
				return st.results[0], nil
			}
		}
	}
	return store.StartResult{}, fmt.Errorf("%s: %w: the id keeps vanishing", what, store.ErrRetry)
}

// bucketsIn is buckets inside a transaction: with a pool of one, its caller
// may hold the only connection.
func (s *Store) bucketsIn(ctx context.Context, tx pgx.Tx) (int, error) {
	if n := s.deal.Load(); n > 0 {
		return int(n), nil
	}
	var n int32
	if err := tx.QueryRow(ctx, s.sql.deal).Scan(&n); err != nil {
		return 0, err
	}
	s.deal.Store(n)
	return int(n), nil
}

// naming says what is done to what: a single workflow is named.
func naming(verb string, n int, id string) string {
	if n == 1 {
		return fmt.Sprintf("%s workflow %q", verb, id)
	}
	return fmt.Sprintf("%s %d workflows", verb, n)
}

// uuid returns a worker's id as PostgreSQL takes it: nobody is NULL.
func uuid(w store.WorkerID) pgtype.UUID {
	return pgtype.UUID{Bytes: w, Valid: !w.IsZero()}
}

// text makes a text for people storable: PostgreSQL takes neither NUL nor
// what is not UTF-8, and a failure must not fail again for the way it reads.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
