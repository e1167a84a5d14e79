package calendar

import "time"

// Calendar is a compiled Spec. It never changes, and is safe for concurrent use.
type Calendar struct {
	spec   Spec
	zone   *time.Location
	fields fields
	gap    Gap    // as it applies to the expression
	repeat Repeat // likewise
}

// Spec returns what the calendar was compiled from, with its zone named.
func (c *Calendar) Spec() Spec { return c.spec }

// horizon is how many days are looked through for the next slot. The rarest
// date is a leap day around a year like 2100, which comes after eight years.
const horizon = 9 * 366

// proofStart is from when an expression must have a next slot to be accepted. It
// is fixed, so that what was accepted once is always accepted.
var proofStart = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Next returns the first slot after a time, in UTC, or the zero time if there is
// none in the next nine years.
func (c *Calendar) Next(after time.Time) time.Time {
	if c.spec.Every != 0 {
		return nextMultiple(after, c.spec.Every)
	}
	local := after.In(c.zone)
	// The slots of a day that a leap has moved may lie in the next one.
	day := date{local.Year(), local.Month(), local.Day()}.plus(-1)
	for range horizon {
		if first := c.firstOf(day, after); !first.IsZero() {
			return earlier(first, c.firstOf(day.plus(1), after))
		}
		day = day.plus(1)
	}
	return time.Time{}
}

// Slots returns the next n slots after a time, in order.
func (c *Calendar) Slots(after time.Time, n int) []time.Time {
	var slots []time.Time
	for range n {
		if after = c.Next(after); after.IsZero() {
			break
		}
		slots = append(slots, after)
	}
	return slots
}

// nextMultiple returns the first multiple of d since 1970 after a time.
func nextMultiple(after time.Time, d time.Duration) time.Time {
	step, ms := d.Milliseconds(), after.UnixMilli()
	n := ms / step
	if ms%step < 0 {
		n--
	}
	return time.UnixMilli((n + 1) * step).UTC()
}

// date is a day without a time or zone.
type date struct {
	year  int
	month time.Month
	day   int
}

// at is the time of day on a clock that shows UTC.
func (d date) at(hour, minute int) time.Time {
	return time.Date(d.year, d.month, d.day, hour, minute, 0, 0, time.UTC)
}

func (d date) plus(days int) date {
	t := d.at(12, 0).AddDate(0, 0, days)
	return date{t.Year(), t.Month(), t.Day()}
}

// firstOf returns the first slot of a day that comes after a time, or the zero
// time.
func (c *Calendar) firstOf(d date, after time.Time) (first time.Time) {
	if !c.fields.matches(d) {
		return first
	}
	steady, offset := c.steady(d)
	for hour := range 24 {
		if !has(c.fields.hour, hour) {
			continue
		}
		for minute := range 60 {
			if !has(c.fields.minute, minute) {
				continue
			}
			wall := d.at(hour, minute)
			if !steady {
				first = earlier(first, c.firstAt(wall, after))
			} else if slot := wall.Add(-offset); slot.After(after) {
				return earlier(first, slot)
			}
		}
	}
	return first
}

// steady reports whether no clock is changed around a day, and by how much it
// is ahead of UTC then.
func (c *Calendar) steady(d date) (bool, time.Duration) {
	before, after := c.offset(d.at(0, 0).Add(-around)), c.offset(d.at(24, 0).Add(around))
	return before == after, before
}

// around is more than any clock is off UTC.
const around = 24 * time.Hour

func (c *Calendar) offset(t time.Time) time.Duration {
	_, seconds := t.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// firstAt returns the first slot after a time that a clock which shows wall
// stands for by the policies, or the zero time.
func (c *Calendar) firstAt(wall, after time.Time) (first time.Time) {
	for _, slot := range c.instants(wall) {
		if slot.After(after) {
			first = earlier(first, slot)
		}
	}
	return first
}

// instants returns when the zone's clocks show wall, by the policies.
func (c *Calendar) instants(wall time.Time) []time.Time {
	early := wall.Add(-c.offset(wall.Add(-around))) // by the offset before a change, if there is one
	late := wall.Add(-c.offset(wall.Add(around)))   // and after it
	isEarly, isLate := c.shows(early, wall), c.shows(late, wall)
	switch {
	case isEarly && isLate && !early.Equal(late): // it comes twice
		switch c.repeat {
		case RepeatFirst:
			return []time.Time{early}
		case RepeatSecond:
			return []time.Time{late}
		}
		return []time.Time{early, late}
	case isEarly:
		return []time.Time{early}
	case isLate:
		return []time.Time{late}
	case c.gap == GapAfter: // the clock leaps over it
		leap, _ := early.In(c.zone).ZoneBounds()
		return []time.Time{leap.UTC()}
	}
	return nil
}

// shows reports whether the zone's clocks show wall at t.
func (c *Calendar) shows(t, wall time.Time) bool {
	return t.Add(c.offset(t)).Equal(wall)
}

// earlier returns the earlier of two times, of which each may be missing.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// fields are the values of an expression, a bit for each.
type fields struct{ minute, hour, day, month, weekday uint64 }

// has reports whether a field holds a value.
func has(field uint64, value int) bool { return field&(1<<value) != 0 }

// star reports whether a field was written as *.
func star(field uint64) bool { return field&(1<<63) != 0 }

// matches reports whether an expression fires on a day. Of two restricted fields
// one is enough.
func (f fields) matches(d date) bool {
	if !has(f.month, int(d.month)) {
		return false
	}
	byDay, byWeekday := has(f.day, d.day), has(f.weekday, int(d.at(12, 0).Weekday()))
	if star(f.day) || star(f.weekday) {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// empty names a field that holds no value, or returns "".
func (f fields) empty() string {
	for _, field := range []struct {
		name   string
		values uint64
	}{
		{"minute", f.minute}, {"hour", f.hour}, {"day of the month", f.day}, {"month", f.month}, {"day of the week", f.weekday},
	} {
		if field.values&^(1<<63) == 0 {
			return field.name
		}
	}
	return ""
}
