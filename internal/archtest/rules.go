package archtest

import (
	"slices"
	"strings"
)

// Third-party packages, with all that is below them.
const (
	pgx        = "github.com/jackc/pgx/v5"
	uuid       = "github.com/google/uuid"
	cobra      = "github.com/spf13/cobra"
	testify    = "github.com/stretchr/testify"
	sqlite     = "github.com/ncruces/go-sqlite3"
	cron       = "github.com/robfig/cron/v3"
	rapid      = "pgregory.net/rapid"
	root       = "."
	everything = "..."
)

// Rule says what one package may import besides the standard library. Packages of
// the module are named by their folder, "." being the module's root; a name that
// ends in "/..." stands for all packages below, and for the folder itself.
type Rule struct {
	Module     []string // packages of the module, and by way of them what those may import
	ThirdParty []string // modules of others
}

// Rules is the table that a module is held to.
type Rules struct {
	Module   string          // path of the module
	Packages map[string]Rule // by folder; a name may end in "/..."
	Tests    Rule            // what all test files may import in addition
}

// Design returns pawl's own table: data flows one way, from steps to state
// machines to the engine to the programs, from the store's contract to its two
// implementations and the engine, and from the calendar to the engine.
func Design() Rules {
	return Rules{
		Module: "github.com/pawlhq/pawl",
		Packages: map[string]Rule{
			root:                      {},
			"step":                    {},
			"calendar":                {ThirdParty: []string{cron}},
			"statemachine":            {Module: []string{"step"}},
			"store":                   {},
			"store/postgres":          {Module: []string{"store", root}, ThirdParty: []string{pgx}},
			"store/sqlite":            {Module: []string{"store"}, ThirdParty: []string{sqlite}},
			"store/storetest":         {Module: []string{"store"}, ThirdParty: []string{testify}},
			"engine":                  {Module: []string{"calendar", "statemachine", "step", "store"}, ThirdParty: []string{uuid}},
			"engine/aescodec":         {},
			"engine/enginetest":       {Module: []string{"engine"}},
			"engine/daemon":           {Module: []string{"engine", "store/postgres", "store/sqlite", "idempotency"}, ThirdParty: []string{cobra}},
			"idempotency":             {Module: []string{"store"}},
			"cmd/workerd":             {Module: []string{"engine/daemon", "examples/order-saga/order"}, ThirdParty: []string{cobra}},
			"examples/...":            {Module: []string{"engine/daemon", "examples/..."}, ThirdParty: []string{cobra, pgx, sqlite}},
			"internal/archtest":       {},
			"internal/pgtest":         {ThirdParty: []string{pgx}},
			"internal/pgtest/cmd/...": {Module: []string{"internal/pgtest"}},
		},
		Tests: Rule{
			Module: []string{
				root, "calendar", "step", "statemachine", "store", "engine",
				"store/postgres", "store/sqlite", "store/storetest",
				"engine/aescodec", "engine/enginetest", "internal/pgtest", "examples/...",
			},
			ThirdParty: []string{testify, pgx, uuid, rapid},
		},
	}
}

// find returns the rule for a package, the most exact one if several match.
func (r Rules) find(folder string) (name string, rule Rule, found bool) {
	for candidate := range r.Packages {
		if matches(candidate, folder) && len(candidate) > len(name) {
			name, found = candidate, true
		}
	}
	return name, r.Packages[name], found
}

// allowedModule returns which packages of the module a rule allows, with what
// those may import in turn.
func (r Rules) allowedModule(rule Rule) []string {
	var allowed []string
	open := slices.Clone(rule.Module)
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		if slices.Contains(allowed, next) {
			continue
		}
		allowed = append(allowed, next)
		open = append(open, r.Packages[next].Module...)
	}
	return allowed
}

// matches reports whether a name in the table stands for a package or import.
func matches(name, folder string) bool {
	if above, all := strings.CutSuffix(name, "/"+everything); all {
		return folder == above || strings.HasPrefix(folder, above+"/")
	}
	return name == folder
}

// anyMatches reports whether one of the names stands for the package.
func anyMatches(names []string, folder string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return matches(name, folder) })
}
