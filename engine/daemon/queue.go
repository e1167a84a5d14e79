package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := a.group("queue", "Limit how many workflows run at once", a.queueListCommand(), a.queueSetCommand(), a.queuePauseCommand(), a.queueResumeCommand())
	a.clientFlags(cmd)
	return cmd
}

// lineFlags are the flags of workflow start that say when it runs.
type lineFlags struct {
	queue, key string
	priority   int
	delay      time.Duration
}

func (f *lineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.queue, "queue", "", "wait in this queue for a worker")
	cmd.Flags().StringVar(&f.key, "queue-key", "", "whose it is, for a queue that limits each key")
	cmd.Flags().IntVar(&f.priority, "priority", 0, "go before lower ones of the queue, 0 to 100")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "begin that much later, such as 15m")
}

func (f *lineFlags) options() []engine.StartOption {
	opts := []engine.StartOption{engine.Delay(f.delay)}
	if f.queue != "" {
		opts = append(opts, engine.InQueue(f.queue))
	}
	if f.key != "" {
		opts = append(opts, engine.QueueKey(f.key))
	}
	if f.priority != 0 {
		opts = append(opts, engine.Priority(f.priority))
	}
	return opts
}

func (a *app) queueListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues, their limits, and how many run and wait",
		Args:  takes(),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, _ []string) error {
			all, err := s.eng.Queues(ctx)
			if err != nil {
				return err
			}
			now, err := s.store.Now(ctx)
			if err != nil {
				return err
			}
			a.printQueues(all, now)
			return nil
		}),
	}
}

func (a *app) queueSetCommand() *cobra.Command {
	var l engine.QueueLimits
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Create a queue, or change all its limits",
		Long: `Create a queue or change its limits, at once and for all workers. A limit that is
not named limits nothing. What runs already goes on, and a pause stays.`,
		Args: takes("NAME"),
		RunE: a.client(&access{create: true, hints: true}, func(ctx context.Context, s *session, args []string) error {
			if err := s.eng.SetQueue(ctx, a.about(args[0]), l); err != nil {
				return err
			}
			_ = s.store.Notify(ctx, store.TopicReady)
			return a.printQueue(ctx, s, args[0], "set")
		}),
	}
	f := cmd.Flags()
	f.IntVar(&l.Concurrency, "concurrency", 0, "how many run at once, on all workers")
	f.IntVar(&l.PerWorker, "per-worker", 0, "how many run at once on one worker")
	f.IntVar(&l.PerKey, "per-key", 0, "how many run at once of one key")
	f.IntVar(&l.Rate, "rate", 0, "how many begin in each --period")
	f.DurationVar(&l.Period, "period", 0, "what --rate is about (default 1s)")
	f.IntVar(&l.Burst, "burst", 0, "how many may begin at once after a time of rest (default --rate)")
	return cmd
}

func (a *app) queuePauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Let nothing of a queue begin or go on until it is resumed",
		Args:  takes("NAME"),
		RunE: a.client(&access{}, func(ctx context.Context, s *session, args []string) error {
			if err := s.eng.PauseQueue(ctx, a.about(args[0]), a.whoami(), a.flags.reason); err != nil {
				return err
			}
			return a.printQueue(ctx, s, args[0], "paused")
		}),
	}
	cmd.Flags().StringVar(&a.flags.reason, "reason", "", "why, shown to whoever asks")
	return cmd
}

func (a *app) queueResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "End a queue's pause",
		Args:  takes("NAME"),
		RunE: a.client(&access{hints: true}, func(ctx context.Context, s *session, args []string) error {
			if err := s.eng.ResumeQueue(ctx, a.about(args[0])); err != nil {
				return err
			}
			_ = s.store.Notify(ctx, store.TopicReady)
			return a.printQueue(ctx, s, args[0], "resumed")
		}),
	}
}

// queueJSON is how a queue stands.
type queueJSON struct {
	Name        string     `json:"name"`
	Running     int        `json:"running"`
	Waiting     int        `json:"waiting"`
	Later       int        `json:"later"`
	OldestAt    *time.Time `json:"oldest_at"`
	Concurrency int        `json:"concurrency"`
	PerWorker   int        `json:"per_worker"`
	PerKey      int        `json:"per_key"`
	Rate        int        `json:"rate"`
	PeriodSecs  float64    `json:"period_seconds"`
	Burst       int        `json:"burst"`
	PausedAt    *time.Time `json:"paused_at"`
	Note        *string    `json:"note"`
}

func jsonOfQueue(q store.QueueState) queueJSON {
	return queueJSON{
		q.Name, q.Running, q.Waiting, q.Later, moment(q.Oldest), q.Concurrency, q.PerWorker, q.PerKey,
		q.Rate, q.Period.Seconds(), q.Burst, moment(q.PausedAt), optional(q.Note),
	}
}

func (a *app) printQueues(all []store.QueueState, now time.Time) {
	if !a.text() {
		list := make([]queueJSON, len(all))
		for i, q := range all {
			list[i] = jsonOfQueue(q)
		}
		printList(a, list, map[string]any{"queues": list})
		return
	}
	if len(all) == 0 {
		fmt.Fprintf(a.out, "no queues yet. Set one up, and start a workflow in it:\n  %s\n  %s\n",
			a.command("queue set payments --concurrency 4"), a.command("workflow start DEFINITION ID --queue payments"))
		return
	}
	t := a.newTable("QUEUE", "RUNNING", "WAITING", "LATER", "OLDEST", "LIMITS", "PAUSED")
	for _, q := range all {
		paused := "-"
		if !q.PausedAt.IsZero() {
			paused = a.when(q.PausedAt, now) + " by " + printable(q.Note)
		}
		t.row(q.Name, fmt.Sprint(q.Running), fmt.Sprint(q.Waiting), fmt.Sprint(q.Later), a.when(q.Oldest, now), limitsText(q.Queue), paused)
	}
	t.flush()
}

// limitsText lists the limits of a queue.
func limitsText(q store.Queue) string {
	var parts []string
	for _, l := range []struct {
		n    int
		text string
	}{{q.Concurrency, "%d at once"}, {q.PerWorker, "%d a worker"}, {q.PerKey, "%d a key"}} {
		if l.n > 0 {
			parts = append(parts, fmt.Sprintf(l.text, l.n))
		}
	}
	if q.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%d in %v (burst %d)", q.Rate, q.Period, q.Burst))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// printQueue says what was done to a queue, and how it stands.
func (a *app) printQueue(ctx context.Context, s *session, name, done string) error {
	all, err := s.eng.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range all {
		switch {
		case q.Name != name:
		case a.text():
			fmt.Fprintf(a.out, "%s %s: limits: %s; %d run, %d wait\n", done, name, limitsText(q.Queue), q.Running, q.Waiting)
		default:
			a.printJSON(jsonOfQueue(q))
		}
	}
	return nil
}

// queueText is where a workflow stands in line.
func queueText(w engine.Info) string {
	text := w.Queue
	if w.QueueKey != "" {
		text += ", key " + printable(w.QueueKey)
	}
	if w.Priority != 0 {
		text += fmt.Sprintf(", priority %d", w.Priority)
	}
	return text
}
