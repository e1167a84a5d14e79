package daemon

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/step"
)

func (a *app) forkCommand() *cobra.Command {
	var o engine.ForkOrder
	cmd := &cobra.Command{
		Use:   "fork ID NEW-ID",
		Short: "Copy a workflow that has ended or is HELD, to go on from one of its steps",
		Long: `Copy a workflow that has ended or is HELD. The copy NEW-ID begins with --from-step,
as if the steps before had just been done. What the workflow has asked of others
is asked again with the same keys, so whoever honours them does it once; what is
done in a transaction is done again, and --dry-run lists it. If anything was done
after that step began, --input says what the workflow was started with: the data
of that moment is computed from it.`,
		Args: takes("ID", "NEW-ID"),
		RunE: a.client(&access{defs: true, hints: true}, func(ctx context.Context, s *session, args []string) error {
			o.From, o.To, o.Reason = a.about(args[0]), args[1], a.flags.reason
			if o.Actor == "" {
				o.Actor = a.whoami()
			}
			if o.Step == "" {
				return usagef("--from-step names the step that the copy begins with; see: %s", a.command("workflow steps "+shellWord(o.From)))
			}
			if a.flags.input != "" {
				data, err := a.input()
				if err != nil {
					return err
				}
				o.Input = data
			}
			f, err := s.eng.Fork(ctx, o)
			if err != nil {
				return err
			}
			a.printFork(o, f)
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Step, "from-step", "", "the step that the copy begins with")
	fl.StringVar(&a.flags.reason, "reason", "", "why, kept with both workflows")
	fl.StringVar(&o.Actor, "actor", "", "who wants it, kept with both workflows (default: this user)")
	fl.StringVar(&o.RequestID, "request-id", "", "the order's own id: repeated with it, it is carried out once")
	fl.BoolVar(&o.DryRun, "dry-run", false, "say what would come of it, and do nothing")
	a.inputFlag(cmd)
	return cmd
}

func (a *app) printFork(o engine.ForkOrder, f engine.Forked) {
	if !a.text() {
		a.printJSON(map[string]any{
			"id": o.From, "new_id": o.To, "state": string(f.State), "keeps": keyTexts(f.Keeps), "repeats": append([]string{}, f.Repeats...),
			"repeated": f.Repeated, "dry_run": o.DryRun,
		})
		return
	}
	how := "forked"
	switch {
	case o.DryRun:
		how = "would fork"
	case f.Repeated:
		how = "did fork before:"
	}
	fmt.Fprintf(a.out, "%s %s: %s %s; see: %s\n", how, o.From, o.To, printable(f.String()), a.command("workflow why "+shellWord(o.To)))
}

func keyTexts(keys []step.Key) []string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	return texts
}
