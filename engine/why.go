package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Why says in one sentence why a workflow is not moving, or where it moves
// just now. The sentence holds no payload, but it does hold the last error.
// Register the definition to be told how many attempts a step has. It returns
// ErrNotFound if there is no such workflow.
func (e *Engine) Why(ctx context.Context, id string) (string, error) {
	info, err := e.Get(ctx, id)
	if err != nil {
		return "", err
	}
	s := situation{Info: info, poll: e.cfg.Poll, attempts: e.attemptsOf(info)}
	if s.mail, err = e.hasMail(ctx, info); err != nil {
		return "", fmt.Errorf("read inbox of workflow %q: %w", id, err)
	}
	if s.branches, err = e.heldBranch(ctx, info); err != nil {
		return "", fmt.Errorf("list branches of workflow %q: %w", id, err)
	}
	if s.queue, err = e.queueOf(ctx, info); err != nil {
		return "", fmt.Errorf("look at queue %q: %w", info.Queue, err)
	}
	if s.workers, err = e.store.Workers(ctx); err != nil {
		return "", fmt.Errorf("list workers: %w", err)
	}
	if s.now, err = e.store.Now(ctx); err != nil {
		return "", fmt.Errorf("read the database's time: %w", err)
	}
	return s.why(), nil
}

// attemptsOf is how many failures the step under way may have, or 0 if its
// definition is not registered here.
func (e *Engine) attemptsOf(info Info) int {
	reg, err := e.lookup(info.Definition)
	if err != nil {
		return 0
	}
	spec, ok := reg.machine.Spec(info.Mark.Step)
	if !ok {
		return 0
	}
	return or(spec.Policy.Attempts, step.DefaultAttempts)
}

// hasMail reports whether a waiting workflow has a message that it will take
// up.
func (e *Engine) hasMail(ctx context.Context, info Info) (bool, error) {
	if info.Status != store.Waiting || !info.Owner.IsZero() {
		return false, nil
	}
	msgs, err := e.store.Inbox(ctx, info.ID)
	return slices.ContainsFunc(msgs, func(m store.Message) bool {
		return m.Kind == store.MessageCancel || info.Open > 0 && (m.Kind == store.MessageBranch || m.Kind == store.MessageChild) ||
			m.Kind == store.MessageSignal && slices.Contains(strings.Split(info.Awaits, statemachine.AwaitsSeparator), m.Name)
	}), err
}

// heldBranch returns the first of the branches that a workflow waits for and
// that a person must look at, if there is one.
func (e *Engine) heldBranch(ctx context.Context, info Info) ([]store.Workflow, error) {
	if info.Open == 0 || info.Status != store.Waiting {
		return nil, nil
	}
	return e.store.List(ctx, store.Query{BranchesOf: info.ID, Statuses: []store.Status{store.Held}, Limit: 1})
}

// situation is all that the answer to "why is it not moving?" follows from.
type situation struct {
	Info
	workers  []store.Worker   // alive, or buried of late
	attempts int              // what the policy of the marked step says: 0 if unknown, step.Forever for no limit
	branches []store.Workflow // the first of its branches that is held, if one is
	mail     bool             // a message waits that it will take up
	queue    store.QueueState // that it waits in, if it does
	poll     time.Duration    // how often a worker sweeps
	now      time.Time        // the database's
}

func (s situation) why() string {
	switch {
	case s.Status == store.Expired:
		return "expired: only its id is left"
	case s.Status.Ended():
		return s.ended()
	case s.Status == store.Held:
		return "held: " + oneLine(s.Reason)
	case s.Status == store.Compensating:
		return s.compensating() + s.moving()
	}
	return s.moving()
}

func (s situation) ended() string {
	text := fmt.Sprintf("ended %s %s ago", s.Status, span(s.now.Sub(s.EndedAt)))
	switch reason := oneLine(s.Reason); {
	case s.Cause != "" && reason != "":
		text += fmt.Sprintf(" (%s: %s)", s.Cause, reason)
	case s.Cause != "":
		text += fmt.Sprintf(" (%s)", s.Cause)
	}
	return text
}

func (s situation) compensating() string {
	if s.Cause == "" {
		return "compensating: "
	}
	return fmt.Sprintf("compensating (%s): ", s.Cause)
}

// moving is for what is neither over nor held.
func (s situation) moving() string {
	switch {
	case !s.Owner.IsZero():
		return s.owned()
	case s.mail:
		return s.ready()
	case s.delayed():
		return fmt.Sprintf("begins at %s (%s)", s.clock(s.WakeAt), s.in(s.WakeAt))
	case s.Mark.Step != "" && s.later():
		return s.pausing()
	case s.Open > 0:
		return s.joining()
	case s.Awaits != "" && (s.later() || s.WakeAt.IsZero()):
		return s.awaiting()
	case s.later():
		return fmt.Sprintf("sleeping until %s (%s)", s.clock(s.WakeAt), s.in(s.WakeAt))
	}
	return s.ready()
}

// delayed reports whether its start was delayed, and has not come.
func (s situation) delayed() bool {
	return s.Status == store.Pending && s.Revision == 1 && s.later()
}

// later reports whether it wakes at some time to come.
func (s situation) later() bool { return s.WakeAt.After(s.now) }

func (s situation) owned() string {
	i := slices.IndexFunc(s.workers, func(w store.Worker) bool { return w.ID == s.Owner })
	if i < 0 || !s.works(s.workers[i]) {
		return s.orphaned()
	}
	w := s.workers[i]
	on := fmt.Sprintf("on worker %s (host %s, pid %d), lease ends %s", w.ID, w.Host, w.PID, s.in(w.ExpiresAt))
	if s.Mark.Step == "" {
		return "being looked at " + on
	}
	return fmt.Sprintf("running %s, attempt %d, %s", s.marked(), s.Mark.Attempt, on)
}

// orphaned is for a workflow whose worker is buried or about to be.
func (s situation) orphaned() string {
	if len(s.knowing()) == 0 {
		return "its worker is dead; " + s.unknown()
	}
	return fmt.Sprintf("its worker is dead; will be taken over within %s", span(max(s.poll, time.Second)))
}

// pausing is for a step, or an undo, between two attempts.
func (s situation) pausing() string {
	if s.Mark.Attempt == 0 && s.Mark.Failures == 0 && s.Mark.Crashes == 0 {
		return fmt.Sprintf("waiting to ask %s again (%s)", s.marked(), s.in(s.WakeAt))
	}
	if s.Mark.Crashes > 0 {
		return fmt.Sprintf("waiting to run %s again (attempt %d, %s; its worker died %s in a row)",
			s.marked(), s.Mark.Attempt+1, s.in(s.WakeAt), times(s.Mark.Crashes))
	}
	what := "waiting for retry"
	if s.Status == store.Compensating {
		what += " of " + s.marked()
	}
	return fmt.Sprintf("%s (%s, %s; last error: %s)", what, s.nextAttempt(), s.in(s.WakeAt), oneLine(s.Reason))
}

// nextAttempt counts as the policy does, by failures; where attempts were
// repeated after a crash the two numbers differ, and both are told.
func (s situation) nextAttempt() string {
	next := s.Mark.Attempt + 1
	switch {
	case s.attempts == 0:
		return fmt.Sprintf("attempt %d", next)
	case s.attempts == step.Forever:
		return fmt.Sprintf("attempt %d, no limit", next)
	case s.Mark.Failures != s.Mark.Attempt:
		return fmt.Sprintf("attempt %d, %d of %d failures", next, s.Mark.Failures, s.attempts)
	}
	return fmt.Sprintf("attempt %d of %d", next, s.attempts)
}

// joining is for a workflow that waits for its branches.
func (s situation) joining() string {
	text := fmt.Sprintf("waiting for %d branches", s.Open)
	if s.Open == 1 {
		text = "waiting for 1 branch"
	}
	if s.Cause != "" {
		text += fmt.Sprintf(" to stop, before it is rolled back (%s: %s)", s.Cause, oneLine(s.Reason))
	}
	for _, b := range s.branches {
		text += fmt.Sprintf("; branch %s is held: %s", store.BranchOf(b.ID), oneLine(shown(b.Error)))
	}
	return text
}

func (s situation) awaiting() string {
	text := fmt.Sprintf("waiting for signal %s since %s", strings.ReplaceAll(s.Awaits, statemachine.AwaitsSeparator, " or "), s.clock(s.UpdatedAt))
	if s.WakeAt.IsZero() {
		return text + ", without a time limit"
	}
	return text + ", times out " + s.in(s.WakeAt)
}

// ready is for a workflow that only needs a worker, or first of all a slot.
func (s situation) ready() string {
	if text := s.lined(); text != "" && len(s.knowing()) > 0 {
		return text
	}
	switch n := len(s.knowing()); n {
	case 0:
		return s.unknown()
	case 1:
		return fmt.Sprintf("ready, waiting for a free worker (1 live worker knows %s)", s.definition())
	default:
		return fmt.Sprintf("ready, waiting for a free worker (%d live workers know %s)", n, s.definition())
	}
}

// lined is for a workflow that waits in a queue.
func (s situation) lined() string {
	switch q := s.queue; {
	case q.Name == "":
		return ""
	case !q.PausedAt.IsZero():
		return fmt.Sprintf("queue %s is paused by %s", q.Name, oneLine(q.Note))
	case q.Concurrency > 0 && q.Running >= q.Concurrency:
		return fmt.Sprintf("queue %s is full (%d of %d run, %d wait)", q.Name, q.Running, q.Concurrency, q.Waiting)
	default:
		return fmt.Sprintf("waiting in queue %s (%d run, %d wait%s)", q.Name, q.Running, q.Waiting, limitsText(q.Queue))
	}
}

// limitsText says which limits of a queue may hold back whoever waits in it.
func limitsText(q store.Queue) string {
	text := ""
	if q.PerWorker > 0 {
		text += fmt.Sprintf(", %d a worker", q.PerWorker)
	}
	if q.PerKey > 0 {
		text += fmt.Sprintf(", %d a key", q.PerKey)
	}
	if q.Rate > 0 {
		text += fmt.Sprintf(", %d begin in %v", q.Rate, q.Period)
	}
	return text
}

func (s situation) unknown() string {
	if slices.ContainsFunc(s.workers, s.works) {
		return "no live worker knows " + s.definition()
	}
	return fmt.Sprintf("no live worker knows %s: no worker is alive", s.definition())
}

func (s situation) definition() string {
	return fmt.Sprintf("%s v%d", s.Definition.Name, s.Definition.Version)
}

// knowing returns the living workers that could take the workflow on.
func (s situation) knowing() []store.Worker {
	var ws []store.Worker
	for _, w := range s.workers {
		if s.works(w) && slices.Contains(w.Definitions, s.Definition) {
			ws = append(ws, w)
		}
	}
	return ws
}

// works reports whether a worker lives and has a lease.
func (s situation) works(w store.Worker) bool { return w.Alive() && w.ExpiresAt.After(s.now) }

// marked names what the mark names.
func (s situation) marked() string {
	if s.Status == store.Compensating {
		return "undo " + s.Mark.Step
	}
	return "step " + s.Mark.Step
}

func (s situation) in(t time.Time) string { return "in " + span(t.Sub(s.now)) }

// clock is a time of today without its date. It is in UTC, since whoever reads
// it need not be where the database is.
func (s situation) clock(t time.Time) string {
	t, now := t.UTC(), s.now.UTC()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// span is a duration as people say it: one number, rounded up.
func span(d time.Duration) string {
	up := func(unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
	switch {
	case d <= 0:
		return "0 s"
	case d <= 2*time.Minute:
		return fmt.Sprintf("%d s", up(time.Second))
	case d <= 2*time.Hour:
		return fmt.Sprintf("%d min", up(time.Minute))
	case d <= 72*time.Hour:
		return fmt.Sprintf("%d h", up(time.Hour))
	}
	return fmt.Sprintf("%d days", up(24*time.Hour))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// oneLineBytes bounds how much of an error is told in a sentence.
const oneLineBytes = 300

// oneLine returns the first line of a text, cut to what fits a sentence.
func oneLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if short := cutText(line, oneLineBytes); short != line || rest != "" {
		return short + " …"
	}
	return line
}
