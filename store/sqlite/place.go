package sqlite

import (
	"time"

	"github.com/pawlhq/pawl/store"
)

// placed is a Place as the row holds it: NULL for what is not there, and
// neither an owner nor a wake time for an end.
type placed struct {
	owner    any // who owns the row afterwards
	keepWake bool
	wakeAt   any
	mark     [5]any // step, grp, attempt, failures, crashes
	endedAt  any
}

// place returns how p is stored at now by w, which keeps the row or gives it
// back.
func place(p store.Place, w store.WorkerID, release bool, now int64) placed {
	row := placed{mark: markColumns(p.Mark)}
	if p.Status.Ended() {
		row.endedAt = now
		return row
	}
	if !release {
		row.owner = owner(w)
	}
	switch p.Wake.Kind {
	case store.WakeAfter:
		row.wakeAt = now + micros(p.Wake.After)
	case store.WakeAt:
		row.wakeAt = p.Wake.At.UnixMicro()
	case store.WakeKeep:
		row.keepWake = true
	}
	return row
}

func markColumns(m store.Mark) [5]any {
	if m.Step == "" {
		return [5]any{}
	}
	return [5]any{m.Step, m.Group, m.Attempt, null(m.Failures), null(m.Crashes)}
}

// micros rounds up, so that nothing is woken early.
func micros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}
