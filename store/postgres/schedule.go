package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pawlhq/pawl/store"
)

// createScheduleSQL inserts a schedule whose name is free.
const createScheduleSQL = `
INSERT INTO {schema}.schedule
      (name, definition, zone, spec, data, revision,
       next_at, due_at, queued_at, running, paused_at, note, error, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, 1,
       $6, $7, $8, $9, CASE WHEN $10 THEN statement_timestamp() END, nullif($11, ''), nullif($12, ''),
       statement_timestamp(), statement_timestamp())
ON CONFLICT (name) DO NOTHING
RETURNING 1`

// scheduleColumns are what scanSchedule reads, but for the data.
const scheduleColumns = `
       c.name, c.definition, c.zone, c.spec, c.revision, c.next_at, c.due_at, c.queued_at, c.running,
       c.paused_at, coalesce(c.note, ''), coalesce(c.error, ''), c.created_at, c.updated_at`

// getScheduleSQL reads one schedule.
const getScheduleSQL = `
SELECT ` + scheduleColumns + `, c.data
FROM   {schema}.schedule AS c
WHERE  c.name = $1`

// listSchedulesSQL reads a page of schedules, without their data.
const listSchedulesSQL = `
SELECT ` + scheduleColumns + `, NULL::bytea
FROM   {schema}.schedule AS c
WHERE  c.name > $1
ORDER  BY c.name
LIMIT  $2`

// dueSchedulesSQL reads the schedules that are due at a time.
const dueSchedulesSQL = `
SELECT ` + scheduleColumns + `, c.data
FROM   {schema}.schedule AS c
WHERE  c.due_at <= $1 AND c.definition = ANY ($2::text[])
ORDER  BY c.due_at
LIMIT  $3`

// nextDueSQL tells the time, when the first schedule is due, and when the
// first that is not due yet.
const nextDueSQL = `
SELECT statement_timestamp(),
      (SELECT min(c.due_at) FROM {schema}.schedule AS c
       WHERE  c.due_at <= statement_timestamp() AND c.definition = ANY ($1::text[])),
      (SELECT min(c.due_at) FROM {schema}.schedule AS c
       WHERE  c.due_at > statement_timestamp() AND c.definition = ANY ($1::text[]))`

// changeScheduleSQL is the compare-and-swap.
const changeScheduleSQL = `
UPDATE {schema}.schedule AS c
SET    revision   = c.revision + 1,
       next_at    = $3,
       due_at     = $4,
       queued_at  = $5,
       running    = $6,
       paused_at  = CASE WHEN $7 THEN coalesce(c.paused_at, statement_timestamp()) END,
       note       = nullif($8, ''),
       error      = nullif($9, ''),
       updated_at = statement_timestamp()
WHERE  c.name = $1 AND c.revision = $2
RETURNING 1`

// putSlotSQL writes a slot's row, unless it has fired.
const putSlotSQL = `
INSERT INTO {schema}.slot AS s (schedule, nominal, status, origin, workflow_id, reason, decided_at)
VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), statement_timestamp())
ON CONFLICT (schedule, nominal) DO UPDATE
SET    status = excluded.status, origin = excluded.origin, workflow_id = excluded.workflow_id,
       reason = excluded.reason, decided_at = excluded.decided_at
WHERE  s.status <> 'FIRED'
RETURNING 1`

// takenSlotSQL says of a slot that the id of its workflow was taken.
const takenSlotSQL = `
UPDATE {schema}.slot AS s
SET    status = 'SKIPPED', workflow_id = NULL, reason = $3
WHERE  s.schedule = $1 AND s.nominal = $2`

// deleteScheduleSQL removes a schedule.
const deleteScheduleSQL = `
DELETE FROM {schema}.schedule AS c WHERE c.name = $1
RETURNING 1`

// deleteSlotsSQL removes a schedule's ledger.
const deleteSlotsSQL = `
DELETE FROM {schema}.slot AS s WHERE s.schedule = $1`

// slotColumns are what scanSlot reads.
const slotColumns = `s.nominal, s.status, s.origin, coalesce(s.workflow_id, ''), coalesce(s.reason, ''), s.decided_at`

// lastSlotsSQL reads the latest rows of a schedule's ledger.
const lastSlotsSQL = `
SELECT ` + slotColumns + `
FROM   {schema}.slot AS s
WHERE  s.schedule = $1 AND s.nominal < coalesce($2, 'infinity'::timestamptz)
ORDER  BY s.nominal DESC
LIMIT  $3`

// slotsBetweenSQL reads the rows of a schedule's ledger in a range.
const slotsBetweenSQL = `
SELECT ` + slotColumns + `
FROM   {schema}.slot AS s
WHERE  s.schedule = $1 AND s.nominal BETWEEN $2 AND $3
ORDER  BY s.nominal`

// CreateSchedule inserts a schedule.
func (s *Store) CreateSchedule(ctx context.Context, sc store.Schedule) error {
	what := fmt.Sprintf("create schedule %q", sc.Name)
	running, err := formatIDs(sc.Running)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	data := sc.Data
	if data == nil {
		data = []byte{}
	}
	created := false
	err = s.write(ctx, what, statement{
		sql: s.sql.createSchedule,
		args: []any{
			sc.Name, sc.Definition, sc.Zone, sc.Spec, data,
			stamp(sc.NextAt), stamp(sc.DueAt), stamp(sc.Queued), running, sc.Paused, text(sc.Note), text(sc.Error),
		},
		read: func(pgx.Rows) error { created = true; return nil },
	})
	if err == nil && !created {
		err = fmt.Errorf("%s: %w", what, store.ErrScheduleExists)
	}
	return err
}

// GetSchedule returns a schedule.
func (s *Store) GetSchedule(ctx context.Context, name string) (store.Schedule, error) {
	what := fmt.Sprintf("get schedule %q", name)
	var found []store.Schedule
	err := s.query(ctx, what, statement{sql: s.sql.getSchedule, args: []any{name}, read: scan(&found, scanSchedule)})
	if err != nil {
		return store.Schedule{}, err
	}
	if len(found) == 0 {
		return store.Schedule{}, fmt.Errorf("%s: %w", what, store.ErrScheduleNotFound)
	}
	return found[0], nil
}

// ListSchedules returns a page of schedules, without their data.
func (s *Store) ListSchedules(ctx context.Context, after string, limit int) ([]store.Schedule, error) {
	var all []store.Schedule
	err := s.query(ctx, "list schedules", statement{
		sql: s.sql.listSchedules, args: []any{after, limit}, read: scan(&all, scanSchedule),
	})
	return all, err
}

// DueSchedules asks first whether anything is due: usually nothing is.
func (s *Store) DueSchedules(ctx context.Context, definitions []string, limit int) (store.DueSchedules, error) {
	const what = "look for due schedules"
	var (
		due         store.DueSchedules
		first, next pgtype.Timestamptz
	)
	err := s.query(ctx, what, statement{
		sql: s.sql.nextDue, args: []any{orEmpty(definitions)},
		read: func(rows pgx.Rows) error { return rows.Scan(&due.Now, &first, &next) },
	})
	due.Now, due.Next = due.Now.UTC(), instant(next)
	if err != nil || !first.Valid {
		return due, err
	}
	err = s.query(ctx, what, statement{
		sql: s.sql.dueSchedules, args: []any{due.Now, orEmpty(definitions), limit}, read: scan(&due.Due, scanSchedule),
	})
	return due, err
}

// ChangeSchedule writes a change of a schedule, its slots and their workflows.
// It takes a few round trips: a schedule is no hot path.
func (s *Store) ChangeSchedule(ctx context.Context, c store.ScheduleChange) (store.Verdict, error) {
	what := fmt.Sprintf("change schedule %q", c.Name)
	running, err := formatIDs(c.Running)
	if err != nil {
		return store.Lost, fmt.Errorf("%s: %w", what, err)
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return store.Lost, translate(what, err, unsent)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return store.Lost, translate(what, err, reading)
	}
	defer rollback(ctx, conn.Conn())
	applied, err := s.changeSchedule(ctx, tx, c, running)
	if err != nil || !applied {
		return store.Lost, translate(what, err, reading)
	}
	if err := tx.Commit(ctx); err != nil {
		return store.Lost, translate(what, err, committing)
	}
	return store.Applied, nil
}

func (s *Store) changeSchedule(ctx context.Context, tx pgx.Tx, c store.ScheduleChange, running string) (applied bool, err error) {
	if _, err := tx.Exec(ctx, hotSettings); err != nil {
		return false, err
	}
	err = queryOn(ctx, tx, statement{
		sql: s.sql.changeSchedule,
		args: []any{
			c.Name, c.Revision, stamp(c.NextAt), stamp(c.DueAt), stamp(c.Queued), running,
			c.Paused, text(c.Note), text(c.Error),
		},
		read: func(pgx.Rows) error { applied = true; return nil },
	})
	if err != nil || !applied {
		return false, err
	}
	for i := range c.Slots {
		if err := s.decideSlot(ctx, tx, c.Name, &c.Slots[i]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// decideSlot writes a slot's row and starts its workflow.
func (s *Store) decideSlot(ctx context.Context, tx pgx.Tx, schedule string, c *store.SlotChange) error {
	written := false
	err := queryOn(ctx, tx, statement{
		sql:  s.sql.putSlot,
		args: []any{schedule, c.Nominal, string(c.Status), string(c.Origin), c.WorkflowID, text(c.Reason)},
		read: func(pgx.Rows) error { written = true; return nil },
	})
	if err != nil || !written || c.Start == nil {
		return err
	}
	started, err := s.StartTx(ctx, Tx(tx), *c.Start)
	if err == nil && !started.Created {
		_, err = tx.Exec(ctx, s.sql.takenSlot, schedule, c.Nominal, store.ReasonTaken)
	}
	return err
}

// DeleteSchedule removes a schedule and its ledger.
func (s *Store) DeleteSchedule(ctx context.Context, name string) error {
	what := fmt.Sprintf("delete schedule %q", name)
	found := false
	err := s.write(ctx, what,
		statement{sql: s.sql.deleteSchedule, args: []any{name}, read: func(pgx.Rows) error { found = true; return nil }},
		statement{sql: s.sql.deleteSlots, args: []any{name}})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", what, store.ErrScheduleNotFound)
	}
	return err
}

// Slots returns the latest rows of a schedule's ledger.
func (s *Store) Slots(ctx context.Context, name string, before time.Time, limit int) ([]store.Slot, error) {
	return s.slots(ctx, name, statement{sql: s.sql.lastSlots, args: []any{name, stamp(before), limit}})
}

// SlotsBetween returns the rows of a schedule's ledger in a range.
func (s *Store) SlotsBetween(ctx context.Context, name string, from, to time.Time) ([]store.Slot, error) {
	return s.slots(ctx, name, statement{sql: s.sql.slotsBetween, args: []any{name, from, to}})
}

func (s *Store) slots(ctx context.Context, name string, st statement) ([]store.Slot, error) {
	var slots []store.Slot
	st.read = scan(&slots, scanSlot)
	err := s.query(ctx, fmt.Sprintf("read slots of schedule %q", name), st)
	return slots, err
}

// stamp returns a time as PostgreSQL takes it: the zero time is NULL.
func stamp(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// formatIDs writes ids as a JSON array.
func formatIDs(ids []string) (string, error) {
	b, err := json.Marshal(orEmpty(ids))
	return string(b), err
}

// scanSchedule reads scheduleColumns and the data.
func scanSchedule(rows pgx.Rows, sc *store.Schedule) error {
	var (
		next, due, queued, paused pgtype.Timestamptz
		running                   string
	)
	err := rows.Scan(&sc.Name, &sc.Definition, &sc.Zone, &sc.Spec, &sc.Revision, &next, &due, &queued, &running,
		&paused, &sc.Note, &sc.Error, &sc.CreatedAt, &sc.UpdatedAt, &sc.Data)
	if err != nil {
		return err
	}
	sc.NextAt, sc.DueAt, sc.Queued, sc.PausedAt = instant(next), instant(due), instant(queued), instant(paused)
	sc.Paused = paused.Valid
	sc.CreatedAt, sc.UpdatedAt = sc.CreatedAt.UTC(), sc.UpdatedAt.UTC()
	if err := json.Unmarshal([]byte(running), &sc.Running); err != nil {
		return fmt.Errorf("running of schedule %q: %w", sc.Name, err)
	}
	return nil
}

// scanSlot reads slotColumns.
func scanSlot(rows pgx.Rows, sl *store.Slot) error {
	err := rows.Scan(&sl.Nominal, &sl.Status, &sl.Origin, &sl.WorkflowID, &sl.Reason, &sl.DecidedAt)
	sl.Nominal, sl.DecidedAt = sl.Nominal.UTC(), sl.DecidedAt.UTC()
	return err
}
