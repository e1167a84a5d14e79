package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
)

// bulkFlags are the flags of a verb that is given to many workflows.
type bulkFlags struct {
	query string
	limit int
	yes   bool
}

func (f *bulkFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.query, "query", "q", "", `in place of an ID: all that it selects, such as "type:order status:held since:2h"`)
	fl.IntVar(&f.limit, "limit", 0, "with --query: how many at most")
	fl.BoolVarP(&f.yes, "yes", "y", false, "with --query: do it, do not only count")
}

// takes accepts one ID, or none with a query.
func (f *bulkFlags) takes(cmd *cobra.Command, args []string) error {
	if f.query == "" {
		return takes("ID")(cmd, args)
	}
	if len(args) > 0 {
		return usagef("either an ID or --query, not both")
	}
	return nil
}

// inBulk counts what a query selects, and with --yes starts the workflow that gives
// each the order.
func (a *app) inBulk(ctx context.Context, s *session, f bulkFlags, o engine.Order) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	q, err := engine.ParseQuery(f.query, now)
	if err != nil {
		return err
	}
	if f.limit < 0 {
		return usagef("--limit %d: it cannot be negative", f.limit)
	}
	n, first, err := s.eng.CountSelected(ctx, q)
	if err != nil {
		return err
	}
	id := ""
	if f.yes && !o.DryRun && n > 0 {
		id = o.RequestID
		if id == "" {
			id = "bulk-" + engine.NewID()
		}
		data, err := engine.BulkJSON(engine.Bulk{Query: q, Verb: o.Verb, Actor: o.Actor, Reason: o.Reason, Limit: f.limit})
		if err != nil {
			return err
		}
		if _, err := s.eng.StartJSON(ctx, engine.BulkDefinition, id, data); err != nil {
			return err
		}
	}
	a.printBulk(f.query, o, n, first, id)
	return nil
}

func (a *app) printBulk(query string, o engine.Order, n int, first []string, id string) {
	if !a.text() {
		a.printJSON(map[string]any{"query": query, "verb": string(o.Verb), "count": n, "first": first, "bulk": optional(id)})
		return
	}
	such := ""
	if n > 0 {
		such = ", such as " + printable(strings.Join(first, ", "))
	}
	fmt.Fprintf(a.out, "%q selects %d workflows%s\n", query, n, such)
	switch {
	case id != "":
		fmt.Fprintf(a.out, "started %s, which gives each the order to %s; see: %s\n", id, o.Verb, a.command("workflow show "+shellWord(id)+" --payload"))
	case n > 0 && !o.DryRun:
		fmt.Fprintf(a.out, "nothing was done: pass --yes to %s them\n", o.Verb)
	}
}
