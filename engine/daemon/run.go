package daemon

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// The bounds of the flags of run.
const (
	minLease       = 100 * time.Millisecond
	minPoll        = time.Millisecond
	maxConcurrency = 100_000
)

// runFlags are the flags of run.
type runFlags struct {
	concurrency        int
	lease, poll, drain time.Duration
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	base := a.settings()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Work until told to stop",
		Long: `Claim workflows and run their steps until SIGTERM or SIGINT, then drain: claim
nothing more, let running steps go on for --drain-timeout, cancel them, give
back what is owned, and exit 0. A second signal leaves at once, with 143 or 130.`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.config(a.config)
			if err != nil {
				return err
			}
			return a.work(cmd.Context(), cfg)
		},
	}
	cmd.Flags().IntVar(&f.concurrency, "concurrency", base.Concurrency, "how many workflows to advance at once")
	cmd.Flags().DurationVar(&f.lease, "lease", base.Lease, "how long after its last sign of life this worker's work is taken over")
	cmd.Flags().DurationVar(&f.poll, "poll", base.Poll, "how often to look for work when nothing wakes it")
	cmd.Flags().DurationVar(&f.drain, "drain-timeout", base.DrainTimeout, "how long running steps may go on after the first signal")
	return cmd
}

// settings is the configuration with the engine's defaults filled in, so that
// --help and the block at the start show them.
func (a *app) settings() engine.Config {
	c := a.config
	if c.Concurrency == 0 {
		c.Concurrency = 128
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Lease, 10 * time.Second}, {&c.Poll, 500 * time.Millisecond}, {&c.DrainTimeout, 25 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return c
}

// config checks the flags and puts them into a configuration.
func (f runFlags) config(c engine.Config) (engine.Config, error) {
	switch {
	case f.concurrency < 1 || f.concurrency > maxConcurrency:
		return c, usagef("--concurrency %d: it is 1 to %d", f.concurrency, maxConcurrency)
	case f.lease < minLease:
		return c, usagef("--lease %v: it is at least %v", f.lease, minLease)
	case f.poll < minPoll:
		return c, usagef("--poll %v: it is at least %v", f.poll, minPoll)
	case f.drain < 0:
		return c, usagef("--drain-timeout %v: it cannot be negative", f.drain)
	}
	c.Concurrency, c.Lease, c.Poll, c.DrainTimeout = f.concurrency, f.lease, f.poll, max(f.drain, time.Nanosecond)
	return c, nil
}

// work is the life of a worker.
func (a *app) work(ctx context.Context, cfg engine.Config) error {
	drain, second, stop := watchSignals(ctx)
	defer stop()
	s, err := a.connectWorker(drain, cfg)
	if err != nil {
		return err
	}
	a.printBlock(s, cfg)
	a.warnStranded(drain, s)

	ended := make(chan error, 1)
	go func() { ended <- errors.Join(s.eng.Run(drain), s.close()) }()
	select {
	case err := <-ended:
		return err
	case sig := <-second:
		return &signalError{sig, true} // without closing, which would wait for what is running
	}
}

// connectWorker gives up when a signal comes before there is a worker.
func (a *app) connectWorker(ctx context.Context, cfg engine.Config) (*session, error) {
	bounded, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	s, err := a.connect(bounded, access{create: true, defs: true}, cfg)
	if err == nil {
		if err = a.setup(bounded, s.eng); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.close())
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// blockJSON is what run prints at its start.
type blockJSON struct {
	Name         string    `json:"name"`
	Version      string    `json:"version"`
	Store        string    `json:"store"`
	Schema       *string   `json:"schema"`
	Host         string    `json:"host"`
	PID          int       `json:"pid"`
	Concurrency  int       `json:"concurrency"`
	Definitions  []defJSON `json:"definitions"`
	LeaseSeconds float64   `json:"lease_seconds"`
	PollSeconds  float64   `json:"poll_seconds"`
	DrainSeconds float64   `json:"drain_timeout_seconds"`
}

// printBlock says what has started.
func (a *app) printBlock(s *session, cfg engine.Config) {
	host, _ := os.Hostname()
	defs := s.eng.Definitions()
	if !a.text() {
		a.printJSONLine(blockJSON{
			Name: a.name, Version: a.build().Version, Store: s.db.shown, Schema: optional(s.db.schemaShown()),
			Host: host, PID: os.Getpid(), Concurrency: cfg.Concurrency, Definitions: defsJSON(defs),
			LeaseSeconds: cfg.Lease.Seconds(), PollSeconds: cfg.Poll.Seconds(), DrainSeconds: cfg.DrainTimeout.Seconds(),
		})
		return
	}
	f := a.newFields()
	f.add(a.name, "%s, %s", a.build().Version, runtime.Version())
	f.add("store", "%s", s.db.shown)
	if schema := s.db.schemaShown(); schema != "" {
		f.add("schema", "%s", schema)
	}
	f.add("worker", "host %s, pid %d, concurrency %d", host, os.Getpid(), cfg.Concurrency)
	f.add("definitions", "%s", namesOf(defs))
	f.add("timing", "lease %v, poll %v, drain timeout %v", cfg.Lease, cfg.Poll, cfg.DrainTimeout.Round(time.Millisecond))
	f.flush()
}

func namesOf(defs []store.Def) string {
	if len(defs) == 0 {
		return "none: this worker has nothing to do"
	}
	var names string
	for i, d := range defs {
		if i > 0 {
			names += ", "
		}
		names += definitionName(d)
	}
	return names
}
