// Package calendar says when a schedule's slots are: a cron expression or an
// interval, in a time zone, with a declared policy for the two days a year on
// which a clock is changed. It is pure: no clock, no context, no I/O.
//
//	cal, err := calendar.Spec{Cron: "30 2 * * *", Zone: "America/New_York"}.Compile()
//	next := cal.Next(time.Now())   // the first slot after now, in UTC
//	five := cal.Slots(time.Now(), 5)
//	text := cal.Describe()         // "every day at 02:30 (America/New_York)"
//
// # Expressions
//
// Five fields: minute, hour, day of the month, month, day of the week (0 to 6
// or sun to sat), each a list of values, ranges and steps; or one of @hourly,
// @daily, @midnight, @weekly, @monthly, @yearly and @annually. If both days are
// restricted, a day needs to fit one of them only. The zone is a name of the
// IANA database, given apart: an expression that carries one of its own is
// refused. Compile refuses whatever could not fire, with a [*Error] that names
// the field and the fault.
//
// # When clocks are changed
//
// A slot at a time of day that the clock leaps over fires once, right after the
// leap; several slots within one leap are one. A slot at a time of day that
// comes twice fires once, at the first. [Gap] and [Repeat] choose otherwise.
//
// An expression whose hour is * has no time of day: it fires as often as its
// minutes come by, twice in an hour that comes twice, and not in one that does
// not come. So "every quarter of an hour" has neither a hole nor a crowd.
//
// Intervals are counted from 1970-01-01 00:00 UTC and know no clocks at all: a
// restart does not shift them.
package calendar
