package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the zones, for machines that have none

	"github.com/robfig/cron/v3"
)

// Bounds of a Spec.
const (
	// MaxCronBytes is the longest that an expression may be.
	MaxCronBytes = 256

	// MinEvery and MaxEvery bound an interval, which is a whole number of
	// milliseconds.
	MinEvery = 100 * time.Millisecond
	MaxEvery = 366 * 24 * time.Hour
)

// Gap says what becomes of a slot at a time of day that the clock leaps over.
type Gap string

const (
	// GapAfter fires it once, right after the leap. It is the default, as "" is.
	GapAfter Gap = "after"

	// GapSkip leaves it out.
	GapSkip Gap = "skip"
)

// Repeat says what becomes of a slot at a time of day that comes twice.
type Repeat string

const (
	// RepeatFirst fires it at the first. It is the default, as "" is.
	RepeatFirst Repeat = "first"

	// RepeatSecond fires it at the second.
	RepeatSecond Repeat = "second"

	// RepeatBoth fires it twice.
	RepeatBoth Repeat = "both"
)

// Spec says when. Exactly one of Cron and Every is set.
type Spec struct {
	Cron   string        // an expression; see the package's comment
	Every  time.Duration // an interval
	Zone   string        // the IANA name of the zone that Cron is meant in; "UTC" if empty
	Gap    Gap           // for Cron
	Repeat Repeat        // for Cron
}

// ErrBadSpec is what every refusal of a Spec matches.
var ErrBadSpec = errors.New("bad schedule")

// Error says which field of a Spec is refused, and why. It matches ErrBadSpec.
type Error struct {
	Field string // "cron", "every", "zone", "gap" or "repeat"
	Fault string
}

// Error implements error.
func (e *Error) Error() string { return ErrBadSpec.Error() + ": " + e.Field + ": " + e.Fault }

// Is makes the error match ErrBadSpec.
func (e *Error) Is(target error) bool { return target == ErrBadSpec }

func refuse(field, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...)}
}

// Compile checks a Spec. It neither panics nor hangs, whatever the Spec holds,
// and every error is an *Error.
func (s Spec) Compile() (*Calendar, error) {
	if s.Zone == "" {
		s.Zone = time.UTC.String()
	}
	zone, err := loadZone(s.Zone)
	if err != nil {
		return nil, err
	}
	c := &Calendar{spec: s, zone: zone}
	switch {
	case s.Cron != "" && s.Every != 0:
		return nil, refuse("cron", "there is an interval too: one of the two is enough")
	case s.Cron != "":
		return c, c.parseCron()
	case s.Every != 0:
		return c, checkEvery(s)
	}
	return nil, refuse("cron", "it is empty, and there is no interval either")
}

func loadZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, refuse("zone", `"Local" is another zone on each machine: name one`)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, refuse("zone", "%.64q is not in the IANA database", name)
	}
	return zone, nil
}

func checkEvery(s Spec) error {
	switch {
	case s.Every < MinEvery || s.Every > MaxEvery:
		return refuse("every", "%v: it is %v to %v", s.Every, MinEvery, MaxEvery)
	case s.Every%time.Millisecond != 0:
		return refuse("every", "%v: it is not a whole number of milliseconds", s.Every)
	case s.Gap != "" || s.Repeat != "":
		return refuse("every", "an interval knows no clocks: leave gap and repeat empty")
	}
	return nil
}

// parseCron fills in the fields of the expression, and the policies.
func (c *Calendar) parseCron() error {
	if err := checkCron(c.spec.Cron); err != nil {
		return err
	}
	f, err := parse(c.spec.Cron)
	if err != nil {
		return refuse("cron", "%v", err)
	}
	c.fields = f
	if name := f.empty(); name != "" {
		return refuse("cron", "it names no %s", name)
	}
	if err := c.choosePolicies(); err != nil {
		return err
	}
	if c.Next(proofStart).IsZero() {
		return refuse("cron", "it never fires: there is no such date")
	}
	return nil
}

// checkCron refuses what the parser does not bear, or not the way it is meant.
func checkCron(text string) error {
	switch {
	case len(text) > MaxCronBytes:
		return refuse("cron", "%d bytes, at most %d", len(text), MaxCronBytes)
	case strings.TrimSpace(text) == "":
		return refuse("cron", "it is empty")
	case strings.Contains(text, "TZ="):
		return refuse("cron", "it names a zone: say that apart, as the schedule's zone")
	case strings.HasPrefix(text, "@every"):
		return refuse("cron", "@every is an interval: say that apart, as the schedule's interval")
	}
	return nil
}

// parser is the part of robfig/cron that is used here: its runner keeps nothing.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parse reads an expression. The parser is known to panic at some: what it
// makes of others is checked, but for what nobody has found yet there is the
// recover.
func parse(text string) (f fields, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v", p)
		}
	}()
	parsed, err := parser.Parse(strings.TrimSpace(text))
	if err != nil {
		return fields{}, err
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return fields{}, errors.New("it is not a calendar's")
	}
	return fields{minute: s.Minute, hour: s.Hour, day: s.Dom, month: s.Month, weekday: s.Dow}, nil
}

// choosePolicies puts the defaults in place. An expression that fires every hour
// has no time of day that could be missing or come twice.
func (c *Calendar) choosePolicies() error {
	c.gap, c.repeat = c.spec.Gap, c.spec.Repeat
	switch c.gap {
	case "":
		c.gap = GapAfter
	case GapAfter, GapSkip:
	default:
		return refuse("gap", "%.32q: it is one of %s, %s", c.gap, GapAfter, GapSkip)
	}
	switch c.repeat {
	case "":
		c.repeat = RepeatFirst
	case RepeatFirst, RepeatSecond, RepeatBoth:
	default:
		return refuse("repeat", "%.32q: it is one of %s, %s, %s", c.repeat, RepeatFirst, RepeatSecond, RepeatBoth)
	}
	if star(c.fields.hour) {
		c.gap, c.repeat = GapSkip, RepeatBoth
	}
	return nil
}
