package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// Play is one run of a workflow, with everything that it changes of its own: a new
// one is made for each crash.
type Play struct {
	// Store is an empty database with pawl's schema. Close it by t.Cleanup.
	Store store.Store

	// Register registers the definitions. It is called once for each worker.
	Register func(e *engine.Engine) error

	// Drive does what clients do: it starts the workflow, sends its signals, and
	// waits for its end. After a crash it is called again, so it gives ids to its
	// signals; st is the store as its process sees it.
	Drive func(ctx context.Context, e *engine.Engine, st store.Store) error

	// Effects describes, when all is over, what has happened outside and inside:
	// it must be the same whether there was a crash or not. Leave out what may
	// differ, such as how often a provider was asked with one key.
	Effects func(ctx context.Context) (string, error)
}

// Points of CrashAt, beside a step.
const (
	BeforeBody = "before body"
	AfterBody  = "after body"
)

const (
	crashLease   = time.Second // of the worker that dies: so long the next one waits
	crashPoll    = 25 * time.Millisecond
	playTimeout  = time.Minute
	crashTries   = 10 // how often a run is begun for a point that another order of events has left out
	rehearsals   = 3  // runs without a crash: what all of them come to is a point
	playsAtOnce  = 4
	deadPatience = 10 * time.Second
)

// CrashAt runs a workflow whose worker dies before or after the first attempt of a
// step's body, and compares its effects with those of a run without a crash.
func CrashAt(t *testing.T, build func(t *testing.T) Play, step, point string) {
	t.Helper()
	want, _ := perform(t, build(t), "")
	target := point + " " + step + " #1"
	if got, crashed := perform(t, build(t), target); !crashed {
		t.Errorf("the workflow does not come to %q", target)
	} else if got != want {
		t.Errorf("a crash %s changes what happens:\n%s\nwithout it:\n%s", target, got, want)
	}
}

// CrashEverywhere runs a workflow once for each point at which its worker could
// die, and compares the effects with those of a run without a crash. It logs
// "crash points=N equal=N", and returns N.
func CrashEverywhere(t *testing.T, build func(t *testing.T) Play) (points int) {
	t.Helper()
	want, all := rehearse(t, build)
	var mu sync.Mutex
	equal := 0
	t.Run("points", func(t *testing.T) {
		slots := make(chan struct{}, playsAtOnce)
		for _, target := range all {
			t.Run(strings.ReplaceAll(target, " ", "-"), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				for range crashTries {
					got, crashed := perform(t, build(t), target)
					if !crashed {
						continue
					}
					if got != want {
						t.Errorf("a crash %s changes what happens:\n%s\nwithout it:\n%s", target, got, want)
						return
					}
					mu.Lock()
					equal++
					mu.Unlock()
					return
				}
				t.Errorf("in %d runs the workflow did not come to %q", crashTries, target)
			})
		}
	})
	t.Logf("crash points=%d equal=%d", len(all), equal)
	return len(all)
}

// rehearse runs the workflow without a crash, a few times, and returns its effects and
// the points that it comes to each time: how many transitions share a commit differs
// from run to run.
func rehearse(t *testing.T, build func(t *testing.T) Play) (effects string, points []string) {
	t.Helper()
	for range rehearsals {
		p := build(t)
		c := newCrasher(p.Store, "")
		effects, _ = performWith(t, p, c)
		seen := c.seen()
		if points == nil {
			points = seen
		}
		points = slices.DeleteFunc(points, func(p string) bool { return !slices.Contains(seen, p) })
	}
	// Which of two parallel branches comes first is open; the numbers are not.
	slices.Sort(points)
	return effects, points
}

// perform runs a workflow whose worker dies at target.
func perform(t *testing.T, p Play, target string) (effects string, crashed bool) {
	t.Helper()
	return performWith(t, p, newCrasher(p.Store, target))
}

func performWith(t *testing.T, p Play, c *crasher) (effects string, crashed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), playTimeout)
	defer cancel()
	first := worker{play: p, st: c, cfg: engine.Config{Around: c.around}, works: c.works}
	failed := first.work(ctx, c.dead)
	select {
	case <-c.dead: // and that is what it has failed by, if it has
		crashed = true
		second := worker{play: p, st: p.Store}
		if err := second.work(ctx, nil); err != nil {
			t.Fatalf("run the workflow after a crash %s: %v", c.target, err)
		}
	default:
		if failed != nil {
			t.Fatalf("run the workflow: %v", failed)
		}
	}
	effects, err := p.Effects(ctx)
	if err != nil {
		t.Fatalf("look at the effects: %v", err)
	}
	return effects, crashed
}

// worker is a process that drives and works.
type worker struct {
	play Play
	st   store.Store
	cfg  engine.Config

	// The client waits for works, if it is not nil: whether a start finds its worker
	// ready decides which points there are.
	works <-chan struct{}
}

// work drives the workflow to its end, or until dead is closed: then nothing of it
// goes on.
func (w worker) work(ctx context.Context, dead <-chan struct{}) error {
	w.cfg.Logger = slog.New(slog.DiscardHandler)
	w.cfg.Lease, w.cfg.Poll = crashLease, crashPoll
	w.cfg.DrainTimeout, w.cfg.CutTimeout = time.Millisecond, time.Millisecond
	e, err := engine.New(w.st, w.cfg)
	if err != nil {
		return err
	}
	if err := w.play.Register(e); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ran, driven := make(chan error, 1), make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	go func() {
		if w.works != nil {
			select {
			case <-w.works:
			case <-ctx.Done():
			}
		}
		driven <- w.play.Drive(ctx, e, w.st)
	}()
	select {
	case err := <-driven:
		driven <- err
	case <-dead:
	}
	stop()
	var errs []error
	for _, ended := range []<-chan error{driven, ran} {
		select {
		case err := <-ended:
			errs = append(errs, err)
		case <-time.After(deadPatience):
			return fmt.Errorf("a worker does not end: %w", context.DeadlineExceeded)
		}
	}
	return errors.Join(errs...)
}
