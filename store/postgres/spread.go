package postgres

import (
	"slices"
	"strings"

	"github.com/pawlhq/pawl/store"
)

// spreadSQL is commitSQL for transitions of which one or more start others or
// send to them. Their arguments are arrays of all that is started ($35 to $56)
// and of all that is sent ($57 to $63), each in the order of its keys; n is the
// number of the transition, and only those count whose guard held. A child may
// lie in another bucket than its parent, so each row names its own.
const spreadSQL = changedSQL + `, started AS (
    INSERT INTO {schema}.workflow
          (bucket, id, definition, version, input_hash, parent, revision,
           status, state, step, grp, attempt, failures, crashes,
           awaits, wake_at, data, cursor, error, pivoted,
           created_at, updated_at, ended_at)
    SELECT t.bucket, t.id, t.definition, t.version, t.input_hash, nullif(t.parent, ''), 1,
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
           CASE WHEN t.ended THEN statement_timestamp() END
    FROM   unnest($35::bigint[], $36::smallint[], $37::text[], $38::text[], $39::int[], $40::bytea[], $41::text[],
                  $42::text[], $43::text[], $44::text[], $45::int[], $46::int[], $47::int[], $48::int[],
                  $49::text[], $50::int[], $51::bigint[], $52::bytea[], $53::bytea[], $54::text[],
                  $55::bool[], $56::bool[])
           WITH ORDINALITY
           AS t(n, bucket, id, definition, version, input_hash, parent,
                status, state, step, grp, attempt, failures, crashes,
                awaits, wakes, wake_us, data, cursor, error,
                pivoted, ended, place)
    WHERE  t.n IN (SELECT c.n FROM changed AS c)
    ORDER  BY t.place
    ON CONFLICT (bucket, id) DO NOTHING
), sent AS (
    INSERT INTO {schema}.inbox (bucket, workflow_id, message_id, kind, name, payload, sent_at)
    SELECT m.bucket, m.workflow_id, m.message_id, m.kind, m.name, m.payload, clock_timestamp()
    FROM   unnest($57::bigint[], $58::smallint[], $59::text[], $60::text[], $61::text[], $62::text[], $63::bytea[])
           WITH ORDINALITY AS m(n, bucket, workflow_id, message_id, kind, name, payload, place)
           CROSS JOIN LATERAL (
               SELECT f.ended_at
               FROM   {schema}.workflow AS f
               WHERE  f.bucket = m.bucket AND f.id = m.workflow_id
               OFFSET 0
           ) AS f
    WHERE  m.n IN (SELECT c.n FROM changed AS c) AND f.ended_at IS NULL
    ORDER  BY m.place
    ON CONFLICT (bucket, workflow_id, message_id) DO NOTHING
)
SELECT n FROM changed`

// spread is what the transitions of one statement start and send. n is the
// number of the transition, from 1.
type spread struct {
	startN, sendN []int64
	starts        []*store.New
	sends         []*store.Message
	buckets       int
}

// spreadOf collects what the transitions of a group start and send, in the
// order of their keys.
func spreadOf(ts []store.Transition, g group, buckets int) *spread {
	sp := &spread{buckets: max(buckets, 1)}
	var starts []numbered[*store.New]
	var sends []numbered[*store.Message]
	for k, i := range g.at {
		t := &ts[i]
		for j := range t.Starts {
			starts = append(starts, numbered[*store.New]{int64(k + 1), &t.Starts[j]})
		}
		for j := range t.Sends {
			sends = append(sends, numbered[*store.Message]{int64(k + 1), &t.Sends[j]})
		}
	}
	sp.startN, sp.starts = inOrder(starts, func(n *store.New) string { return n.ID })
	sp.sendN, sp.sends = inOrder(sends, func(m *store.Message) string { return m.WorkflowID + "\x00" + m.ID })
	return sp
}

// numbered is something that belongs to transition n.
type numbered[T any] struct {
	n    int64
	what T
}

// inOrder sorts by key and parts the numbers from what they belong to.
func inOrder[T any](all []numbered[T], key func(T) string) (ns []int64, whats []T) {
	slices.SortStableFunc(all, func(a, b numbered[T]) int { return strings.Compare(key(a.what), key(b.what)) })
	for _, v := range all {
		ns, whats = append(ns, v.n), append(whats, v.what)
	}
	return ns, whats
}

func (c *spread) empty() bool { return len(c.starts) == 0 && len(c.sends) == 0 }

// args returns the columns in the order that spreadSQL takes them.
func (c *spread) args() []any { return append(c.startArgs(), c.sendArgs()...) }

func (c *spread) startArgs() []any {
	n := len(c.starts)
	p := newPlaces(n)
	in, ids, names, versions := make([]int16, n), make([]string, n), make([]string, n), make([]int32, n)
	hashes, parents := make([][]byte, n), make([]string, n)
	for i, s := range c.starts {
		in[i], ids[i] = bucketOf(s.ID, c.buckets), s.ID
		names[i], versions[i] = s.Definition.Name, int32(s.Definition.Version)
		hashes[i], parents[i] = s.InputHash[:], s.Parent
		p.set(i, &s.Place)
	}
	return append([]any{orEmpty(c.startN), in, ids, names, versions, hashes, parents}, p.args()...)
}

func (c *spread) sendArgs() []any {
	n := len(c.sends)
	in, workflows, ids := make([]int16, n), make([]string, n), make([]string, n)
	kinds, names, payloads := make([]string, n), make([]string, n), make([][]byte, n)
	for i, m := range c.sends {
		in[i], workflows[i], ids[i] = bucketOf(m.WorkflowID, c.buckets), m.WorkflowID, m.ID
		kinds[i], names[i], payloads[i] = string(m.Kind), m.Name, m.Payload
	}
	return []any{orEmpty(c.sendN), in, workflows, ids, kinds, names, payloads}
}
