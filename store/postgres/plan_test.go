package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// planCase is a statement and what its generic plan must say.
type planCase struct {
	name  string
	sql   func(texts) string
	want  []string // patterns that must all be found
	fresh string   // and this one, where the statistics do not say that there is no mail at all
}

const (
	byKey   = `Index (Only )?Scan using workflow_pkey on workflow \w+.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(id = \(?\w+\.`
	ready   = `Index (Only )?Scan using workflow_ready on workflow \w+.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(definition = .* AND \(version = .* AND \(wake_at <= statement_timestamp\(\)\)\)`
	ofOwner = `(Bitmap )?Index (Only )?Scan (using|on) workflow_owner.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(owner = `
	byPlace = `Tid Scan on workflow`
	open    = `Index (Only )?Scan (using|on) inbox_open.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(fresh = `
)

var planCases = []planCase{
	{"start", func(t texts) string { return t.start }, nil, ""},
	{"existing", func(t texts) string { return t.existing }, []string{byKey}, ""},
	{"commit", func(t texts) string { return t.commit }, []string{
		byKey, byPlace, `Tid Scan on inbox`,
		`Index Scan using inbox_pkey on inbox \w+.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(workflow_id = .* AND \(message_id = `,
	}, ""},
	{"spread", func(t texts) string { return t.spread }, []string{
		byKey, byPlace,
		`Index Scan using workflow_pkey on workflow \w+.*\n\s+Index Cond: \(\(bucket = m\w*\.bucket\) AND \(id = m\w*\.workflow_id\)\)`,
	}, ""},
	{"fence", func(t texts) string { return t.fence }, []string{`Index Scan using workflow_pkey on workflow \w+.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(id = \$2\)\)`}, ""},
	{"claim", func(t texts) string { return t.claim }, []string{ready, byKey, byPlace}, open},
	{"claim from a queue", func(t texts) string { return t.claimQueued }, []string{
		`Index (Only )?Scan using workflow_slot on workflow \w+`,
		`Index (Only )?Scan using workflow_line on workflow \w+.*\n\s+Index Cond: \(\(bucket = .* AND \(queue = \$1\) AND \(begun = `,
		`Index (Only )?Scan using workflow_line_key on workflow \w+.*\n\s+Index Cond: \(\(bucket = .* AND \(queue = \$1\) AND \(queue_key = .* AND \(begun = `,
		`Index (Only )?Scan using workflow_pkey on workflow w`,
	}, ""},
	{"ready", func(t texts) string { return t.ready }, []string{ready, byKey}, open},
	{"mail", func(t texts) string { return t.mail }, []string{byKey}, open},
	{"load", func(t texts) string { return t.load }, []string{byKey}, ""},
	{"owned", func(t texts) string { return t.owned }, []string{ofOwner}, ""},
	{"give back", func(t texts) string { return t.giveBack }, []string{ofOwner, byPlace}, ""},
	{"takeover", func(t texts) string { return t.takeover }, []string{ofOwner, byPlace, `Index Only Scan using workflow_owner on workflow`}, ""},
	{"sweep", func(t texts) string { return t.sweep }, []string{byKey, `Tid Scan on inbox`}, open},
	{"read back", func(t texts) string { return t.readBack }, []string{byKey}, ""},
	{"release", func(t texts) string { return t.release }, []string{byKey, byPlace}, ""},
	{"send", func(t texts) string { return t.send }, []string{byKey}, ""},
	{"ended", func(t texts) string { return t.ended }, []string{byKey}, ""},
	{"history", func(t texts) string { return t.history }, []string{
		`step_pkey.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(workflow_id >= \$2\) AND \(workflow_id < \$3\)\)`,
	}, ""},
	{"branches", func(t texts) string { return t.branches }, []string{
		`workflow_pkey on workflow \w+.*\n\s+Index Cond: \(\(bucket = \$1\) AND \(id > \$2\) AND \(id < \$6\)\)`,
	}, ""},
}

// TestGenericPlans shows that each statement finds its rows by an index,
// whatever the planner knows of the tables: nothing, since they are empty and
// were never analysed; or all, since they are full and were.
func TestGenericPlans(t *testing.T) {
	t.Parallel()
	s := open1(t)
	conn := direct(t, s)
	for _, stage := range []struct {
		name string
		do   string
	}{
		{"empty", ""},
		{"emptied", "ANALYZE pawl.workflow, pawl.step, pawl.inbox, pawl.worker"},
		{"full", fillSQL},
		{"analysed", "ANALYZE pawl.workflow, pawl.step, pawl.inbox, pawl.worker"},
	} {
		_, err := conn.Exec(t.Context(), stage.do)
		require.NoError(t, err)
		for _, c := range planCases {
			t.Run(stage.name+"/"+c.name, func(t *testing.T) {
				plan := genericPlan(t, conn, c.sql(s.sql))
				require.NotRegexp(t, `Seq Scan on (workflow|step|inbox)`, plan)
				if stage.name != "emptied" {
					require.Regexp(t, c.fresh, plan)
				}
				for _, want := range c.want {
					require.Regexp(t, want, plan)
				}
			})
		}
	}
}

// fillSQL fills the tables with 20,000 workflows, a tenth owned, and some mail.
const fillSQL = `
INSERT INTO pawl.workflow (bucket, id, definition, version, status, state, revision, owner, wake_at,
                           pivoted, input_hash, data, created_at, updated_at)
SELECT 0, 'wf-' || g, 'order', 1, 'PENDING', 'Charging', 1,
       CASE WHEN g % 10 = 0 THEN '0192aaaa-0000-7000-8000-000000000001'::uuid END,
       CASE WHEN g % 10 = 1 THEN now() END,
       false, '\x00', '{}', now(), now()
FROM   generate_series(1, 20000) AS g;
INSERT INTO pawl.inbox (bucket, workflow_id, message_id, kind, name, fresh)
SELECT 0, 'wf-' || g, 'm', 'signal', 'approval', g % 10 = 0 FROM generate_series(1, 10000) AS g`

var parameters = regexp.MustCompile(`\$\d+`)

// genericPlan returns the plan that PostgreSQL makes for a statement without
// knowing its arguments, under the settings that pawl's transactions have.
func genericPlan(t *testing.T, conn *pgx.Conn, sql string) string {
	ctx := t.Context()
	highest := 0
	for _, p := range parameters.FindAllString(sql, -1) {
		var n int
		_, err := fmt.Sscanf(p, "$%d", &n)
		require.NoError(t, err)
		highest = max(highest, n)
	}
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written
	_, err = tx.Exec(ctx, hotSettings)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "PREPARE p AS "+sql)
	require.NoError(t, err)
	defer conn.Exec(context.WithoutCancel(ctx), "DEALLOCATE p") //nolint:errcheck // best effort
	execute := "EXPLAIN EXECUTE p"
	if highest > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", highest), ", ") + ")"
	}
	rows, err := tx.Query(ctx, execute)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
