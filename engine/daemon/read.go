package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// The bounds of --limit.
const (
	defaultLimit = 50
	maxLimit     = 10_000
)

var statuses = []store.Status{
	store.Pending, store.Waiting, store.Compensating, store.Held,
	store.Completed, store.Compensated, store.Failed, store.Terminated, store.Expired,
}

// listFlags are the flags of workflow list.
type listFlags struct {
	definition, after string
	statuses          []string
	limit             int
}

func (a *app) listCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows in the order of their ids",
		Args:  takes(),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, _ []string) error {
			q, err := f.query()
			if err != nil {
				return err
			}
			return a.list(ctx, s, f, q)
		}),
	}
	cmd.Flags().StringVar(&f.definition, "definition", "", "only those of this definition")
	cmd.Flags().StringSliceVar(&f.statuses, "status", nil, "only those of these statuses, such as HELD,WAITING")
	cmd.Flags().IntVar(&f.limit, "limit", defaultLimit, "how many at most")
	cmd.Flags().StringVar(&f.after, "after", "", "begin behind this id: the last one of the page before")
	return cmd
}

// query checks the flags. It asks for one more than the limit, to know whether
// there is another page.
func (f listFlags) query() (store.Query, error) {
	q := store.Query{Definition: f.definition, After: f.after, Limit: f.limit + 1}
	if f.limit < 1 || f.limit > maxLimit {
		return q, usagef("--limit %d: it is 1 to %d", f.limit, maxLimit)
	}
	if f.after != "" {
		if err := engine.CheckID(f.after); err != nil {
			return q, fmt.Errorf("--after: %w", err)
		}
	}
	for _, text := range f.statuses {
		s := store.Status(strings.ToUpper(strings.TrimSpace(text)))
		if !slices.Contains(statuses, s) {
			return q, usagef("--status %q: it is one of %s", text, strings.Trim(fmt.Sprint(statuses), "[]"))
		}
		q.Statuses = append(q.Statuses, s)
	}
	return q, nil
}

// filtered reports whether the flags leave anything out.
func (f listFlags) filtered() bool { return f.definition != "" || f.after != "" || len(f.statuses) > 0 }

func (a *app) list(ctx context.Context, s *session, f listFlags, q store.Query) error {
	infos, err := s.eng.List(ctx, q)
	if err != nil {
		return err
	}
	next := ""
	if len(infos) > f.limit {
		infos = infos[:f.limit]
		next = infos[f.limit-1].ID
	}
	if !a.text() {
		all := make([]workflowJSON, len(infos))
		for i, info := range infos {
			all[i] = jsonOfWorkflow(info, false)
		}
		printList(a, all, map[string]any{"workflows": all, "next": optional(next)})
		return nil
	}
	if len(infos) == 0 {
		a.printNothing(s, f)
		return nil
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	t := a.newTable("ID", "DEFINITION", a.paint("STATUS"), "STATE", "STEP", "UPDATED")
	for _, w := range infos {
		t.row(printable(w.ID), definitionName(w.Definition), a.paint(string(w.Status)), printable(string(w.State)), stepText(w.Mark), a.when(w.UpdatedAt, now))
	}
	t.flush()
	if next != "" {
		fmt.Fprintf(a.out, "\nmore: --after %s\n", shellWord(next))
	}
	return nil
}

// printNothing says what to try instead of an empty table.
func (a *app) printNothing(s *session, f listFlags) {
	if f.filtered() {
		fmt.Fprintf(a.out, "no workflow matches. List all:\n  %s\n", a.command("workflow list"))
		return
	}
	definition := "DEFINITION"
	if err := a.registerOn(s.eng); err == nil && len(s.eng.Definitions()) > 0 {
		definition = s.eng.Definitions()[0].Name
	}
	fmt.Fprintf(a.out, "no workflows yet. Start one, and a worker that runs it:\n  %s\n  %s\n",
		a.command("workflow start "+definition+" "+definition+"-1 --input '{}'"), a.command("run"))
}

func stepText(m store.Mark) string {
	switch {
	case m.Step == "":
		return "-"
	case m.Attempt > 1:
		return fmt.Sprintf("%s (attempt %d)", m.Step, m.Attempt)
	}
	return m.Step
}

func (a *app) showCommand() *cobra.Command {
	need := access{policies: true}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a workflow and its steps",
		Args:  takes("ID"),
		RunE: a.client(&need, func(ctx context.Context, s *session, args []string) error {
			id := a.about(args[0])
			if need.long {
				return a.follow(ctx, s, id)
			}
			v, err := look(ctx, s, id)
			if err != nil {
				return err
			}
			a.printView(v)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&need.long, "follow", false, "go on until it has ended")
	a.payloadFlag(cmd)
	return cmd
}

func (a *app) payloadFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.flags.payload, "payload", false, "show data, inputs and outputs too")
}

// view is all that show shows.
type view struct {
	info  engine.Info
	steps []engine.Step
	why   string
	now   time.Time
}

func look(ctx context.Context, s *session, id string) (v view, err error) {
	if v.info, err = s.eng.Get(ctx, id); err != nil {
		return v, err
	}
	if v.steps, err = s.eng.Steps(ctx, id); err != nil {
		return v, err
	}
	if v.why, err = s.eng.Why(ctx, id); err != nil {
		return v, err
	}
	v.now, err = s.store.Now(ctx)
	return v, err
}

type viewJSON struct {
	Workflow workflowJSON `json:"workflow"`
	Steps    []stepJSON   `json:"steps"`
	Why      string       `json:"why"`
}

func (a *app) jsonOfView(v view) viewJSON {
	return viewJSON{jsonOfWorkflow(v.info, a.flags.payload), jsonOfSteps(v.steps, a.flags.payload), v.why}
}

func (a *app) printView(v view) {
	if !a.text() {
		a.printJSON(a.jsonOfView(v))
		return
	}
	w := v.info
	f := a.newFields()
	f.add("workflow", "%s", printable(w.ID))
	f.add("definition", "%s", definitionName(w.Definition))
	f.add("status", "%s", a.paint(string(w.Status)))
	f.add("state", "%s", printable(string(w.State)))
	f.add("why", "%s", printable(v.why))
	if w.Queue != "" {
		f.add("queue", "%s", queueText(w))
	}
	if !w.Owner.IsZero() {
		f.add("worker", "%s", w.Owner)
	}
	f.add("revision", "%d", w.Revision)
	f.add("created", "%s", a.when(w.CreatedAt, v.now))
	f.add("updated", "%s", a.when(w.UpdatedAt, v.now))
	if !w.EndedAt.IsZero() {
		f.add("ended", "%s", a.when(w.EndedAt, v.now))
	}
	if a.flags.payload {
		f.add("data", "%s", payloadText(w.Raw))
	}
	f.flush()
	if len(v.steps) > 0 || w.Mark.Step != "" {
		fmt.Fprintln(a.out)
		a.printSteps(v.steps, w)
	}
}

// printSteps prints the recorded steps, and the one under way.
func (a *app) printSteps(steps []engine.Step, w engine.Info) {
	header := []string{"STEP", "GROUP", a.paint("STATUS"), "ATTEMPT", "TOOK", "KEY"}
	if a.flags.payload {
		header = append(header, "INPUT", "OUTPUT")
	}
	t := a.newTable(header...)
	for _, s := range steps {
		cells := []string{s.Step, fmt.Sprint(s.Group), a.paint(string(s.Status)), fmt.Sprint(s.Attempt), took(s.Took), printable(s.Key.String())}
		if a.flags.payload {
			cells = append(cells, payloadText(s.Input), payloadText(s.Output))
		}
		t.row(cells...)
	}
	if m := w.Mark; m.Step != "" {
		t.row(m.Step, fmt.Sprint(m.Group), a.paint("PENDING"), fmt.Sprint(m.Attempt), "-", printable(w.Key(m.Step, w.Item, m.Group).String()))
	}
	t.flush()
}

func (a *app) stepsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "steps ID",
		Short: "List a workflow's steps in the order of their completion",
		Args:  takes("ID"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			id := a.about(args[0])
			info, err := s.eng.Get(ctx, id)
			if err != nil {
				return err
			}
			steps, err := s.eng.Steps(ctx, id)
			if err != nil {
				return err
			}
			if !a.text() {
				all := jsonOfSteps(steps, a.flags.payload)
				printList(a, all, map[string]any{"steps": all})
				return nil
			}
			if len(steps) == 0 && info.Mark.Step == "" {
				fmt.Fprintf(a.out, "no steps so far; see: %s\n", a.command("workflow why "+shellWord(id)))
				return nil
			}
			a.printSteps(steps, info)
			return nil
		}),
	}
	a.payloadFlag(cmd)
	return cmd
}

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why ID",
		Short: "Say in one sentence why a workflow is not moving",
		Args:  takes("ID"),
		RunE: a.client(&access{policies: true}, func(ctx context.Context, s *session, args []string) error {
			id := a.about(args[0])
			why, err := s.eng.Why(ctx, id)
			if err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"id": id, "why": why})
				return nil
			}
			fmt.Fprintln(a.out, printable(why))
			return nil
		}),
	}
}
