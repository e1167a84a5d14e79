package daemon

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
)

// operateFlags are the flags of the verbs.
type operateFlags struct {
	actor, request, branch string
	dryRun, force          bool
	newIntent              bool   // of retry
	applied                string // of resolve
	notApplied             bool

	bulk bulkFlags
}

// verb describes a command that steers one workflow.
type verb struct {
	use, short, long string
	defs             bool // it decides by the definition
	verb             engine.Verb
	flags            func(a *app, cmd *cobra.Command, f *operateFlags)
	order            func(a *app, f *operateFlags, o *engine.Order) error // completes the order; may be nil
}

// verbs are the commands, in the order in which help lists them.
var verbs = []verb{
	{
		use: "retry ID", short: "Try once more what a HELD workflow is held for", defs: true, verb: engine.Retry,
		long: `Try once more, in the same attempt group: the other side sees the same key.
With --new-intent the step gets a new key. If an attempt before did have its
effect, it is there twice: look first. A workflow that ended COMPENSATED, FAILED
or TERMINATED is begun anew by it, each step with a new key.`,
		flags: func(_ *app, cmd *cobra.Command, f *operateFlags) {
			cmd.Flags().BoolVar(&f.newIntent, "new-intent", false, "with a new key")
		},
		order: func(_ *app, f *operateFlags, o *engine.Order) error {
			if f.newIntent {
				o.Verb = engine.NewIntent
			}
			return nil
		},
	},
	{
		use: "resolve ID", short: "Say what became of a call whose outcome is unknown", defs: true, verb: engine.Applied,
		long: `Say what became of the call that a workflow is HELD for: --applied RESULT takes
RESULT, a JSON value of the step's result type, as its result; --not-applied has
it called once more, with the same key.`,
		flags: func(_ *app, cmd *cobra.Command, f *operateFlags) {
			cmd.Flags().StringVar(&f.applied, "applied", "", "it has had its effect: its result as JSON")
			cmd.Flags().BoolVar(&f.notApplied, "not-applied", false, "it has had no effect")
		},
		order: func(_ *app, f *operateFlags, o *engine.Order) error {
			if (f.applied == "") == !f.notApplied {
				return usagef("say what became of it: either --applied RESULT or --not-applied")
			}
			if o.Result = []byte(f.applied); f.notApplied {
				o.Verb, o.Result = engine.NotApplied, nil
			}
			return nil
		},
	},
	{
		use: "skip ID", short: "Leave out the undo that a rollback is HELD for", defs: true, verb: engine.Skip,
		long: "Leave out the undo that a rollback is HELD for, and go on with the next: what it\nwould have undone stays.",
	},
	{
		use: "force ID", short: "Take the undo that a rollback is HELD for as done", defs: true, verb: engine.Force,
		long: "Take the undo that a rollback is HELD for as done, since somebody has done it by\nhand, and go on with the next.",
	},
	{
		use: "pause ID", short: "Hold a workflow where it stands", defs: true, verb: engine.Pause,
		long: "Hold a workflow where it stands, once the step under way has ended. Signals are\nkept, and its timers go on.",
	},
	{use: "resume ID", short: "End a pause", defs: true, verb: engine.Resume, long: "End a pause. A timer that has passed meanwhile fires at once."},
	{
		use: "terminate ID", short: "End a workflow at once, undoing nothing", verb: engine.Terminate,
		long:  "End a workflow at once. Nothing is undone, and the answer says what was left so:\nsee cancel for a rollback. It needs --force, and no definition.",
		flags: forceFlag, order: needsForce,
	},
	{
		use: "erase ID", short: "Remove an ended workflow's payloads at once", verb: engine.Delete,
		long:  "Remove the payloads of a workflow that has ended, now: for the sake of whom they\nare about. It is the same as delete.",
		flags: forceFlag, order: needsForce,
	},
	{
		use: "delete ID", short: "Delete an ended workflow's payloads and records", verb: engine.Delete,
		long:  "Delete the payloads, steps and branches of a workflow that has ended. A tombstone\nstays: the id is taken, and what people have asked of it is on record. It needs\n--force, and no definition.",
		flags: forceFlag, order: needsForce,
	},
}

func forceFlag(_ *app, cmd *cobra.Command, f *operateFlags) {
	cmd.Flags().BoolVar(&f.force, "force", false, "yes, do it: there is no way back")
}

func needsForce(_ *app, f *operateFlags, o *engine.Order) error {
	if !f.force && !f.dryRun {
		return usagef("%s cannot be taken back: pass --force, or see what would come of it by --dry-run", o.Verb)
	}
	return nil
}

// verbCommands are the commands of all verbs.
func (a *app) verbCommands() []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range verbs {
		cmds = append(cmds, a.verbCommand(v))
	}
	return append(cmds, a.forkCommand(), a.auditCommand())
}

func (a *app) verbCommand(v verb) *cobra.Command {
	var f operateFlags
	cmd := &cobra.Command{
		Use: v.use, Short: v.short, Long: v.long,
		Args: f.bulk.takes,
		RunE: a.client(&access{defs: v.defs, policies: !v.defs, hints: true}, func(ctx context.Context, s *session, args []string) error {
			o := engine.Order{Verb: v.verb, Actor: f.actor, Reason: a.flags.reason, RequestID: f.request, Branch: f.branch, DryRun: f.dryRun}
			if o.Actor == "" {
				o.Actor = a.whoami()
			}
			if v.order != nil {
				if err := v.order(a, &f, &o); err != nil {
					return err
				}
			}
			if f.bulk.query != "" {
				return a.inBulk(ctx, s, f.bulk, o)
			}
			done, err := s.eng.Operate(ctx, a.about(args[0]), o)
			if err != nil {
				return err
			}
			a.printOperated(args[0], o, done)
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&a.flags.reason, "reason", "", "why, kept with the workflow")
	fl.StringVar(&f.actor, "actor", "", "who wants it, kept with the workflow (default: this user)")
	fl.StringVar(&f.request, "request-id", "", "the order's own id: repeated with it, it is carried out once")
	fl.StringVar(&f.branch, "branch", "", "the path of the branch that is meant, if several are HELD")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would come of it, and do nothing")
	if v.verb != engine.Applied {
		f.bulk.add(cmd)
	}
	if v.flags != nil {
		v.flags(a, cmd, &f)
	}
	return cmd
}

// whoami is who types the command.
func (a *app) whoami() string {
	if name := a.getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (a *app) printOperated(id string, o engine.Order, done engine.Operated) {
	if !a.text() {
		a.printJSON(map[string]any{
			"id": id, "verb": string(o.Verb), "before": done.Before, "after": done.After,
			"note": optional(done.Note), "repeated": done.Repeated, "dry_run": o.DryRun,
		})
		return
	}
	how := string(o.Verb)
	switch {
	case o.DryRun:
		how = "would " + how
	case done.Repeated:
		how = "did " + how + " before"
	}
	text := fmt.Sprintf("%s %s: %s -> %s", how, id, done.Before, done.After)
	if done.Note != "" {
		text += "; " + printable(done.Note)
	}
	fmt.Fprintf(a.out, "%s; see: %s\n", text, a.command("workflow why "+shellWord(id)))
}

func (a *app) auditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "audit ID",
		Short: "List what was ever asked of a workflow, and by whom",
		Args:  takes("ID"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			entries, err := s.eng.Audit(ctx, a.about(args[0]))
			if err != nil {
				return err
			}
			return a.printAudit(ctx, s, args[0], entries)
		}),
	}
}

// auditJSON is an entry of a workflow's audit.
type auditJSON struct {
	RequestID string     `json:"request_id"`
	Branch    *string    `json:"branch"`
	What      string     `json:"what"`
	Actor     *string    `json:"actor"`
	Reason    *string    `json:"reason"`
	SentAt    time.Time  `json:"sent_at"`
	TakenAt   *time.Time `json:"taken_at"`
	Before    *string    `json:"before"`
	After     *string    `json:"after"`
	Answer    *string    `json:"answer"`
}

func (a *app) printAudit(ctx context.Context, s *session, id string, entries []engine.AuditEntry) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	if !a.text() {
		list := make([]auditJSON, 0, len(entries))
		for _, e := range entries {
			list = append(list, auditJSON{
				e.RequestID, optional(e.Branch), e.What, optional(e.Actor), optional(e.Reason), e.SentAt, moment(e.TakenAt),
				optional(e.Before), optional(e.After), optional(e.Answer),
			})
		}
		a.printJSON(map[string]any{"id": id, "audit": list})
		return nil
	}
	if len(entries) == 0 {
		fmt.Fprintf(a.out, "nobody has asked anything of %s\n", id)
		return nil
	}
	t := a.newTable("WHEN", "WHAT", "ACTOR", "REASON", "BEFORE", "AFTER", "ANSWER")
	for _, e := range entries {
		t.row(a.when(e.SentAt, now), printable(e.What), orDash(e.Actor), orDash(e.Reason), orDash(e.Before), orDash(e.After), orDash(e.Answer))
	}
	t.flush()
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}
