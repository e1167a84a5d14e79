package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/pawlhq/pawl/store"
)

// maxPause bounds the pause before a workflow that has crashed its workers
// again and again may be claimed.
const maxPause = time.Minute

// orphaned is true of a workflow whose owner is not among the living: buried,
// or not known at all.
const orphaned = `
	owner IS NOT NULL AND NOT EXISTS (
		SELECT 1 FROM worker k
		WHERE k.id = workflow.owner AND k.dead_at IS NULL)`

const somethingToSweep = `
	SELECT EXISTS (SELECT 1 FROM workflow WHERE ` + orphaned + `)
		OR EXISTS (SELECT 1 FROM worker WHERE dead_at < ?1)
		OR EXISTS (
			SELECT 1 FROM inbox i
			CROSS JOIN workflow w ON w.id = i.workflow_id
			WHERE i.fresh AND w.ended_at IS NOT NULL)`

const orphans = `
	SELECT id, revision, owner, status, step, crashes FROM workflow
	WHERE ` + orphaned + `
	LIMIT ?1`

const takeOver = `
	UPDATE workflow SET
		owner = NULL, revision = revision + 1, updated_at = ?4,
		crashes = ?5,
		wake_at = CASE WHEN ?6 IS NULL THEN wake_at ELSE ?6 END
	WHERE id = ?1 AND revision = ?2 AND owner = ?3`

const forgetMail = `
	UPDATE inbox SET fresh = 0
	WHERE rowid IN (
		SELECT i.rowid FROM inbox i
		CROSS JOIN workflow w ON w.id = i.workflow_id
		WHERE i.fresh AND w.ended_at IS NOT NULL
		LIMIT ?1)`

const forgetWorkers = `
	DELETE FROM worker
	WHERE dead_at < ?1`

// Takeover gives back what the dead own. In passing it tidies up: messages to
// ended workflows are no longer fresh, and workers buried more than an hour
// ago are removed.
func (s *Store) Takeover(ctx context.Context, base time.Duration, limit int) (released int, err error) {
	const doing = "take over workflows"
	if some, err := s.exists(ctx, doing, somethingToSweep, s.clock()-keepBuried.Microseconds()); err != nil || !some {
		return 0, err
	}
	err = s.write(ctx, doing, func(tx *writeTx) error {
		if released, err = sweep(ctx, tx, base, limit); err != nil {
			return err
		}
		if _, err = tx.exec(ctx, forgetMail, limit); err != nil {
			return err
		}
		_, err = tx.exec(ctx, forgetWorkers, tx.now-keepBuried.Microseconds())
		return err
	})
	if err != nil {
		return 0, err
	}
	return released, nil
}

func sweep(ctx context.Context, tx *writeTx, base time.Duration, limit int) (released int, err error) {
	found, err := collectRows(ctx, tx.query, scanOrphan, orphans, limit)
	if err != nil {
		return 0, err
	}
	for _, o := range found {
		crashes, wakeAt := o.afterCrash(base, tx.now)
		n, err := tx.exec(ctx, takeOver, o.id, o.revision, o.owner, tx.now, crashes, wakeAt)
		if err != nil {
			return 0, err
		}
		released += int(n)
	}
	return released, nil
}

// orphan is a workflow whose owner is dead.
type orphan struct {
	id       string
	revision int64
	owner    []byte
	status   store.Status
	step     sql.NullString
	crashes  sql.NullInt64
}

func scanOrphan(scan func(...any) error) (o orphan, err error) {
	err = scan(&o.id, &o.revision, &o.owner, &o.status, &o.step, &o.crashes)
	return o, err
}

// afterCrash returns the crashes and the wake time to write, nil for a wake
// time that stays. Only what was executing has crashed: what waits keeps its
// time, and whatever message its owner had not yet seen is still fresh.
func (o orphan) afterCrash(base time.Duration, now int64) (crashes, wakeAt any) {
	if o.crashes.Valid {
		crashes = o.crashes.Int64
	}
	if o.status != store.Pending && o.status != store.Compensating {
		return crashes, nil
	}
	if !o.step.Valid {
		return crashes, now
	}
	n := o.crashes.Int64 + 1
	return n, now + micros(pause(base, n))
}

// pause is how long a workflow rests after its n-th crash in a row: not at all
// after the first, then base, doubling.
func pause(base time.Duration, n int64) time.Duration {
	if n <= 1 || base <= 0 {
		return 0
	}
	p := base
	for i := int64(2); i < n && p < maxPause; i++ {
		p *= 2
	}
	return min(p, maxPause)
}
