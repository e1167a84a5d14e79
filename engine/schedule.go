package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/calendar"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// ScheduleSpec says when a schedule's slots are, and what becomes of them. Either
// Cron or Every is set; the zero value of all else is the default.
type ScheduleSpec struct {
	// Cron is an expression of five fields, or one like @daily. See package
	// calendar.
	Cron string `json:"cron,omitempty"`

	// Every is an interval, counted from 1970-01-01 00:00 UTC: 100 ms to 366 days.
	Every time.Duration `json:"every_ns,omitempty"`

	// Zone is the IANA name of the zone that Cron is meant in. Default: UTC.
	Zone string `json:"-"` // has a column of its own

	// Gap and Repeat are for times of day that the clock leaps over, or that come
	// twice. Default: once right after the leap; once, at the first.
	Gap    calendar.Gap    `json:"gap,omitempty"`
	Repeat calendar.Repeat `json:"repeat,omitempty"`

	// Overlap says what becomes of a slot while an earlier run still goes on.
	// Default: OverlapSkip.
	Overlap Overlap `json:"overlap,omitempty"`

	// CatchUp says what becomes of slots that passed while no worker was there,
	// once one is. Default: CatchUpLast.
	CatchUp CatchUp `json:"catch_up,omitempty"`

	// CatchUpLimit is how many of the latest slots CatchUpAll fires: 1 to 1000.
	CatchUpLimit int `json:"catch_up_limit,omitempty"`

	// Grace is how late a slot may fire with CatchUpNone. Default: 1 minute.
	Grace time.Duration `json:"grace_ns,omitempty"`

	// Jitter delays each slot by a part of it that depends on the slot alone, so
	// that schedules of the same time do not all start at once. At most 24 hours,
	// and no more than Every.
	Jitter time.Duration `json:"jitter_ns,omitempty"`
}

// Overlap is a policy for slots that come while an earlier run still goes on.
// Backfilled runs do not count as earlier ones.
type Overlap string

// The overlap policies.
const (
	OverlapSkip   Overlap = "skip"   // leave the slot out
	OverlapQueue  Overlap = "queue"  // let it wait for the end of the run; while one waits, leave others out
	OverlapAllow  Overlap = "allow"  // start it beside the others
	OverlapCancel Overlap = "cancel" // ask for the run's rollback, and start the latest slot once it has ended
)

// CatchUp is a policy for slots that passed while no worker was there. Those
// that it fires are subject to the overlap policy like any other.
type CatchUp string

// The catch-up policies.
const (
	CatchUpNone CatchUp = "none" // none of them, unless the last is within its grace
	CatchUpLast CatchUp = "last" // the last one
	CatchUpAll  CatchUp = "all"  // the last ScheduleSpec.CatchUpLimit of them
)

const (
	// MaxScheduleNameBytes is the longest that a schedule's name may be: the ids of
	// its workflows are longer.
	MaxScheduleNameBytes = 160

	maxCatchUp   = 1000
	maxJitter    = 24 * time.Hour
	defaultGrace = time.Minute
)

// Returned by calls that name a schedule.
var (
	// ErrScheduleNotFound says that there is no schedule of that name.
	ErrScheduleNotFound = store.ErrScheduleNotFound

	// ErrScheduleExists says that there is a schedule of that name which differs.
	ErrScheduleExists = store.ErrScheduleExists

	// ErrBadSchedule says that a schedule's spec could not fire or cannot be
	// meant; the error is a *calendar.Error that names the field and the fault.
	ErrBadSchedule = calendar.ErrBadSpec
)

// Schedule makes workers start a workflow with data at each slot of spec, from
// now on, until the schedule is deleted. The workflow of a slot is named
// <name>/<nominal time in UTC>; its bodies learn the slot by [SlotOf]. However many
// workers there are, each slot starts at most one.
//
// It may be repeated, as a program does at each of its starts: the same name with
// the same spec and data changes nothing and returns false; with others it is an
// ErrScheduleExists. A spec that could not fire is an ErrBadSchedule.
func (w *Workflow[S]) Schedule(ctx context.Context, name string, spec ScheduleSpec, data S) (created bool, err error) {
	enc, err := encodeInput(data)
	if err != nil {
		return false, fmt.Errorf("create schedule %q: %w", cutText(name, MaxIDBytes), err)
	}
	return w.eng.createSchedule(ctx, w.reg, name, spec, enc)
}

// ScheduleJSON is [Workflow.Schedule] for a definition known only by name, with
// the data as JSON, which must fit the definition's type exactly.
func (e *Engine) ScheduleJSON(ctx context.Context, definition, name string, spec ScheduleSpec, data []byte) (created bool, err error) {
	reg, err := e.newest(definition)
	if err != nil {
		return false, fmt.Errorf("create schedule %q: %w", cutText(name, MaxIDBytes), err)
	}
	enc, err := reg.canonical(data)
	if err != nil {
		return false, fmt.Errorf("create schedule %q: %w", cutText(name, MaxIDBytes), err)
	}
	return e.createSchedule(ctx, reg, name, spec, enc)
}

func (e *Engine) createSchedule(ctx context.Context, reg *registered, name string, spec ScheduleSpec, data []byte) (created bool, err error) {
	if err := checkScheduleName(name); err != nil {
		return false, err
	}
	created, err = e.insertSchedule(ctx, reg, name, spec, data)
	if err != nil {
		return false, fmt.Errorf("create schedule %q: %w", name, err)
	}
	return created, nil
}

func (e *Engine) insertSchedule(ctx context.Context, reg *registered, name string, spec ScheduleSpec, data []byte) (created bool, err error) {
	p, err := compilePlan(name, spec)
	if err != nil {
		return false, err
	}
	if _, err := e.prepare(reg, SlotID(name, time.Unix(0, 0)), data); err != nil {
		return false, err
	}
	row := store.Schedule{Name: name, Definition: reg.def.Name, Zone: p.spec.Zone, Spec: p.encode(), Data: data}
	err = retry(ctx, func() error {
		now, err := e.store.Now(ctx)
		if err != nil {
			return err
		}
		row.NextAt = p.cal.Next(now)
		row.DueAt = p.dueAt(row.ScheduleState, now, 0)
		return e.store.CreateSchedule(ctx, row)
	})
	if !errors.Is(err, store.ErrScheduleExists) {
		return err == nil, err
	}
	have, err := e.store.GetSchedule(ctx, name)
	if err != nil {
		return false, err
	}
	if isCoded(have.Data) {
		return false, codecErrorOf(fmt.Sprintf("schedule %q", name), have.Data)
	}
	if what := differsIn(have, row); what != "" {
		return false, fmt.Errorf("%w with another %s", ErrScheduleExists, what)
	}
	return false, nil
}

// differsIn names in what two schedules of one name differ, or returns "".
func differsIn(a, b store.Schedule) string {
	switch {
	case a.Definition != b.Definition:
		return "definition"
	case a.Zone != b.Zone:
		return "zone"
	case !bytes.Equal(a.Spec, b.Spec):
		return "spec"
	case !bytes.Equal(a.Data, b.Data):
		return "input"
	}
	return ""
}

func checkScheduleName(name string) error {
	if err := CheckID(name); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	if len(name) > MaxScheduleNameBytes {
		return fmt.Errorf("schedule: %w %q…: %d bytes, at most %d", ErrBadID, cutText(name, 24), len(name), MaxScheduleNameBytes)
	}
	return nil
}

// SlotID is the id of the workflow that a schedule starts for a slot.
func SlotID(schedule string, nominal time.Time) string {
	return schedule + "/" + nominal.UTC().Format(time.RFC3339Nano)
}

// ParseSlotID tells of which schedule and slot a workflow is, by its id. It
// reports false if the id is none of [SlotID].
func ParseSlotID(id string) (schedule string, nominal time.Time, ok bool) {
	at := strings.LastIndexByte(id, '/')
	if at <= 0 {
		return "", time.Time{}, false
	}
	nominal, err := time.Parse(time.RFC3339Nano, id[at+1:])
	if err != nil || SlotID(id[:at], nominal) != id {
		return "", time.Time{}, false
	}
	return id[:at], nominal.UTC(), true
}

// SlotOf tells a body, by its key, for which schedule and slot it works: a report
// of a day must know the day, even if it comes late. It reports false if its
// workflow was started by no schedule.
func SlotOf(key step.Key) (schedule string, nominal time.Time, ok bool) {
	id := key.String()
	for range 2 { // the group, and the step's name
		at := strings.LastIndexByte(id, '/')
		if at < 0 {
			return "", time.Time{}, false
		}
		id = id[:at]
	}
	return ParseSlotID(id)
}

// ScheduleInfo is a schedule as it stood when it was read. All times of slots are
// nominal: what the calendar says, before any jitter.
type ScheduleInfo struct {
	Name        string
	Definition  string // of the workflows that it starts
	Spec        ScheduleSpec
	Description string      // in words, when its slots are
	Raw         []byte      // the data of its workflows, encoded; nil in a list
	Next        []time.Time // the next five slots; none if there are no more
	DueAt       time.Time   // when a worker looks at it next; zero for never
	Last        store.Slot  // the latest row of its ledger; zero if there is none
	Queued      time.Time   // the slot that waits for the end of a run; zero if none
	Running     []string    // ids of its workflows that may not have ended
	Paused      bool
	PausedAt    time.Time
	Note        string // why it is paused
	Error       string // why its last slot could not be decided; "" if it could
	Revision    int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// previewSlots is how many coming slots a ScheduleInfo shows.
const previewSlots = 5

// GetSchedule returns a schedule as it stands, or ErrScheduleNotFound.
func (e *Engine) GetSchedule(ctx context.Context, name string) (ScheduleInfo, error) {
	s, err := e.readSchedule(ctx, name)
	if err != nil {
		return ScheduleInfo{}, err
	}
	return e.scheduleInfo(ctx, s)
}

func (e *Engine) readSchedule(ctx context.Context, name string) (store.Schedule, error) {
	if err := checkScheduleName(name); err != nil {
		return store.Schedule{}, err
	}
	return e.store.GetSchedule(ctx, name)
}

// ListSchedules returns up to limit schedules behind the name after, in the order
// of their names, without their data.
func (e *Engine) ListSchedules(ctx context.Context, after string, limit int) ([]ScheduleInfo, error) {
	rows, err := e.store.ListSchedules(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	infos := make([]ScheduleInfo, len(rows))
	for i, s := range rows {
		if infos[i], err = e.scheduleInfo(ctx, s); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// Slots returns up to limit rows of a schedule's ledger, the latest first: what
// became of each of its slots.
func (e *Engine) Slots(ctx context.Context, name string, limit int) ([]store.Slot, error) {
	if _, err := e.readSchedule(ctx, name); err != nil {
		return nil, err
	}
	return e.store.Slots(ctx, name, time.Time{}, limit)
}

// scheduleInfo tells of a row, even of one that this program cannot decide about.
func (e *Engine) scheduleInfo(ctx context.Context, s store.Schedule) (ScheduleInfo, error) {
	info := ScheduleInfo{
		Name: s.Name, Definition: s.Definition, Raw: s.Data, DueAt: s.DueAt, Queued: s.Queued, Running: s.Running,
		Paused: s.Paused, PausedAt: s.PausedAt, Note: shown(s.Note), Error: shown(s.Error),
		Revision: s.Revision, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	if p, err := planOf(s); err != nil {
		info.Spec.Zone, info.Error = s.Zone, or(shown(s.Error), err.Error())
	} else {
		info.Spec, info.Description = p.spec, p.cal.Describe()
		if !s.NextAt.IsZero() {
			info.Next = append([]time.Time{s.NextAt}, p.cal.Slots(s.NextAt, previewSlots-1)...)
		}
	}
	last, err := e.store.Slots(ctx, s.Name, time.Time{}, 1)
	if len(last) == 1 {
		info.Last = last[0]
	}
	return info, err
}

// plan is a schedule as it is decided by.
type plan struct {
	name string
	spec ScheduleSpec // with its defaults in place
	cal  *calendar.Calendar
}

// compilePlan checks a spec.
func compilePlan(name string, spec ScheduleSpec) (*plan, error) {
	cal, err := calendar.Spec{Cron: spec.Cron, Every: spec.Every, Zone: spec.Zone, Gap: spec.Gap, Repeat: spec.Repeat}.Compile()
	if err != nil {
		return nil, err
	}
	spec.Zone = cal.Spec().Zone
	spec.Overlap = or(spec.Overlap, OverlapSkip)
	spec.CatchUp = or(spec.CatchUp, CatchUpLast)
	spec.Grace = or(spec.Grace, defaultGrace)
	if err := spec.check(); err != nil {
		return nil, err
	}
	return &plan{name, spec, cal}, nil
}

// check returns what is wrong with the policies of a spec.
func (s ScheduleSpec) check() error {
	refuse := func(field, format string, args ...any) error {
		return &calendar.Error{Field: field, Fault: fmt.Sprintf(format, args...)}
	}
	overlaps := []Overlap{OverlapSkip, OverlapQueue, OverlapAllow, OverlapCancel}
	catchUps := []CatchUp{CatchUpNone, CatchUpLast, CatchUpAll}
	switch {
	case !slices.Contains(overlaps, s.Overlap):
		return refuse("overlap", "%.32q: it is one of %v", s.Overlap, overlaps)
	case !slices.Contains(catchUps, s.CatchUp):
		return refuse("catch-up", "%.32q: it is one of %v", s.CatchUp, catchUps)
	case s.CatchUp == CatchUpAll && (s.CatchUpLimit < 1 || s.CatchUpLimit > maxCatchUp):
		return refuse("catch-up limit", "%d: it is 1 to %d", s.CatchUpLimit, maxCatchUp)
	case s.CatchUp != CatchUpAll && s.CatchUpLimit != 0:
		return refuse("catch-up limit", "it is for catch-up all, and this is %s", s.CatchUp)
	case s.Grace < 0:
		return refuse("grace", "%v: it cannot be negative", s.Grace)
	case s.Jitter < 0 || s.Jitter > maxJitter:
		return refuse("jitter", "%v: it is 0 to %v", s.Jitter, maxJitter)
	case s.Every != 0 && s.Jitter > s.Every:
		return refuse("jitter", "%v: it is longer than the interval, %v", s.Jitter, s.Every)
	}
	return nil
}

// encode is a spec as the store keeps it.
func (p *plan) encode() []byte {
	enc, err := json.Marshal(p.spec)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return enc
}

// planOf is the way back from the store.
func planOf(s store.Schedule) (*plan, error) {
	spec := ScheduleSpec{Zone: s.Zone}
	if err := json.Unmarshal(s.Spec, &spec); err != nil {
		return nil, fmt.Errorf("read its spec: %w", err)
	}
	return compilePlan(s.Name, spec)
}
