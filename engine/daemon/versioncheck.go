package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// errStranded says that some workflows could not go on. The output has told of them.
var errStranded = errors.New("some workflows could not go on with this program")

// unwritten is a store in which nothing is recorded of definitions: what a program
// would register is looked at before it is deployed.
type unwritten struct {
	store.Store
	defs []store.Definition
}

// PutDefinition implements store.Clients.
func (u *unwritten) PutDefinition(_ context.Context, d store.Definition) error {
	u.defs = append(u.defs, d)
	return nil
}

func (a *app) versionCheckCommand() *cobra.Command {
	var diff bool
	cmd := &cobra.Command{
		Use:   "version-check",
		Short: "Say whether all open workflows could go on with this program",
		Long: `Compare the definitions of this program with everything that has not ended. If
something could not go on, list where it stands, and exit with 1. Run it with the
program that is about to be deployed; it records nothing. With --diff, say in what
each definition differs from the newest that is recorded: safe, or needs a new
version, with the old one registered beside it for as long as it has workflows.`,
		Args: takes(),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, _ []string) error {
			st := &unwritten{Store: s.store}
			eng, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			if err := a.registerOn(eng); err != nil {
				return err
			}
			if diff {
				return a.versionDiff(ctx, s, st.defs)
			}
			stranded, err := eng.VersionCheck(ctx)
			if err != nil {
				return err
			}
			a.printStranded(stranded)
			if len(stranded) > 0 {
				return errStranded
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&diff, "diff", false, "say in what each definition differs from the one that is recorded")
	a.clientFlags(cmd)
	return cmd
}

// strandedJSON is a place where workflows could not go on.
type strandedJSON struct {
	Definition string  `json:"definition"`
	Version    int     `json:"version"`
	State      string  `json:"state"`
	Step       *string `json:"step"`
	Count      int     `json:"count"`
	Example    string  `json:"example"`
	Why        string  `json:"why"`
}

func (a *app) printStranded(all []engine.Stranded) {
	if !a.text() {
		list := make([]strandedJSON, 0, len(all))
		for _, s := range all {
			list = append(list, strandedJSON{s.Name, s.Version, s.State, optional(s.Step), s.Count, store.RootOf(s.ID), s.Why})
		}
		a.printJSON(map[string]any{"stranded": list})
		return
	}
	if len(all) == 0 {
		fmt.Fprintln(a.out, "all open workflows can go on with this program")
		return
	}
	t := a.newTable("DEFINITION", "STATE", "STEP", "COUNT", "SUCH AS", "WHY")
	for _, s := range all {
		t.row(definitionName(s.Def), s.State, orDash(s.Step), strconv.Itoa(s.Count), printable(store.RootOf(s.ID)), s.Why)
	}
	t.flush()
}

func (a *app) versionDiff(ctx context.Context, s *session, defs []store.Definition) error {
	diffs, err := engine.DefinitionDiffs(ctx, s.store, defs)
	if err != nil {
		return err
	}
	type diffJSON struct {
		Definition string   `json:"definition"`
		Version    int      `json:"version"`
		From       int      `json:"from_version"`
		Verdict    string   `json:"verdict"`
		Changes    []string `json:"changes"`
	}
	list := []diffJSON{}
	refused := false
	for _, d := range diffs {
		verdict := d.Worst.String()
		if d.Old == d.New && d.Worst != statemachine.Same {
			refused = true
			if d.Worst != statemachine.NeedsRenamed {
				verdict = statemachine.NeedsVersion.String()
			}
		}
		j := diffJSON{d.New.Name, d.New.Version, d.Old.Version, verdict, []string{}}
		for _, c := range d.Differences {
			j.Changes = append(j.Changes, c.String())
		}
		list = append(list, j)
	}
	if !a.text() {
		a.printJSON(map[string]any{"definitions": list})
	}
	for _, j := range list {
		if !a.text() {
			break
		}
		fmt.Fprintf(a.out, "%s v%d, compared with v%d: %s\n", j.Definition, j.Version, j.From, j.Verdict)
		for _, c := range j.Changes {
			fmt.Fprintf(a.out, "  %s\n", printable(c))
		}
	}
	if refused {
		return fmt.Errorf("%w: give it a new version, or say what was renamed", store.ErrGraphChanged)
	}
	return nil
}

func (a *app) definitionCommand() *cobra.Command {
	cmd := a.group("definition", "The graphs that are recorded", a.definitionListCommand(), a.definitionShowCommand())
	a.clientFlags(cmd)
	return cmd
}

func (a *app) definitionListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the definitions that were ever registered",
		Args:  takes(),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, _ []string) error {
			all, err := s.store.Definitions(ctx)
			if err != nil {
				return err
			}
			if !a.text() {
				var defs []store.Def
				for _, d := range all {
					defs = append(defs, d.Def)
				}
				a.printJSON(map[string]any{"definitions": defsJSON(defs)})
				return nil
			}
			t := a.newTable("DEFINITION", "FINGERPRINT")
			for _, d := range all {
				t.row(definitionName(d.Def), d.Fingerprint[:min(12, len(d.Fingerprint))])
			}
			t.flush()
			return nil
		}),
	}
}

func (a *app) definitionShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME VERSION",
		Short: "Draw a recorded definition as a Mermaid diagram, whether its code is here or gone",
		Args:  takes("NAME", "VERSION"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			version, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("version %q is no number", args[1])
			}
			all, err := s.store.Definitions(ctx)
			if err != nil {
				return err
			}
			for _, d := range all {
				if d.Name != args[0] || d.Version != version {
					continue
				}
				drawing, err := statemachine.DrawGraph(d.Graph)
				if err != nil {
					return err
				}
				if !a.text() {
					a.printJSON(map[string]any{"definition": d.Name, "version": d.Version, "mermaid": drawing})
					return nil
				}
				fmt.Fprint(a.out, drawing)
				return nil
			}
			return fmt.Errorf("definition %s v%d: %w", args[0], version, store.ErrNotFound)
		}),
	}
}

// warnStranded tells at the start of a worker what it could not go on with.
func (a *app) warnStranded(ctx context.Context, s *session) {
	stranded, err := s.eng.VersionCheck(ctx)
	if err != nil {
		a.logger().Warn("cannot look for open workflows of other definitions", "error", line(err.Error()))
	}
	for _, o := range stranded {
		a.logger().Warn("open workflows that this worker does not know", "definition", definitionName(o.Def), "state", o.State, "count", o.Count, "such_as", store.RootOf(o.ID), "why", o.Why)
	}
}
