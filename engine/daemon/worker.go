package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/store"
)

func (a *app) workerCommand() *cobra.Command {
	cmd := a.group("worker", "Look at the workers", &cobra.Command{
		Use:   "list",
		Short: "List the workers that are alive or died within the last hour",
		Args:  takes(),
		RunE:  a.client(&access{}, a.workerList),
	})
	a.clientFlags(cmd)
	return cmd
}

func (a *app) workerList(ctx context.Context, s *session, _ []string) error {
	workers, err := s.eng.Workers(ctx)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	if !a.text() {
		all := workersJSON(workers, now)
		printList(a, all, map[string]any{"workers": all})
		return nil
	}
	if len(workers) == 0 {
		fmt.Fprintf(a.out, "no worker is alive, and none was within the last hour. Start one:\n  %s\n", a.command("run"))
		return nil
	}
	t := a.newTable("ID", "HOST", "PID", a.paint("STATE"), "DEFINITIONS", "STARTED", "LEASE ENDS")
	for _, w := range workers {
		ends := a.when(w.ExpiresAt, now)
		if !w.Alive() {
			ends = "-"
		}
		t.row(w.ID.String(), printable(w.Host), fmt.Sprint(w.PID), a.paint(workerState(w, now)), namesOf(w.Definitions), a.when(w.StartedAt, now), ends)
	}
	t.flush()
	return nil
}

func workersJSON(workers []store.Worker, now time.Time) []workerJSON {
	all := make([]workerJSON, len(workers))
	for i, w := range workers {
		all[i] = workerJSON{
			ID: w.ID.String(), Host: w.Host, PID: w.PID, Definitions: defsJSON(w.Definitions), State: workerState(w, now),
			StartedAt: w.StartedAt.UTC(), LeaseEndsAt: w.ExpiresAt.UTC(), DeadAt: moment(w.DeadAt),
		}
	}
	return all
}

// workerState is dead once it is buried, and expired while its lease has run
// out and nobody has seen it.
func workerState(w store.Worker, now time.Time) string {
	switch {
	case !w.Alive():
		return "dead"
	case !w.ExpiresAt.After(now):
		return "expired"
	}
	return "alive"
}
