package calendar

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return v.UTC()
}

// The slots after a time, for as many as are wanted.
func TestSlots(t *testing.T) {
	t.Parallel()
	const newYork, london, saoPaulo = "America/New_York", "Europe/London", "America/Sao_Paulo"
	for name, c := range map[string]struct {
		spec  Spec
		after string
		want  []string
	}{
		"New York leaps over 02:30": {
			Spec{Cron: "30 2 * * *", Zone: newYork}, "2025-03-08T08:00:00Z",
			[]string{"2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"},
		},
		"New York leaps over 02:30, left out": {
			Spec{Cron: "30 2 * * *", Zone: newYork, Gap: GapSkip}, "2025-03-08T08:00:00Z",
			[]string{"2025-03-10T06:30:00Z"},
		},
		"New York has 01:30 twice": {
			Spec{Cron: "30 1 * * *", Zone: newYork}, "2025-11-01T12:00:00Z",
			[]string{"2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"},
		},
		"New York has 01:30 twice, the second": {
			Spec{Cron: "30 1 * * *", Zone: newYork, Repeat: RepeatSecond}, "2025-11-01T12:00:00Z",
			[]string{"2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z"},
		},
		"New York has 01:30 twice, both": {
			Spec{Cron: "30 1 * * *", Zone: newYork, Repeat: RepeatBoth}, "2025-11-01T12:00:00Z",
			[]string{"2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z"},
		},
		"London leaps over 01:30": {
			Spec{Cron: "30 1 * * *", Zone: london}, "2025-03-29T12:00:00Z",
			[]string{"2025-03-30T01:00:00Z", "2025-03-31T00:30:00Z"},
		},
		"Sao Paulo leaps over midnight": {
			Spec{Cron: "0 0 * * *", Zone: saoPaulo}, "2018-11-03T12:00:00Z",
			[]string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		},
		"Sao Paulo has the hour before midnight twice": {
			Spec{Cron: "30 23 * * *", Zone: saoPaulo}, "2018-02-17T12:00:00Z",
			[]string{"2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"},
		},
		"several slots in one leap are one": {
			Spec{Cron: "*/15 2 * * *", Zone: newYork}, "2025-03-08T08:00:00Z",
			[]string{"2025-03-09T07:00:00Z", "2025-03-10T06:00:00Z", "2025-03-10T06:15:00Z"},
		},
		"a leap's slot and one right after it are one": {
			Spec{Cron: "0 2,3 * * *", Zone: newYork}, "2025-03-09T00:00:00Z",
			[]string{"2025-03-09T07:00:00Z", "2025-03-10T06:00:00Z"},
		},
		"every quarter of an hour has no hole where an hour is missing": {
			Spec{Cron: "*/30 * * * *", Zone: newYork}, "2025-03-09T06:15:00Z",
			[]string{"2025-03-09T06:30:00Z", "2025-03-09T07:00:00Z", "2025-03-09T07:30:00Z"},
		},
		"nor where one comes twice": {
			Spec{Cron: "*/30 * * * *", Zone: newYork}, "2025-11-02T05:00:00Z",
			[]string{"2025-11-02T05:30:00Z", "2025-11-02T06:00:00Z", "2025-11-02T06:30:00Z", "2025-11-02T07:00:00Z"},
		},
		"half an hour's change of Lord Howe": {
			Spec{Cron: "15 2 * * *", Zone: "Australia/Lord_Howe"}, "2025-10-04T00:00:00Z",
			[]string{"2025-10-04T15:30:00Z", "2025-10-05T15:15:00Z"},
		},
		"St John's goes back over midnight, in order": {
			Spec{Cron: "0,30 0,23 * * *", Zone: "America/St_Johns", Repeat: RepeatBoth}, "2010-11-07T01:00:00Z",
			[]string{"2010-11-07T01:30:00Z", "2010-11-07T02:00:00Z", "2010-11-07T02:30:00Z", "2010-11-07T03:00:00Z", "2010-11-07T03:30:00Z", "2010-11-07T04:00:00Z"},
		},
		"St John's goes back to the day before": {
			Spec{Cron: "30 23 * * *", Zone: "America/St_Johns", Repeat: RepeatSecond}, "2010-11-07T02:30:30Z",
			[]string{"2010-11-07T03:00:00Z", "2010-11-08T03:00:00Z"},
		},
		"Samoa skips a whole day": {
			Spec{Cron: "0 12 * * *", Zone: "Pacific/Apia"}, "2011-12-29T22:30:00Z",
			[]string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"},
		},
		"the leap day after 2096": {
			Spec{Cron: "0 0 29 2 *"}, "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"},
		},
		"one of two restricted days is enough": {
			Spec{Cron: "0 0 13 * fri"}, "2025-06-06T12:00:00Z",
			[]string{"2025-06-13T00:00:00Z", "2025-06-20T00:00:00Z", "2025-06-27T00:00:00Z", "2025-07-04T00:00:00Z", "2025-07-11T00:00:00Z", "2025-07-13T00:00:00Z"},
		},
		"the slot itself is not after itself": {
			Spec{Cron: "@daily"}, "2025-06-06T00:00:00Z", []string{"2025-06-07T00:00:00Z"},
		},
		"an interval counts from 1970": {
			Spec{Every: 7 * time.Second}, "1970-01-01T00:00:10Z", []string{"1970-01-01T00:00:14Z", "1970-01-01T00:00:21Z"},
		},
		"an interval before 1970": {
			Spec{Every: 7 * time.Second}, "1969-12-31T23:59:52Z", []string{"1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cal, err := c.spec.Compile()
			require.NoError(t, err)
			var got []string
			for _, slot := range cal.Slots(at(t, c.after), len(c.want)) {
				got = append(got, slot.Format(time.RFC3339))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// What could not fire, or would hang or panic, is refused with the field and
// the fault.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec         Spec
		field, fault string
	}{
		"nothing":                  {Spec{}, "cron", "no interval either"},
		"both":                     {Spec{Cron: "@daily", Every: time.Hour}, "cron", "one of the two"},
		"no such date":             {Spec{Cron: "0 0 30 2 *"}, "cron", "never fires"},
		"a zone and nothing else":  {Spec{Cron: "CRON_TZ=UTC"}, "cron", "names a zone"},
		"a zone":                   {Spec{Cron: "TZ=UTC 0 0 * * *"}, "cron", "names a zone"},
		"a zone behind space":      {Spec{Cron: " TZ=UTC"}, "cron", "names a zone"},
		"10 KB of commas":          {Spec{Cron: strings.Repeat(",", 10<<10)}, "cron", "10240 bytes, at most 256"},
		"commas alone":             {Spec{Cron: ", * * * *"}, "cron", "names no minute"},
		"a step of zero":           {Spec{Cron: "*/0 * * * *"}, "cron", "step of range should be a positive number"},
		"a step of zero alone":     {Spec{Cron: "*/0"}, "cron", "expected exactly 5 fields"},
		"seconds":                  {Spec{Cron: "0 0 0 * * *"}, "cron", "expected exactly 5 fields"},
		"space":                    {Spec{Cron: "  "}, "cron", "empty"},
		"a minute too late":        {Spec{Cron: "60 * * * *"}, "cron", "above maximum"},
		"a range backwards":        {Spec{Cron: "5-1 * * * *"}, "cron", "beyond end"},
		"@every":                   {Spec{Cron: "@every 1h"}, "cron", "as the schedule's interval"},
		"@reboot":                  {Spec{Cron: "@reboot"}, "cron", "unrecognized"},
		"no such zone":             {Spec{Cron: "@daily", Zone: "Mars/Olympus"}, "zone", "not in the IANA database"},
		"a path for a zone":        {Spec{Cron: "@daily", Zone: "../../etc/passwd"}, "zone", "not in the IANA database"},
		"the machine's zone":       {Spec{Cron: "@daily", Zone: "Local"}, "zone", "each machine"},
		"a policy for a gap":       {Spec{Cron: "@daily", Gap: "jump"}, "gap", `"jump"`},
		"a policy for a repeat":    {Spec{Cron: "@daily", Repeat: "thrice"}, "repeat", `"thrice"`},
		"a negative interval":      {Spec{Every: -time.Second}, "every", "it is 100ms to"},
		"an interval too short":    {Spec{Every: time.Millisecond}, "every", "it is 100ms to"},
		"an interval too long":     {Spec{Every: 400 * 24 * time.Hour}, "every", "it is 100ms to"},
		"an interval too fine":     {Spec{Every: time.Second + time.Microsecond}, "every", "milliseconds"},
		"an interval with a clock": {Spec{Every: time.Second, Gap: GapSkip}, "every", "knows no clocks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := c.spec.Compile()
			require.ErrorIs(t, err, ErrBadSpec)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.field, e.Field)
			require.Contains(t, e.Fault, c.fault)
		})
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"* * * * *":             "every minute (UTC)",
		"*/15 * * * *":          "every 15 minutes (UTC)",
		"0 * * * *":             "every hour (UTC)",
		"5,35 * * * *":          "every hour at minutes 5 and 35 (UTC)",
		"30 2 * * *":            "every day at 02:30 (UTC)",
		"0 9,17 * * mon-fri":    "at 09:00 and 17:00 on Monday to Friday (UTC)",
		"0 0 1 * *":             "at 00:00 on day 1 of the month (UTC)",
		"0 0 1,15 1,7 *":        "at 00:00 on days 1 and 15 of the month in January and July (UTC)",
		"0 0 13 * fri":          "at 00:00 on day 13 of the month or on Friday (UTC)",
		"*/10 9-17 * * *":       "every day at minutes 0, 10, 20, 30, 40 and 50 of hours 9 to 17 (UTC)",
		"* 3 * * *":             "every day every minute of hour 3 (UTC)",
		"* 3 * * sun":           "every minute of hour 3 on Sunday (UTC)",
		"0 */6 * * *":           "every day at 00:00, 06:00, 12:00 and 18:00 (UTC)",
		"@yearly":               "at 00:00 on day 1 of the month in January (UTC)",
		"0 * * * sat,sun":       "every hour on Sunday and Saturday (UTC)",
		"0 8 * jun-aug mon,wed": "at 08:00 on Monday and Wednesday in June to August (UTC)",
	} {
		cal, err := Spec{Cron: text}.Compile()
		require.NoError(t, err, text)
		require.Equal(t, want, cal.Describe(), text)
	}
	for d, want := range map[time.Duration]string{
		30 * time.Second: "every 30 seconds", time.Hour: "every hour", 90 * time.Minute: "every 90 minutes",
		48 * time.Hour: "every 2 days", 1500 * time.Millisecond: "every 1500 milliseconds",
	} {
		cal, err := Spec{Every: d}.Compile()
		require.NoError(t, err)
		require.Equal(t, want, cal.Describe())
	}
}

// Whatever an expression holds, it is refused or has slots: in order, each at a
// whole minute, without a panic and soon.
func FuzzSpec(f *testing.F) {
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "0 0 30 2 *", "CRON_TZ=UTC", "*/0 * * * *", ", , , , ,", "@daily", "0/7 */5 1-3,5 jan-mar 0"} {
		f.Add(text, "America/New_York", int64(1741500000))
	}
	f.Fuzz(func(t *testing.T, text, zone string, after int64) {
		cal, err := Spec{Cron: text, Zone: zone}.Compile()
		if err != nil {
			require.ErrorIs(t, err, ErrBadSpec)
			return
		}
		require.NotEmpty(t, cal.Describe())
		last := time.Unix(after%7e9, 0)
		for _, slot := range cal.Slots(last, 5) {
			require.True(t, slot.After(last), "%v after %v", slot, last)
			require.Zero(t, slot.Nanosecond())
			last = slot
		}
	})
}

// A slot does not depend on where one begins to look for it.
func TestNextIsTheSameFromAnywhere(t *testing.T) {
	t.Parallel()
	for _, spec := range []Spec{
		{Cron: "*/20 0-4 * * *", Zone: "America/New_York"}, {Cron: "*/20 0-4 * * *", Zone: "America/New_York", Repeat: RepeatBoth},
		{Cron: "*/20 * * * *", Zone: "Europe/London"}, {Every: 17 * time.Minute},
	} {
		cal, err := spec.Compile()
		require.NoError(t, err)
		for _, day := range []string{"2025-03-09T00:00:00Z", "2025-11-02T00:00:00Z", "2025-03-30T00:00:00Z", "2025-10-26T00:00:00Z"} {
			begin := at(t, day)
			slots := cal.Slots(begin, 40)
			for minute := range 600 {
				from := begin.Add(time.Duration(minute) * time.Minute)
				i := 0
				for !slots[i].After(from) {
					i++
				}
				require.Equal(t, slots[i], cal.Next(from), "%+v from %v", spec, from)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	cal, err := Spec{Cron: "30 2 * * *", Zone: "America/New_York"}.Compile()
	require.NoError(b, err)
	from := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		from = cal.Next(from)
		if from.Year() > 2100 {
			from = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		}
	}
}
