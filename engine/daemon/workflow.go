package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

func (a *app) workflowCommand() *cobra.Command {
	cmd := a.group("workflow", "Start, look at and steer workflows",
		a.startCommand(), a.listCommand(), a.showCommand(), a.stepsCommand(), a.whyCommand(), a.signalCommand(), a.cancelCommand())
	cmd.AddCommand(a.verbCommands()...)
	a.clientFlags(cmd)
	return cmd
}

// about remembers which workflow the command is about, for what it says.
func (a *app) about(id string) string {
	a.id = id
	return id
}

func (a *app) startCommand() *cobra.Command {
	need := access{create: true, defs: true, hints: true}
	var line lineFlags
	cmd := &cobra.Command{
		Use:   "start DEFINITION ID",
		Short: "Start a workflow, or find it",
		Long: `Start a workflow of the newest version of DEFINITION that this program knows.
The same ID with the same input finds the workflow that is there and starts
nothing; with another input, or of another definition, it is a conflict (4).`,
		Args: takes("DEFINITION", "ID"),
		RunE: a.client(&need, func(ctx context.Context, s *session, args []string) error {
			return a.start(ctx, s, args[0], a.about(args[1]), need.long, line.options()...)
		}),
	}
	a.inputFlag(cmd)
	line.add(cmd)
	cmd.Flags().BoolVar(&need.long, "wait", false, "wait until it has ended or is HELD; 1 unless COMPLETED")
	return cmd
}

// startJSON is the answer to a start.
type startJSON struct {
	ID       string        `json:"id"`
	Created  bool          `json:"created"`
	Status   string        `json:"status"`
	Workflow *workflowJSON `json:"workflow"`
}

func (a *app) start(ctx context.Context, s *session, definition, id string, wait bool, opts ...engine.StartOption) error {
	if err := engine.CheckID(id); err != nil {
		return err
	}
	data, err := a.input()
	if err != nil {
		return err
	}
	started, err := s.eng.StartJSON(ctx, definition, id, data, opts...)
	if err != nil {
		return err
	}
	if !wait {
		a.printStarted(started)
		return nil
	}
	_ = s.store.Notify(ctx, store.TopicReady)
	final, err := waitFor(ctx, s.eng, id)
	if err != nil {
		return err
	}
	return a.printEnded(ctx, s, started, final)
}

func (a *app) printStarted(started engine.Started) {
	if !a.text() {
		a.printJSON(startJSON{ID: started.ID, Created: started.Created, Status: string(started.Status)})
		return
	}
	if started.Created {
		fmt.Fprintf(a.out, "started %s; see: %s\n", started.ID, a.command("workflow show "+shellWord(started.ID)))
		return
	}
	fmt.Fprintf(a.out, "%s was there already and is %s; see: %s\n", started.ID, a.paint(string(started.Status)), a.command("workflow show "+shellWord(started.ID)))
}

// printEnded tells how a workflow that was waited for has ended.
func (a *app) printEnded(ctx context.Context, s *session, started engine.Started, final engine.Info) error {
	if a.text() {
		why, err := s.eng.Why(ctx, final.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s %s in state %s: %s\n", final.ID, a.paint(string(final.Status)), final.State, printable(why))
	} else {
		w := jsonOfWorkflow(final, false)
		a.printJSON(startJSON{ID: started.ID, Created: started.Created, Status: string(final.Status), Workflow: &w})
	}
	if final.Status != store.Completed {
		return &outcomeError{final.ID, final.Status}
	}
	return nil
}

// heldEvery is how often a wait looks whether the workflow is HELD, which is
// not an end.
const heldEvery = time.Second

// waitFor returns the workflow once it has ended or is HELD.
func waitFor(ctx context.Context, eng *engine.Engine, id string) (engine.Info, error) {
	for {
		part, cancel := context.WithTimeout(ctx, heldEvery)
		info, err := eng.Wait(part, id)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return info, err
		}
		if info, err = eng.Get(ctx, id); err != nil || info.Status == store.Held {
			return info, err
		}
	}
}

func (a *app) signalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a workflow a signal",
		Long: `Send the signal NAME with the JSON value of --input. It is kept until the
workflow waits for it. A second message of the same --message-id changes
nothing, so a command that names one may be repeated.`,
		Args: takes("ID", "NAME"),
		RunE: a.client(&access{defs: true, hints: true}, func(ctx context.Context, s *session, args []string) error {
			id, name := a.about(args[0]), args[1]
			if err := engine.CheckID(id); err != nil {
				return err
			}
			if err := engine.CheckID(name); err != nil {
				return usagef("bad signal name %q", name)
			}
			value, err := a.input()
			if err != nil {
				return err
			}
			if err := s.eng.SignalJSON(ctx, id, name, value, a.messageOptions()...); err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"id": id, "signal": name, "accepted": true})
				return nil
			}
			fmt.Fprintf(a.out, "sent %s to %s; see: %s\n", name, id, a.command("workflow why "+shellWord(id)))
			return nil
		}),
	}
	a.inputFlag(cmd)
	a.messageFlag(cmd)
	return cmd
}

func (a *app) cancelCommand() *cobra.Command {
	var bulk bulkFlags
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Ask for a workflow's rollback",
		Long: `Ask for a workflow to be rolled back: its steps are undone, newest first. The
command returns once the request is durable; the rollback begins when the step
under way has ended or was cut off. Past its point of no return a workflow
cannot be cancelled (4).`,
		Args: bulk.takes,
		RunE: a.client(&access{hints: true, policies: true}, func(ctx context.Context, s *session, args []string) error {
			if bulk.query != "" {
				return a.inBulk(ctx, s, bulk, engine.Order{Verb: engine.Cancel, Actor: a.whoami(), Reason: a.flags.reason})
			}
			id := a.about(args[0])
			if err := s.eng.Cancel(ctx, id, a.flags.reason, a.messageOptions()...); err != nil {
				return err
			}
			if !a.text() {
				a.printJSON(map[string]any{"id": id, "accepted": true})
				return nil
			}
			fmt.Fprintf(a.out, "asked for the rollback of %s; see: %s\n", id, a.command("workflow why "+shellWord(id)))
			return nil
		}),
	}
	cmd.Flags().StringVar(&a.flags.reason, "reason", "", "why, kept with the workflow")
	bulk.add(cmd)
	a.messageFlag(cmd)
	return cmd
}

func (a *app) messageFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.flags.messageID, "message-id", "", "the message's own id: a second one of it changes nothing")
}

func (a *app) messageOptions() []engine.SendOption {
	if a.flags.messageID == "" {
		return nil
	}
	return []engine.SendOption{engine.MessageID(a.flags.messageID)}
}
