package pawl_test

import (
	"fmt"
	"strings"

	"github.com/pawlhq/pawl"
)

// The tables of pawl, as schema.sql says them.
func Example() {
	for line := range strings.Lines(pawl.SchemaSQL) {
		if name, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			fmt.Println(strings.TrimRight(name, " (\n"))
		}
	}
	// Output:
	// pawl.schema_migrations
	// pawl.workflow
	// pawl.step
	// pawl.inbox
	// pawl.progress
	// pawl.worker
	// pawl.lease
	// pawl.queue
	// pawl.definition
	// pawl.schedule
	// pawl.slot
	// pawl.schema_info
}
