package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pawlhq/pawl/store"
)

// commitSQL writes the transitions of one bucket, each under its guard, with
// their steps and messages, and returns the numbers of those whose guard held.
const commitSQL = changedSQL + `
SELECT n FROM changed`

// changedSQL is all of it but the answer.
//
// Each row is looked up by its key in the order given, which is the order of
// the ids, and changed where it was found: the plan can be no other, whatever
// the planner believes of the table, and two batches that share rows lock them
// in the same order. The guard is tested twice. The look-up sees the row as it
// was when the statement began; the update repeats the test on the row as it
// is once a concurrent change has ended. (Every change of pawl's moves the row
// to another ctid, but not every release of PostgreSQL compares that again.)
//
// The owner is compared by IS NOT DISTINCT FROM, since = would lure the
// planner to the index by owner.
const changedSQL = `
WITH changed AS (
    UPDATE {schema}.workflow AS w
    SET    revision   = w.revision + 1,
           status     = t.status,
           state      = t.state,
           step       = nullif(t.step, ''),
           grp        = CASE WHEN t.step <> '' THEN t.grp END,
           attempt    = CASE WHEN t.step <> '' THEN t.attempt END,
           failures   = CASE WHEN t.step <> '' THEN nullif(t.failures, 0) END,
           crashes    = CASE WHEN t.step <> '' THEN nullif(t.crashes, 0) END,
           awaits     = nullif(t.awaits, ''),
           wake_at    = CASE WHEN t.ended THEN NULL
                             WHEN t.wakes = 1 THEN statement_timestamp() + t.wake_us * interval '1 microsecond'
                             WHEN t.wakes = 2 THEN w.wake_at
                             WHEN t.wakes = 3 THEN 'epoch'::timestamptz + t.wake_us * interval '1 microsecond' END,
           data       = coalesce(t.data, w.data),
           cursor     = t.cursor,
           error      = nullif(t.error, ''),
           pivoted    = t.pivoted,
           owner      = CASE WHEN NOT (t.release OR t.ended) THEN w.owner END,
           updated_at = statement_timestamp(),
           ended_at   = CASE WHEN t.ended THEN statement_timestamp() END
    FROM  (SELECT t.*, f.place
           FROM   unnest($3::text[], $4::bigint[], $5::bool[],
                         $6::text[], $7::text[], $8::text[], $9::int[], $10::int[], $11::int[], $12::int[],
                         $13::text[], $14::int[], $15::bigint[], $16::bytea[], $17::bytea[], $18::text[],
                         $19::bool[], $20::bool[])
                  WITH ORDINALITY
                  AS t(id, revision, release,
                       status, state, step, grp, attempt, failures, crashes,
                       awaits, wakes, wake_us, data, cursor, error,
                       pivoted, ended, n)
                  CROSS JOIN LATERAL (
                      SELECT f.ctid AS place
                      FROM   {schema}.workflow AS f
                      WHERE  f.bucket = $1 AND f.id = t.id
                      AND    f.revision = t.revision AND f.owner IS NOT DISTINCT FROM $2::uuid
                      OFFSET 0
                  ) AS f
           OFFSET 0
          ) AS t
    WHERE  w.ctid = t.place
    AND    w.revision = t.revision AND w.owner IS NOT DISTINCT FROM $2::uuid
    RETURNING t.n, w.id, w.revision
), recorded AS (
    INSERT INTO {schema}.step
          (bucket, workflow_id, step, grp, item, status, attempt, input, output, error, took_us, revision, ended_at)
    SELECT $1, c.id, s.step, s.grp, s.item, s.status, s.attempt, s.input, s.output, nullif(s.error, ''), s.took_us,
           c.revision, statement_timestamp()
    FROM   unnest($21::bigint[], $22::text[], $23::int[], $24::int[], $25::text[], $26::int[],
                  $27::bytea[], $28::bytea[], $29::text[], $30::bigint[])
           AS s(n, step, grp, item, status, attempt, input, output, error, took_us)
           JOIN changed AS c ON c.n = s.n
), taken AS (
    UPDATE {schema}.inbox AS i
    SET    fresh       = false,
           consumed_at = CASE WHEN m.consumed THEN statement_timestamp() END,
           answer      = CASE WHEN m.consumed THEN nullif(m.answer, '') END
    FROM  (SELECT m.consumed, m.answer, f.place
           FROM   unnest($31::bigint[], $32::text[], $33::bool[], $34::text[]) AS m(n, message_id, consumed, answer)
                  JOIN changed AS c ON c.n = m.n
                  CROSS JOIN LATERAL (
                      SELECT f.ctid AS place
                      FROM   {schema}.inbox AS f
                      WHERE  f.bucket = $1 AND f.workflow_id = c.id AND f.message_id = m.message_id
                      OFFSET 0
                  ) AS f
           OFFSET 0
          ) AS m
    WHERE  i.ctid = m.place AND i.consumed_at IS NULL
)`

// Commit writes transitions in one round trip and one transaction. A row that
// somebody else keeps locked for a second makes it store.ErrBusy.
func (s *Store) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	if len(ts) == 0 || w.IsZero() {
		return make([]store.Verdict, len(ts)), nil // nobody owns nothing: all are lost
	}
	what := naming("commit", len(ts), ts[0].ID)
	buckets, err := s.buckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	verdicts := make([]store.Verdict, len(ts))
	var statements []statement
	for _, g := range groups(len(ts), buckets, func(i int) string { return ts[i].ID }) {
		statements = append(statements, s.commitStatement(w, ts, g, verdicts))
	}
	if err := s.write(ctx, what, statements...); err != nil {
		return nil, err
	}
	return verdicts, nil
}

// commitStatement makes the statement for one bucket; reading its answer
// fills in verdicts.
func (s *Store) commitStatement(
	w store.WorkerID, ts []store.Transition, g group, verdicts []store.Verdict,
) statement {
	sql, args := s.sql.commit, commitArgs(w, ts, g)
	if more := spreadOf(ts, g, int(s.deal.Load())); !more.empty() {
		sql, args = s.sql.spread, append(args, more.args()...)
	}
	return statement{
		sql:  sql,
		args: args,
		read: func(rows pgx.Rows) error {
			var n int64
			if err := rows.Scan(&n); err != nil {
				return err
			}
			verdicts[g.at[n-1]] = store.Applied
			return nil
		},
	}
}

// commitArgs are the arguments of commitSQL, one row of the arrays for each
// transition, finished step and message of the group.
func commitArgs(w store.WorkerID, ts []store.Transition, g group) []any {
	n := len(g.at)
	p := newPlaces(n)
	ids, revisions, releases := make([]string, n), make([]int64, n), make([]bool, n)
	var (
		steps recordedSteps
		mail  takenMail
	)
	for k, i := range g.at {
		t := &ts[i]
		ids[k], revisions[k], releases[k] = t.ID, t.Revision, t.Release
		p.set(k, &t.Place)
		for j := range t.Steps {
			steps.add(k+1, &t.Steps[j])
		}
		mail.add(k+1, t)
	}
	args := make([]any, 0, 34)
	args = append(args, g.bucket, uuid(w), ids, revisions, releases)
	args = append(args, p.args()...)
	args = append(args, steps.args()...)
	return append(args, mail.args()...)
}
