package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/store"
)

const insertSchedule = `
	INSERT INTO schedule (
		name, definition, zone, spec, data, revision,
		next_at, due_at, queued_at, running, paused_at, note, error, created_at, updated_at)
	VALUES (?1, ?2, ?3, ?4, ?5, 1,
		?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13)
	ON CONFLICT (name) DO NOTHING`

// CreateSchedule inserts a schedule.
func (s *Store) CreateSchedule(ctx context.Context, sc store.Schedule) error {
	return s.write(ctx, fmt.Sprintf("create schedule %q", sc.Name), func(tx *writeTx) error {
		data := sc.Data
		if data == nil {
			data = []byte{}
		}
		var pausedAt any
		if sc.Paused {
			pausedAt = tx.now
		}
		n, err := tx.exec(ctx, insertSchedule, sc.Name, sc.Definition, sc.Zone, sc.Spec, data,
			instant(sc.NextAt), instant(sc.DueAt), instant(sc.Queued), jsonOf(sc.Running), pausedAt, null(sc.Note), null(sc.Error), tx.now)
		if err == nil && n == 0 {
			err = store.ErrScheduleExists
		}
		return err
	})
}

const scheduleColumns = `name, definition, zone, spec, revision,
	next_at, due_at, queued_at, running, paused_at, note, error, created_at, updated_at`

const selectSchedule = `
	SELECT ` + scheduleColumns + `, data FROM schedule
	WHERE name = ?1`

// GetSchedule returns a schedule, or store.ErrScheduleNotFound.
func (s *Store) GetSchedule(ctx context.Context, name string) (store.Schedule, error) {
	var found []store.Schedule
	err := s.read(ctx, fmt.Sprintf("get schedule %q", name), func(query querier) (err error) {
		found, err = collectRows(ctx, query, scanSchedule, selectSchedule, name)
		if err == nil && len(found) == 0 {
			err = store.ErrScheduleNotFound
		}
		return err
	})
	if err != nil {
		return store.Schedule{}, err
	}
	return found[0], nil
}

const listSchedules = `
	SELECT ` + scheduleColumns + `, NULL FROM schedule
	WHERE name > ?1
	ORDER BY name
	LIMIT ?2`

// ListSchedules returns a page of schedules, without their data.
func (s *Store) ListSchedules(ctx context.Context, after string, limit int) (all []store.Schedule, err error) {
	err = s.read(ctx, "list schedules", func(query querier) error {
		all, err = collectRows(ctx, query, scanSchedule, listSchedules, after, limit)
		return err
	})
	return all, err
}

const dueSchedules = `
	SELECT ` + scheduleColumns + `, data FROM schedule
	WHERE due_at <= ?1 AND definition IN (SELECT value FROM json_each(?2))
	ORDER BY due_at
	LIMIT ?3`

const nextDueSchedule = `
	SELECT min(due_at) FROM schedule
	WHERE due_at > ?1 AND definition IN (SELECT value FROM json_each(?2))`

// DueSchedules returns the schedules that are due, and when the next one is.
func (s *Store) DueSchedules(ctx context.Context, definitions []string, limit int) (due store.DueSchedules, err error) {
	now, names := s.clock(), jsonOf(definitions)
	due.Now = timeOf(now)
	err = s.read(ctx, "look for due schedules", func(query querier) error {
		if due.Due, err = collectRows(ctx, query, scanSchedule, dueSchedules, now, names, limit); err != nil {
			return err
		}
		next, err := collectRows(ctx, query, scanInstant, nextDueSchedule, now, names)
		if err == nil {
			due.Next = next[0]
		}
		return err
	})
	return due, err
}

func scanInstant(scan func(...any) error) (time.Time, error) {
	var us sql.NullInt64
	err := scan(&us)
	return timeOrZero(us), err
}

// updateSchedule is the compare-and-swap.
const updateSchedule = `
	UPDATE schedule SET
		revision = revision + 1, next_at = ?3, due_at = ?4, queued_at = ?5, running = ?6,
		paused_at = CASE WHEN ?7 THEN coalesce(paused_at, ?10) END,
		note = ?8, error = ?9, updated_at = ?10
	WHERE name = ?1 AND revision = ?2`

const putSlot = `
	INSERT INTO slot (schedule, nominal, status, origin, workflow_id, reason, decided_at)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
	ON CONFLICT (schedule, nominal) DO UPDATE SET
		status = excluded.status, origin = excluded.origin, workflow_id = excluded.workflow_id,
		reason = excluded.reason, decided_at = excluded.decided_at
	WHERE slot.status <> 'FIRED'`

const takenSlot = `
	UPDATE slot SET status = 'SKIPPED', workflow_id = NULL, reason = ?3
	WHERE schedule = ?1 AND nominal = ?2`

// ChangeSchedule writes a change of a schedule, its slots and their workflows.
func (s *Store) ChangeSchedule(ctx context.Context, c store.ScheduleChange) (verdict store.Verdict, err error) {
	err = s.write(ctx, fmt.Sprintf("change schedule %q", c.Name), func(tx *writeTx) error {
		n, err := tx.exec(ctx, updateSchedule, c.Name, c.Revision, instant(c.NextAt), instant(c.DueAt), instant(c.Queued),
			jsonOf(c.Running), c.Paused, null(c.Note), null(c.Error), tx.now)
		if err != nil || n == 0 {
			return err
		}
		verdict = store.Applied
		for i := range c.Slots {
			if err := decideSlot(ctx, tx, c.Name, &c.Slots[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Lost, err
	}
	return verdict, nil
}

// decideSlot writes a slot's row and starts its workflow.
func decideSlot(ctx context.Context, tx *writeTx, schedule string, c *store.SlotChange) error {
	nominal := c.Nominal.UnixMicro()
	n, err := tx.exec(ctx, putSlot, schedule, nominal, string(c.Status), string(c.Origin), null(c.WorkflowID), null(c.Reason), tx.now)
	if err != nil || n == 0 || c.Start == nil {
		return err
	}
	insert, err := tx.stmt(ctx, insertWorkflow)
	if err != nil {
		return err
	}
	find, err := tx.stmt(ctx, selectStarted)
	if err != nil {
		return err
	}
	run := *c.Start
	run.Owner = store.WorkerID{}
	if err := tx.ensureQueue(ctx, run.Queue); err != nil {
		return err
	}
	started, err := start(ctx, insert, find, run, tx.now)
	if err == nil && !started.Created {
		_, err = tx.exec(ctx, takenSlot, schedule, nominal, store.ReasonTaken)
	}
	return err
}

const deleteSchedule = `DELETE FROM schedule WHERE name = ?1`

const deleteSlots = `DELETE FROM slot WHERE schedule = ?1`

// DeleteSchedule removes a schedule and its ledger.
func (s *Store) DeleteSchedule(ctx context.Context, name string) error {
	return s.write(ctx, fmt.Sprintf("delete schedule %q", name), func(tx *writeTx) error {
		n, err := tx.exec(ctx, deleteSchedule, name)
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrScheduleNotFound
		}
		_, err = tx.exec(ctx, deleteSlots, name)
		return err
	})
}

const slotColumns = `nominal, status, origin, workflow_id, reason, decided_at`

const lastSlots = `
	SELECT ` + slotColumns + ` FROM slot
	WHERE schedule = ?1 AND (?2 IS NULL OR nominal < ?2)
	ORDER BY nominal DESC
	LIMIT ?3`

// Slots returns the latest rows of a schedule's ledger.
func (s *Store) Slots(ctx context.Context, name string, before time.Time, limit int) (slots []store.Slot, err error) {
	err = s.read(ctx, fmt.Sprintf("read slots of schedule %q", name), func(query querier) error {
		slots, err = collectRows(ctx, query, scanSlot, lastSlots, name, instant(before), limit)
		return err
	})
	return slots, err
}

const slotsBetween = `
	SELECT ` + slotColumns + ` FROM slot
	WHERE schedule = ?1 AND nominal BETWEEN ?2 AND ?3
	ORDER BY nominal`

// SlotsBetween returns the rows of a schedule's ledger in a range.
func (s *Store) SlotsBetween(ctx context.Context, name string, from, to time.Time) (slots []store.Slot, err error) {
	err = s.read(ctx, fmt.Sprintf("read slots of schedule %q", name), func(query querier) error {
		slots, err = collectRows(ctx, query, scanSlot, slotsBetween, name, from.UnixMicro(), to.UnixMicro())
		return err
	})
	return slots, err
}

// instant returns a time as it is stored, or nil for the zero time.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// scanSchedule reads scheduleColumns and data.
func scanSchedule(scan func(...any) error) (sc store.Schedule, err error) {
	var (
		next, due, queued, paused sql.NullInt64
		note, reason              sql.NullString
		running                   string
		created, updated          int64
	)
	err = scan(&sc.Name, &sc.Definition, &sc.Zone, &sc.Spec, &sc.Revision,
		&next, &due, &queued, &running, &paused, &note, &reason, &created, &updated, &sc.Data)
	if err != nil {
		return sc, err
	}
	sc.NextAt, sc.DueAt, sc.Queued = timeOrZero(next), timeOrZero(due), timeOrZero(queued)
	sc.Paused, sc.PausedAt = paused.Valid, timeOrZero(paused)
	sc.Note, sc.Error = note.String, reason.String
	sc.CreatedAt, sc.UpdatedAt = timeOf(created), timeOf(updated)
	if err := json.Unmarshal([]byte(running), &sc.Running); err != nil {
		return sc, fmt.Errorf("running of schedule %q: %w", sc.Name, err)
	}
	return sc, nil
}

// scanSlot reads slotColumns.
func scanSlot(scan func(...any) error) (sl store.Slot, err error) {
	var (
		nominal, decided   int64
		workflowID, reason sql.NullString
	)
	err = scan(&nominal, &sl.Status, &sl.Origin, &workflowID, &reason, &decided)
	sl.Nominal, sl.DecidedAt = timeOf(nominal), timeOf(decided)
	sl.WorkflowID, sl.Reason = workflowID.String, reason.String
	return sl, err
}
