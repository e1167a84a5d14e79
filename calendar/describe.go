package calendar

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Describe says in words when the slots are.
func (c *Calendar) Describe() string {
	if c.spec.Every != 0 {
		return "every " + durationWords(c.spec.Every)
	}
	when, daily := c.fields.timeWords()
	parts := []string{when}
	if days := c.fields.dayWords(); days != "" {
		parts = append(parts, days)
	} else if daily {
		parts = []string{"every day", when}
	}
	if !star(c.fields.month) {
		parts = append(parts, "in "+list(c.fields.month, func(n int) string { return time.Month(n).String() }))
	}
	return strings.Join(parts, " ") + " (" + c.spec.Zone + ")"
}

// durationWords is a duration in its largest whole unit.
func durationWords(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{
		{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}, {time.Millisecond, "millisecond"},
	} {
		switch {
		case d == unit.size:
			return unit.name
		case d%unit.size == 0:
			return fmt.Sprintf("%d %ss", d/unit.size, unit.name)
		}
	}
	return d.String()
}

// fewTimes is up to how many times of day are listed one by one.
const fewTimes = 4

// timeWords says when on a day, and whether that means nothing without one.
func (f fields) timeWords() (words string, daily bool) {
	minutes, hours := values(f.minute), values(f.hour)
	switch {
	case star(f.hour) && len(minutes) == 60:
		return "every minute", false
	case star(f.hour) && len(minutes) == 1 && minutes[0] == 0:
		return "every hour", false
	case star(f.hour) && evenly(minutes):
		return fmt.Sprintf("every %d minutes", 60/len(minutes)), false
	case star(f.hour):
		return "every hour at " + minuteWords(f.minute), false
	case len(minutes)*len(hours) <= fewTimes:
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + and(times), true
	case len(minutes) == 60:
		return "every minute of " + hourWords(f.hour), true
	}
	return "at " + minuteWords(f.minute) + " of " + hourWords(f.hour), true
}

func minuteWords(field uint64) string { return plural("minute", field) }

func hourWords(field uint64) string { return plural("hour", field) }

func plural(name string, field uint64) string {
	if len(values(field)) > 1 {
		name += "s"
	}
	return name + " " + list(field, func(n int) string { return fmt.Sprint(n) })
}

// dayWords says on which days, or nothing for every day.
func (f fields) dayWords() string {
	byDay := "on " + plural("day", f.day) + " of the month"
	byWeekday := "on " + list(f.weekday, func(n int) string { return time.Weekday(n).String() })
	switch {
	case star(f.day) && star(f.weekday):
		return ""
	case star(f.day):
		return byWeekday
	case star(f.weekday):
		return byDay
	}
	return byDay + " or " + byWeekday
}

// values returns what a field holds, in order.
func values(field uint64) []int {
	field &^= 1 << 63
	all := make([]int, 0, bits.OnesCount64(field))
	for ; field != 0; field &= field - 1 {
		all = append(all, bits.TrailingZeros64(field))
	}
	return all
}

// evenly reports whether minutes, of which there are several, divide the hour
// into equal parts.
func evenly(minutes []int) bool {
	if len(minutes) < 2 || 60%len(minutes) != 0 {
		return false
	}
	for i, m := range minutes {
		if m != i*60/len(minutes) {
			return false
		}
	}
	return true
}

// list names what a field holds; three and more in a row are a range.
func list(field uint64, name func(int) string) string {
	all := values(field)
	var parts []string
	for i := 0; i < len(all); {
		end := i
		for end+1 < len(all) && all[end+1] == all[end]+1 {
			end++
		}
		if end-i >= 2 {
			parts = append(parts, name(all[i])+" to "+name(all[end]))
		} else {
			for _, n := range all[i : end+1] {
				parts = append(parts, name(n))
			}
		}
		i = end + 1
	}
	return and(parts)
}

// and joins a list the way it is said.
func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
