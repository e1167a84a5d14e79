package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// printer prints one aligned line for each attempt of a step. It is safe for
// concurrent use.
type printer struct {
	mu      sync.Mutex
	out     io.Writer
	colours bool
	width   int             // of the ids
	seen    map[string]bool // the keys of steps that were printed as done or refused
	more    chan struct{}   // closed and replaced when seen has grown
}

func newPrinter(out io.Writer, width int) *printer {
	return &printer{out: out, colours: wantsColours(out), width: max(width, len("ORDER")), seen: map[string]bool{}, more: make(chan struct{})}
}

// wantsColours reports whether out is a terminal whose user has not asked for
// plain text.
func wantsColours(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// say prints a line of text.
func (p *printer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// head prints the names of the columns.
func (p *printer) head() {
	p.say("%-12s  %-*s  %-13s  %-8s  %7s  %s", "TIME", p.width, "ORDER", "STEP", "OUTCOME", "TOOK", "KEY")
}

// row is a line of the table.
type row struct {
	at       time.Time
	id, step string
	outcome  string
	took     time.Duration // not shown if negative
	key      string
	why      string // shown behind the key
}

// row prints a line of the table.
func (p *printer) row(r row) {
	took := ""
	if r.took >= 0 {
		took = brief(r.took)
	}
	why := ""
	if r.why != "" {
		why = "  " + r.why
	}
	outcome := p.coloured(r.outcome, fmt.Sprintf("%-8s", r.outcome))
	p.say("%-12s  %-*s  %-13s  %s  %7s  %s%s", r.at.Format("15:04:05.000"), p.width, r.id, r.step, outcome, took, r.key, why)
}

// step prints an attempt of a step that a worker has told of.
func (p *printer) step(ev engine.StepEvent) {
	order, _, _ := strings.Cut(ev.WorkflowID, "/") // of an order's child too
	p.row(row{at: time.Now(), id: order, step: ev.Step, outcome: string(ev.Outcome), took: ev.Took, key: ev.Key, why: ev.Error})
	if ev.Outcome == engine.OutcomeRetry {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[ev.Key] = true
	close(p.more)
	p.more = make(chan struct{})
}

// await returns when the steps of all keys were printed, or ctx is done: what a
// worker tells comes after what the database knows.
func (p *printer) await(ctx context.Context, keys []string) {
	for {
		more, all := p.look(keys)
		if all {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

func (p *printer) look(keys []string) (more <-chan struct{}, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		if !p.seen[key] {
			return p.more, false
		}
	}
	return nil, true
}

// coloured returns text in the colour of an outcome, where colours are wanted.
func (p *printer) coloured(outcome, text string) string {
	if !p.colours {
		return text
	}
	colour := 31 // red
	switch outcome {
	case string(engine.OutcomeDone):
		colour = 32 // green
	case string(engine.OutcomeRetry), string(engine.OutcomeCut):
		colour = 33 // yellow
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}

// brief writes a duration in a few characters.
func brief(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}

// outcomeOf is the outcome of a recorded step, in the words of its attempts.
func outcomeOf(s store.StepStatus) string {
	switch s {
	case store.StepDone:
		return string(engine.OutcomeDone)
	case store.StepFailed:
		return string(engine.OutcomeRefused)
	default:
		return string(engine.OutcomeFailed)
	}
}
