package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/store"
)

func (a *app) migrateCommand() *cobra.Command {
	cmd := a.group("migrate", "Create the schema or bring it up to date",
		&cobra.Command{
			Use:   "up",
			Short: "Apply the migrations that are missing",
			Long:  "Apply the migrations that are missing, under a lock: any number of processes may do so at once.",
			Args:  takes(),
			RunE:  a.migration(true, a.migrateUp),
		},
		&cobra.Command{
			Use:   "status",
			Short: "List the migrations and when each was applied",
			Args:  takes(),
			RunE:  a.migration(false, a.migrateStatus),
		})
	a.clientFlags(cmd)
	return cmd
}

// migration wraps a command that works on the schema, so that there need not
// be one yet.
func (a *app) migration(create bool, body func(context.Context, store.Store) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) (err error) {
		ctx, cancel := a.limit(cmd.Context(), false)
		defer cancel()
		db, err := a.database(create)
		if err != nil {
			return err
		}
		st, err := db.openBare(ctx)
		if err != nil {
			return timedOut(ctx, err)
		}
		defer func() { err = errors.Join(err, st.Close()) }()
		if err := body(ctx, st); err != nil {
			return timedOut(ctx, err)
		}
		return nil
	}
}

type migrationJSON struct {
	Version   int        `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

func migrationsJSON(ms []store.Migration) []migrationJSON {
	all := make([]migrationJSON, len(ms))
	for i, m := range ms {
		all[i] = migrationJSON{m.Version, m.Name, moment(m.AppliedAt)}
	}
	return all
}

func (a *app) migrateUp(ctx context.Context, st store.Store) error {
	applied, err := st.Migrate(ctx)
	if err != nil {
		return err
	}
	if !a.text() {
		printList(a, migrationsJSON(applied), map[string]any{"applied": migrationsJSON(applied)})
		return nil
	}
	for _, m := range applied {
		fmt.Fprintf(a.out, "applied %d %s\n", m.Version, m.Name)
	}
	if len(applied) == 0 {
		fmt.Fprintln(a.out, "nothing to do: the schema is up to date")
	}
	return nil
}

func (a *app) migrateStatus(ctx context.Context, st store.Store) error {
	all, err := st.Migrations(ctx)
	if err != nil {
		return err
	}
	pending := 0
	for _, m := range all {
		if m.AppliedAt.IsZero() {
			pending++
		}
	}
	if !a.text() {
		printList(a, migrationsJSON(all), map[string]any{"migrations": migrationsJSON(all), "pending": pending})
		return nil
	}
	now, err := st.Now(ctx)
	if err != nil {
		return err
	}
	t := a.newTable("VERSION", "NAME", "APPLIED")
	for _, m := range all {
		when := "pending"
		if !m.AppliedAt.IsZero() {
			when = a.when(m.AppliedAt, now)
		}
		t.row(fmt.Sprint(m.Version), m.Name, when)
	}
	t.flush()
	if pending > 0 {
		fmt.Fprintf(a.out, "\n%d to apply: %s\n", pending, a.command("migrate up"))
	}
	return nil
}
