package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

func (a *app) scheduleListCommand() *cobra.Command {
	var after string
	limit := defaultLimit
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List schedules in the order of their names",
		Args:  takes(),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, _ []string) error {
			if limit < 1 || limit > maxLimit {
				return usagef("--limit %d: it is 1 to %d", limit, maxLimit)
			}
			return a.scheduleList(ctx, s, after, limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", defaultLimit, "how many at most")
	cmd.Flags().StringVar(&after, "after", "", "begin behind this name: the last one of the page before")
	return cmd
}

// scheduleList asks for one more than the limit, to know whether there is another
// page.
func (a *app) scheduleList(ctx context.Context, s *session, after string, limit int) error {
	infos, err := s.eng.ListSchedules(ctx, after, limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(infos) > limit {
		infos = infos[:limit]
		next = infos[limit-1].Name
	}
	if !a.text() {
		all := make([]scheduleJSON, len(infos))
		for i, info := range infos {
			all[i] = jsonOfSchedule(info, false)
		}
		printList(a, all, map[string]any{"schedules": all, "next": optional(next)})
		return nil
	}
	if len(infos) == 0 {
		fmt.Fprintf(a.out, "no schedules. Create one:\n  %s\n", a.command("schedule create DEFINITION NAME --cron '30 2 * * *' --zone Europe/London --input '{}'"))
		return nil
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	t := a.newTable("NAME", "DEFINITION", "WHEN", "NEXT", "LAST", "STATE")
	for _, info := range infos {
		t.row(printable(info.Name), info.Definition, printable(info.Description), a.when(first(info.Next), now), a.lastSlot(info.Last, now), scheduleState(info))
	}
	t.flush()
	if next != "" {
		fmt.Fprintf(a.out, "\nmore: --after %s\n", shellWord(next))
	}
	return nil
}

func first(times []time.Time) time.Time {
	if len(times) == 0 {
		return time.Time{}
	}
	return times[0]
}

func (a *app) lastSlot(slot store.Slot, now time.Time) string {
	if slot.Nominal.IsZero() {
		return "-"
	}
	return string(slot.Status) + " " + a.when(slot.Nominal, now)
}

// scheduleState is one word for how a schedule stands.
func scheduleState(info engine.ScheduleInfo) string {
	switch {
	case info.Paused:
		return "paused"
	case info.Error != "":
		return "failing"
	case len(info.Next) == 0:
		return "over"
	}
	return "active"
}

func (a *app) scheduleShowCommand() *cobra.Command {
	limit := 10
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a schedule, its next slots and what became of the last ones",
		Args:  takes("NAME"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			if limit < 0 || limit > maxLimit {
				return usagef("--slots %d: it is 0 to %d", limit, maxLimit)
			}
			return a.scheduleShow(ctx, s, a.about(args[0]), limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "slots", limit, "how many of the last slots")
	a.payloadFlag(cmd)
	return cmd
}

func (a *app) scheduleShow(ctx context.Context, s *session, name string, limit int) error {
	info, err := s.eng.GetSchedule(ctx, name)
	if err != nil {
		return err
	}
	slots, err := s.eng.Slots(ctx, name, limit)
	if err != nil {
		return err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	if !a.text() {
		a.printJSON(map[string]any{"schedule": jsonOfSchedule(info, a.flags.payload), "slots": jsonOfSlots(slots)})
		return nil
	}
	a.printSchedule(info, now)
	if len(slots) > 0 {
		fmt.Fprintln(a.out)
		a.printSlots(slots, now)
	}
	return nil
}

func (a *app) printSchedule(info engine.ScheduleInfo, now time.Time) {
	f := a.newFields()
	f.add("schedule", "%s", printable(info.Name))
	f.add("definition", "%s", info.Definition)
	f.add("when", "%s", printable(info.Description))
	f.add("spec", "%s", printable(specWords(info.Spec)))
	f.add("overlap", "%s", info.Spec.Overlap)
	f.add("catch-up", "%s", catchUpWords(info.Spec))
	if info.Spec.Jitter > 0 {
		f.add("jitter", "up to %v", info.Spec.Jitter)
	}
	f.add("state", "%s", scheduleState(info))
	if info.Paused {
		f.add("paused", "%s: %s", a.when(info.PausedAt, now), printable(info.Note))
	}
	if info.Error != "" {
		f.add("error", "%s", printable(info.Error))
	}
	if !info.Queued.IsZero() {
		f.add("queued", "%s", slotTime(info.Queued))
	}
	if len(info.Running) > 0 {
		f.add("running", "%s", printable(strings.Join(info.Running, ", ")))
	}
	for i, slot := range info.Next {
		f.add([]string{"next", ""}[min(i, 1)], "%s (%s)", slotTime(slot), a.when(slot, now))
	}
	if a.flags.payload {
		f.add("data", "%s", payloadText(info.Raw))
	}
	f.flush()
}

func catchUpWords(spec engine.ScheduleSpec) string {
	switch spec.CatchUp {
	case engine.CatchUpAll:
		return fmt.Sprintf("all, up to %d", spec.CatchUpLimit)
	case engine.CatchUpNone:
		return fmt.Sprintf("none later than %v", spec.Grace)
	}
	return string(spec.CatchUp)
}

func (a *app) printSlots(slots []store.Slot, now time.Time) {
	t := a.newTable("SLOT", "STATUS", "ORIGIN", "DECIDED", "WORKFLOW OR REASON")
	for _, slot := range slots {
		what := slot.WorkflowID
		if what == "" {
			what = slot.Reason
		}
		if what == "" {
			what = "-"
		}
		t.row(slotTime(slot.Nominal), string(slot.Status), string(slot.Origin), a.when(slot.DecidedAt, now), printable(what))
	}
	t.flush()
}

func slotTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

type scheduleJSON struct {
	Name          string      `json:"name"`
	Definition    string      `json:"definition"`
	Description   string      `json:"description"`
	Cron          *string     `json:"cron"`
	EverySeconds  *float64    `json:"every_seconds"`
	Zone          string      `json:"zone"`
	Gap           *string     `json:"gap"`
	Repeat        *string     `json:"repeat"`
	Overlap       string      `json:"overlap"`
	CatchUp       string      `json:"catch_up"`
	CatchUpLimit  int         `json:"catch_up_limit"`
	GraceSeconds  float64     `json:"grace_seconds"`
	JitterSeconds float64     `json:"jitter_seconds"`
	State         string      `json:"state"`
	Next          []time.Time `json:"next"`
	DueAt         *time.Time  `json:"due_at"`
	Last          *slotJSON   `json:"last"`
	QueuedAt      *time.Time  `json:"queued_at"`
	Running       []string    `json:"running"`
	PausedAt      *time.Time  `json:"paused_at"`
	Note          *string     `json:"note"`
	Error         *string     `json:"error"`
	Revision      int64       `json:"revision"`
	CreatedAt     time.Time   `json:"created_at"`
	UpdatedAt     time.Time   `json:"updated_at"`

	Data       json.RawMessage `json:"data,omitempty"`
	DataBase64 []byte          `json:"data_base64,omitempty"`
}

type slotJSON struct {
	NominalAt  time.Time `json:"nominal_at"`
	Status     string    `json:"status"`
	Origin     string    `json:"origin"`
	WorkflowID *string   `json:"workflow_id"`
	Reason     *string   `json:"reason"`
	DecidedAt  time.Time `json:"decided_at"`
}

func jsonOfSchedule(info engine.ScheduleInfo, payload bool) scheduleJSON {
	spec := info.Spec
	j := scheduleJSON{
		Name: info.Name, Definition: info.Definition, Description: info.Description,
		Cron: optional(spec.Cron), Zone: spec.Zone, Gap: optional(string(spec.Gap)), Repeat: optional(string(spec.Repeat)),
		Overlap: string(spec.Overlap), CatchUp: string(spec.CatchUp), CatchUpLimit: spec.CatchUpLimit,
		GraceSeconds: spec.Grace.Seconds(), JitterSeconds: spec.Jitter.Seconds(), State: scheduleState(info),
		Next: append([]time.Time{}, info.Next...), DueAt: moment(info.DueAt), QueuedAt: moment(info.Queued),
		Running: append([]string{}, info.Running...), PausedAt: moment(info.PausedAt), Note: optional(info.Note), Error: optional(info.Error),
		Revision: info.Revision, CreatedAt: info.CreatedAt, UpdatedAt: info.UpdatedAt,
	}
	if spec.Every != 0 {
		every := spec.Every.Seconds()
		j.EverySeconds = &every
	}
	if !info.Last.Nominal.IsZero() {
		j.Last = &jsonOfSlots([]store.Slot{info.Last})[0]
	}
	if payload {
		j.Data, j.DataBase64 = stored(info.Raw)
	}
	return j
}

func jsonOfSlots(slots []store.Slot) []slotJSON {
	all := make([]slotJSON, len(slots))
	for i, s := range slots {
		all[i] = slotJSON{s.Nominal, string(s.Status), string(s.Origin), optional(s.WorkflowID), optional(s.Reason), s.DecidedAt}
	}
	return all
}
