package daemon

import (
	"encoding/base64"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/engine"
)

// table prints aligned rows for people.
type table struct{ w *tabwriter.Writer }

func (a *app) newTable(header ...string) *table {
	t := &table{tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)}
	t.row(header...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t *table) flush() { _ = t.w.Flush() } // a.out remembers the error

// fields prints names and values below each other.
type fields struct{ w *tabwriter.Writer }

func (a *app) newFields() *fields { return &fields{tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)} }

func (f *fields) add(name, format string, args ...any) {
	fmt.Fprintf(f.w, "%s\t%s\n", name, fmt.Sprintf(format, args...))
}

func (f *fields) flush() { _ = f.w.Flush() }

// colours of the statuses of workflows, steps and workers. The codes have one
// length, and so has plain: the columns of a table stay aligned.
var colours = map[string]string{
	"COMPLETED": "32", "DONE": "32", "alive": "32",
	"PENDING":      "34",
	"WAITING":      "36",
	"COMPENSATING": "33", "COMPENSATED": "33", "UNKNOWN": "33", "expired": "33",
	"HELD": "31", "FAILED": "31", "TERMINATED": "31", "dead": "31",
	"EXPIRED": "90",
}

const plain = "39"

// paint colours a status, or a header of the same column.
func (a *app) paint(text string) string {
	if !a.colored() {
		return text
	}
	code, ok := colours[text]
	if !ok {
		code = plain
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// when shows a time; never the zero one, which is "-".
func (a *app) when(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case a.flags.timeFormat == "iso":
		return t.UTC().Format(time.RFC3339)
	case t.After(now):
		return "in " + about(t.Sub(now))
	}
	return about(now.Sub(t)) + " ago"
}

// about is a duration in one number, rounded down.
func about(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 72*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// took shows how long an attempt took, in three figures.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// payloadText shows a payload as it is stored, on one line; of one that this program
// cannot decode, who has written it.
func payloadText(payload []byte) string {
	codec, key, coded := engine.Encoded(payload)
	switch {
	case coded && key != "":
		return printable(fmt.Sprintf("(encoded by %s, key %s)", codec, key))
	case coded:
		return printable(fmt.Sprintf("(encoded by %s)", codec))
	case len(payload) == 0:
		return "-"
	case utf8.Valid(payload):
		return printable(string(payload))
	}
	return "base64:" + base64.StdEncoding.EncodeToString(payload)
}
