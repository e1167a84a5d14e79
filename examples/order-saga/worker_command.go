package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/order"
)

// workerFlags are the flags of the command worker.
type workerFlags struct {
	name    string
	bankURL string
	child   bool
	stall   string
}

func workerCommand(s *settings) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Work on orders until told to stop",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := childContext(cmd, f.child)
			defer cancel()
			w, err := newWorker(cmd, s, f)
			if err != nil {
				return err
			}
			return w.run(ctx)
		},
	}
	cmd.Flags().StringVar(&f.name, "name", fmt.Sprintf("worker-%d", os.Getpid()), "how the bank is to know it")
	cmd.Flags().Lookup("name").DefValue = "worker-PID"
	cmd.Flags().StringVar(&f.bankURL, "bank-url", "", "the bank (default: the one that runs on --bank-file)")
	cmd.Flags().StringVar(&f.stall, "stall-after-charge", "", "hold still once the bank has charged this order")
	childFlag(cmd, &f.child)
	return cmd
}

// newWorker puts a worker together: what it tells, a parent process hears as
// messages and a person reads as lines.
func newWorker(cmd *cobra.Command, s *settings, f workerFlags) (worker, error) {
	if f.bankURL == "" {
		url, err := findBank(s.bankPath())
		if err != nil {
			return worker{}, err
		}
		f.bankURL = url
	}
	var stalls func(stalled)
	w := worker{databaseURL: s.databaseURL}
	if f.child {
		t := newTeller(cmd.OutOrStdout())
		w.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
		w.onStep = func(ev engine.StepEvent) { t.tell(message{Step: &ev}) }
		w.onReady = func() { t.tell(message{Ready: &ready{}}) }
		stalls = func(s stalled) { t.tell(message{Stalled: &s}) }
	} else {
		p := newPrinter(cmd.OutOrStdout(), len("order-1234"))
		w.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		w.onStep = p.step
		w.onReady = p.head
		stalls = func(s stalled) { p.say("%s: charged, and holding still; now kill -9 %d", s.Key, os.Getpid()) }
	}
	w.bank = &order.HTTPBank{URL: f.bankURL, Caller: f.name}
	if f.stall != "" {
		w.bank = stallingBank{w.bank, f.stall, stalls}
	}
	return w, nil
}
