package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
)

func (a *app) retentionCommand() *cobra.Command {
	cmd := a.group("retention", "How long what has ended is kept", a.retentionPlanCommand(), a.retentionCheckCommand())
	a.clientFlags(cmd)
	return cmd
}

// retentionPlanCommand computes what a retention costs. It needs no database.
func (a *app) retentionPlanCommand() *cobra.Command {
	var rate, bytes float64
	var window time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compute what a retention costs in storage",
		Long: `Compute how many records a retention keeps, and how much they take: --rate a
second, for --window, of --bytes each. A finished workflow of five small steps
takes about 2 kB with its steps and indexes.`,
		Args: takes(),
		RunE: func(*cobra.Command, []string) error {
			if rate <= 0 || bytes <= 0 || window <= 0 {
				return usagef("--rate, --window and --bytes must be more than 0")
			}
			records := rate * window.Seconds()
			if !a.text() {
				a.printJSON(map[string]any{"records": records, "bytes": records * bytes})
				return nil
			}
			fmt.Fprintf(a.out, "%s records, %s\n", thousands(records), gigabytes(records*bytes))
			return nil
		},
	}
	cmd.Flags().Float64Var(&rate, "rate", 0, "workflows a second")
	cmd.Flags().DurationVar(&window, "window", 0, "how long they are kept")
	cmd.Flags().Float64Var(&bytes, "bytes", 2000, "how much one takes")
	return cmd
}

// thousands writes a whole number in groups of three digits.
func thousands(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func gigabytes(n float64) string {
	switch {
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", n/1e6)
	}
	return fmt.Sprintf("%.1f GB", n/1e9)
}

func (a *app) retentionCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "List how long each definition keeps what has ended, and what that must exceed",
		Args:  takes(),
		RunE: a.client(&access{defs: true}, func(_ context.Context, s *session, _ []string) error {
			a.printRetentions(s.eng.RetentionPlans())
			return nil
		}),
	}
}

// retentionJSON is the retention of one definition.
type retentionJSON struct {
	Definition       string   `json:"definition"`
	Version          int      `json:"version"`
	KeepSeconds      *float64 `json:"keep_seconds"`
	TombstoneSeconds *float64 `json:"tombstone_seconds"`
	HorizonSeconds   *float64 `json:"horizon_seconds"`
}

func (a *app) printRetentions(plans []engine.RetentionPlan) {
	if !a.text() {
		list := make([]retentionJSON, 0, len(plans))
		for _, p := range plans {
			j := retentionJSON{Definition: p.Definition.Name, Version: p.Definition.Version}
			if p.Retention != nil {
				keep, tomb, horizon := p.Retention.Keep.Seconds(), p.Retention.Tombstone.Seconds(), p.Horizon.Sum().Seconds()
				j.KeepSeconds, j.TombstoneSeconds, j.HorizonSeconds = &keep, &tomb, &horizon
			}
			list = append(list, j)
		}
		a.printJSON(map[string]any{"retentions": list})
		return
	}
	t := a.newTable("DEFINITION", "KEEP", "TOMBSTONE", "MUST EXCEED")
	for _, p := range plans {
		if p.Retention == nil {
			t.row(definitionName(p.Definition), "for ever", "-", "-")
			continue
		}
		t.row(definitionName(p.Definition), p.Retention.Keep.String(), p.Retention.Tombstone.String(), p.Horizon.String())
	}
	t.flush()
}
