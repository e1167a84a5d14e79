package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/engine"
)

// followEvery is how often a workflow that is followed is looked at.
const followEvery = 250 * time.Millisecond

// follow prints a workflow, and then whatever changes, until it has ended.
func (a *app) follow(ctx context.Context, s *session, id string) error {
	look := time.NewTicker(followEvery)
	defer look.Stop()
	f := follower{a: a}
	for {
		ended, err := f.round(ctx, s, id)
		if err != nil {
			return err
		}
		if ended {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follower is what a follow has shown so far.
type follower struct {
	a        *app
	revision int64
	steps    int
}

// round looks once and prints what is new. It reads no steps unless something
// has changed.
func (f *follower) round(ctx context.Context, s *session, id string) (ended bool, err error) {
	info, err := s.eng.Get(ctx, id)
	if err != nil || info.Revision == f.revision {
		return false, err
	}
	v, err := look(ctx, s, id)
	if err != nil {
		return false, err
	}
	switch first := f.revision == 0; {
	case !f.a.text():
		f.a.printJSONLine(f.a.jsonOfView(v))
	case first:
		f.a.printView(v)
		fmt.Fprintln(f.a.out)
	default:
		f.printNews(v)
	}
	f.revision, f.steps = v.info.Revision, len(v.steps)
	return v.info.Status.Ended(), nil
}

// printNews prints the steps that have ended since, and how it stands now.
func (f *follower) printNews(v view) {
	for _, st := range v.steps[min(f.steps, len(v.steps)):] {
		f.printStep(st)
	}
	w := v.info
	fmt.Fprintf(f.a.out, "%s  %s  %s  %s\n", clock(v.now), f.a.paint(string(w.Status)), printable(string(w.State)), printable(v.why))
}

func (f *follower) printStep(s engine.Step) {
	text := fmt.Sprintf("%s  %s  %s  attempt %d  %s  %s", clock(s.EndedAt), f.a.paint(string(s.Status)), s.Step, s.Attempt, took(s.Took), s.Key)
	if s.Error != "" {
		text += "  " + line(s.Error)
	}
	fmt.Fprintln(f.a.out, text)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
