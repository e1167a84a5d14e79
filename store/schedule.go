package store

import (
	"context"
	"errors"
	"time"
)

// Schedules keeps schedules and the ledger of their slots.
//
// Everything that happens to a schedule is one ChangeSchedule, a
// compare-and-swap on its revision. So any number of workers may decide about
// the same slot at once, and one of them does.
type Schedules interface {
	// CreateSchedule inserts a schedule. It returns ErrScheduleExists if there is
	// one of that name.
	CreateSchedule(ctx context.Context, s Schedule) error

	// GetSchedule returns a schedule, or ErrScheduleNotFound.
	GetSchedule(ctx context.Context, name string) (Schedule, error)

	// ListSchedules returns up to limit schedules behind a name, in the order of
	// their names, without their Data.
	ListSchedules(ctx context.Context, after string, limit int) ([]Schedule, error)

	// DueSchedules returns up to limit schedules of the given definitions (their
	// names) that are due by the database's clock, the longest due first.
	DueSchedules(ctx context.Context, definitions []string, limit int) (DueSchedules, error)

	// ChangeSchedule writes, in one transaction: the schedule's row, if its
	// revision is still the one that the change believes in; the slots; and the
	// workflows of the slots that fire. The answer is Lost if the revision was
	// another, and then nothing was written.
	//
	// A slot that has fired before keeps its row, and starts nothing. A slot whose
	// workflow cannot be started because its id is taken is recorded as
	// SlotSkipped. The workflows are started as by StartTx: nobody owns them.
	ChangeSchedule(ctx context.Context, c ScheduleChange) (Verdict, error)

	// DeleteSchedule removes a schedule and its ledger, or returns
	// ErrScheduleNotFound. The workflows that it has started go on.
	DeleteSchedule(ctx context.Context, name string) error

	// Slots returns up to limit rows of a schedule's ledger whose nominal time is
	// before a time, the latest first; a zero time does not restrict.
	Slots(ctx context.Context, name string, before time.Time, limit int) ([]Slot, error)

	// SlotsBetween returns all rows of a schedule's ledger from one nominal time
	// to another, both included, in their order.
	SlotsBetween(ctx context.Context, name string, from, to time.Time) ([]Slot, error)
}

// Returned by calls that name a schedule.
var (
	// ErrScheduleNotFound says that there is no schedule of that name.
	ErrScheduleNotFound = errors.New("no such schedule")

	// ErrScheduleExists says that there is a schedule of that name.
	ErrScheduleExists = errors.New("schedule exists")
)

// Schedule is a schedule's row. All times of slots are nominal times: what the
// calendar says, before any jitter.
type Schedule struct {
	Name       string
	Definition string // of the workflows that it starts
	Zone       string // the IANA name of its zone
	Spec       []byte // the rest of what it was made with, as the engine keeps it
	Data       []byte // of the workflows that it starts
	ScheduleState
	Revision  int64     // counts its changes, from 1. Set by the store
	PausedAt  time.Time // zero unless paused. Set by the store
	CreatedAt time.Time // by the database's clock. Set by the store
	UpdatedAt time.Time // likewise
}

// ScheduleState is the part of a schedule that changes.
type ScheduleState struct {
	NextAt  time.Time // the first slot that is not decided; zero if there is none
	DueAt   time.Time // when it is to be looked at, by the database's clock; zero for never
	Queued  time.Time // the slot that waits for the end of a run; zero if none
	Running []string  // ids of workflows that it started and that may not have ended
	Paused  bool
	Note    string // why it is paused, for people
	Error   string // why its last slot could not be decided, for people; "" if it could
}

// DueSchedules is the answer to what is due.
type DueSchedules struct {
	Due  []Schedule
	Now  time.Time // the database's
	Next time.Time // when the first is due that is not due yet; zero if there is none
}

// ScheduleChange is one change of a schedule.
type ScheduleChange struct {
	Name     string
	Revision int64 // what it believes to be the schedule's
	ScheduleState
	Slots []SlotChange // with nominal times that are distinct
}

// SlotChange is a decision about a slot.
type SlotChange struct {
	Slot
	Start *New // for a SlotFired: the workflow
}

// SlotStatus says what was decided about a slot. It is stored as its text.
type SlotStatus string

// The statuses of a slot.
const (
	SlotFired   SlotStatus = "FIRED"   // its workflow was started
	SlotSkipped SlotStatus = "SKIPPED" // left out on purpose; Slot.Reason says why
	SlotMissed  SlotStatus = "MISSED"  // nobody was there in time
	SlotQueued  SlotStatus = "QUEUED"  // waits for the end of a run; FIRED or SKIPPED follows
)

// SlotOrigin says what a slot comes from. It is stored as its text.
type SlotOrigin string

// The origins of a slot.
const (
	SlotOfCalendar SlotOrigin = "calendar"
	SlotOfTrigger  SlotOrigin = "trigger"
	SlotOfBackfill SlotOrigin = "backfill"
)

// Slot is a row of a schedule's ledger. Schedule and nominal time are unique.
type Slot struct {
	Nominal    time.Time // in UTC, of whole microseconds
	Status     SlotStatus
	Origin     SlotOrigin
	WorkflowID string    // of a SlotFired
	Reason     string    // of a SlotSkipped and SlotMissed
	DecidedAt  time.Time // by the database's clock. Set by the store
}

// ReasonTaken is the reason of a slot that was skipped because there was a
// workflow of its id before.
const ReasonTaken = "a workflow of that id was there before"
