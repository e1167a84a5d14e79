package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/calendar"
	"github.com/pawlhq/pawl/engine"
)

func (a *app) scheduleCommand() *cobra.Command {
	cmd := a.group("schedule", "Start workflows by the clock",
		a.scheduleCreateCommand(), a.scheduleListCommand(), a.scheduleShowCommand(), a.schedulePauseCommand(),
		a.scheduleResumeCommand(), a.scheduleTriggerCommand(), a.scheduleBackfillCommand(), a.scheduleDeleteCommand())
	a.clientFlags(cmd)
	return cmd
}

func (a *app) scheduleCreateCommand() *cobra.Command {
	var spec engine.ScheduleSpec
	cmd := &cobra.Command{
		Use:   "create DEFINITION NAME",
		Short: "Start a workflow at each slot of a cron expression or an interval",
		Long: `Start a workflow of DEFINITION with the data of --input at each slot: of --cron,
which has the fields minute, hour, day of the month, month and day of the week,
or is one like @daily; or of --every, counted from 1970. The workflow of a slot
is NAME/TIME. The same NAME with the same spec and input finds the schedule that
is there; with others it is a conflict (4).`,
		Args: takes("DEFINITION", "NAME"),
		RunE: a.client(&access{create: true, defs: true}, func(ctx context.Context, s *session, args []string) error {
			data, err := a.input()
			if err != nil {
				return err
			}
			created, err := s.eng.ScheduleJSON(ctx, args[0], a.about(args[1]), spec, data)
			if err != nil {
				return err
			}
			return a.printCreated(ctx, s, args[1], created)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&spec.Cron, "cron", "", "a cron expression")
	f.DurationVar(&spec.Every, "every", 0, "an interval, such as 15m")
	f.StringVar(&spec.Zone, "zone", "", "the IANA zone that --cron is meant in (default UTC)")
	f.StringVar((*string)(&spec.Gap), "gap", "", "a time of day that the clock leaps over: after (default) or skip")
	f.StringVar((*string)(&spec.Repeat), "repeat", "", "a time of day that comes twice: first (default), second or both")
	f.StringVar((*string)(&spec.Overlap), "overlap", "", "while an earlier run goes on: skip (default), queue, allow or cancel")
	f.StringVar((*string)(&spec.CatchUp), "catch-up", "", "slots that passed without a worker: last (default), none or all")
	f.IntVar(&spec.CatchUpLimit, "catch-up-limit", 0, "how many of the latest --catch-up all fires")
	f.DurationVar(&spec.Grace, "grace", 0, "how late a slot may fire with --catch-up none (default 1m)")
	f.DurationVar(&spec.Jitter, "jitter", 0, "delay each slot by a part of this, always the same")
	a.inputFlag(cmd)
	return cmd
}

func (a *app) printCreated(ctx context.Context, s *session, name string, created bool) error {
	info, err := s.eng.GetSchedule(ctx, name)
	if err != nil {
		return err
	}
	if !a.text() {
		a.printJSON(map[string]any{"created": created, "schedule": jsonOfSchedule(info, false)})
		return nil
	}
	word := "created"
	if !created {
		word = "was there already:"
	}
	fmt.Fprintf(a.out, "%s %s: %s; see: %s\n", word, name, info.Description, a.command("schedule show "+shellWord(name)))
	return nil
}

func (a *app) schedulePauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Skip a schedule's slots until it is resumed",
		Args:  takes("NAME"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			name := a.about(args[0])
			if err := s.eng.PauseSchedule(ctx, name, a.flags.reason); err != nil {
				return err
			}
			a.printVerb(name, "paused", "resume")
			return nil
		}),
	}
	cmd.Flags().StringVar(&a.flags.reason, "reason", "", "why, kept with the schedule")
	return cmd
}

func (a *app) scheduleResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "End a schedule's pause; what has passed meanwhile is skipped",
		Args:  takes("NAME"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			name := a.about(args[0])
			if err := s.eng.ResumeSchedule(ctx, name); err != nil {
				return err
			}
			a.printVerb(name, "resumed", "show")
			return nil
		}),
	}
}

func (a *app) scheduleDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a schedule and its ledger; what it has started goes on",
		Args:  takes("NAME"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			name := a.about(args[0])
			if err := s.eng.DeleteSchedule(ctx, name); err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"name": name, "deleted": true})
				return nil
			}
			fmt.Fprintf(a.out, "deleted %s\n", name)
			return nil
		}),
	}
}

// printVerb says what was done to a schedule, and what to type next.
func (a *app) printVerb(name, done, next string) {
	if !a.text() {
		a.printJSON(map[string]any{"name": name, done: true})
		return
	}
	fmt.Fprintf(a.out, "%s %s; see: %s\n", done, name, a.command("schedule "+next+" "+shellWord(name)))
}

func (a *app) scheduleTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trigger NAME",
		Short: "Start a workflow of a schedule now",
		Long: `Start a workflow of a schedule now, whatever its slots and its overlap policy
say, even if it is paused.`,
		Args: takes("NAME"),
		RunE: a.client(&access{defs: true, hints: true}, func(ctx context.Context, s *session, args []string) error {
			id, err := s.eng.TriggerSchedule(ctx, a.about(args[0]))
			if err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"name": args[0], "workflow_id": id})
				return nil
			}
			fmt.Fprintf(a.out, "started %s; see: %s\n", id, a.command("workflow show "+shellWord(id)))
			return nil
		}),
	}
}

func (a *app) scheduleBackfillCommand() *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "backfill NAME",
		Short: "Start the workflows of slots that have not fired",
		Long: fmt.Sprintf(`Start the workflows of those slots from --from to --to, both included, that have
not fired: they were missed or skipped, or were before the schedule's creation.
A slot that has fired never does again, so the command may be repeated. The runs
start at once and beside each other. At most %d slots.`, engine.MaxBackfill),
		Args: takes("NAME"),
		RunE: a.client(&access{defs: true, hints: true}, func(ctx context.Context, s *session, args []string) error {
			begin, err := timeFlag("from", from)
			if err != nil {
				return err
			}
			end, err := timeFlag("to", to)
			if err != nil {
				return err
			}
			ids, err := s.eng.BackfillSchedule(ctx, a.about(args[0]), begin, end)
			if err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"name": args[0], "workflow_ids": append([]string{}, ids...)})
				return nil
			}
			fmt.Fprintf(a.out, "started %d workflows of %s; see: %s\n", len(ids), args[0], a.command("schedule show "+shellWord(args[0])))
			return nil
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "the first time, such as 2025-06-01T00:00:00Z")
	cmd.Flags().StringVar(&to, "to", "", "the last time")
	return cmd
}

// timeFlag reads a time as RFC 3339 has it.
func timeFlag(name, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}, usagef("--%s %q: it is a time such as 2025-06-01T00:00:00Z", name, value)
	}
	return t, nil
}

// specWords says by what a schedule was made.
func specWords(spec engine.ScheduleSpec) string {
	if spec.Every != 0 {
		return "every " + spec.Every.String()
	}
	words := spec.Cron
	if spec.Gap == calendar.GapSkip {
		words += ", leaving out times that the clock leaps over"
	}
	if spec.Repeat != "" && spec.Repeat != calendar.RepeatFirst {
		words += ", where a time comes twice: " + string(spec.Repeat)
	}
	return words
}
