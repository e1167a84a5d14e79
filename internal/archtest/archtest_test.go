package archtest

import (
	"maps"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The tree as it is keeps to the table.
func TestDesign(t *testing.T) {
	t.Parallel()
	packages, err := Load(os.DirFS("../.."))
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, line := range Check(Design(), packages) {
		t.Error(line)
	}
}

// whole is a package that breaks no rule.
var whole = map[string]string{
	"doc.go":          "// Package store is a contract.\npackage store",
	"example_test.go": "package store_test\nimport \"fmt\"\nfunc Example() {\nfmt.Println(1)\n// Output: 1\n}",
}

// with returns the whole package with some files added, replaced, or, where the
// text is empty, removed.
func with(changes map[string]string) map[string]string {
	sources := maps.Clone(whole)
	for name, text := range changes {
		if text == "" {
			delete(sources, name)
			continue
		}
		sources[name] = text
	}
	return sources
}

// Each case changes one thing about a package that is in order.
func TestCheck(t *testing.T) {
	t.Parallel()
	imports := func(path string) string { return "package store\nimport _ \"" + path + "\"" }
	const own = "github.com/pawlhq/pawl"
	for name, test := range map[string]struct {
		folder  string
		changes map[string]string
		broken  string // "" if nothing is
	}{
		"in order":        {"store", nil, ""},
		"unknown package": {"shop", nil, "shop: package is not in the table of internal/archtest/rules.go"},
		"unknown below":   {"store/mysql", nil, "store/mysql: package is not in the table of internal/archtest/rules.go"},
		"any example":     {"examples/new/deep", nil, ""},
		"name of nothing": {"store", map[string]string{"doc.go": "// Package util is all.\npackage util", "example_test.go": "package util\nfunc Example() {\n// Output:\n}"}, "store: a package named util says nothing about what is in it"},

		"standard library":        {"store", map[string]string{"a.go": imports("net/http")}, ""},
		"its own package":         {"engine", map[string]string{"a_test.go": imports(own + "/engine")}, ""},
		"allowed edge":            {"engine", map[string]string{"a.go": imports(own + "/step")}, ""},
		"allowed by way of":       {"engine/daemon", map[string]string{"a.go": imports(own + "/step")}, ""},
		"edge against the layers": {"step", map[string]string{"a.go": imports(own + "/engine")}, "step/a.go: imports github.com/pawlhq/pawl/engine: against the direction of the layers"},
		"edge to the side":        {"store/sqlite", map[string]string{"a.go": imports(own + "/store/postgres")}, "store/sqlite/a.go: imports github.com/pawlhq/pawl/store/postgres: against the direction of the layers"},
		"edge to the root":        {"step", map[string]string{"a.go": imports(own)}, "step/a.go: imports github.com/pawlhq/pawl: against the direction of the layers"},
		"name that only begins":   {"step", map[string]string{"a.go": imports(own + "x/step")}, "step/a.go: imports github.com/pawlhq/pawlx/step: this package does without it"},
		"test helper in code":     {"engine", map[string]string{"a.go": imports(own + "/internal/pgtest")}, "engine/a.go: imports github.com/pawlhq/pawl/internal/pgtest: against the direction of the layers"},
		"test helper in test":     {"engine", map[string]string{"a_test.go": imports(own + "/internal/pgtest")}, ""},
		"suite in test":           {"store/sqlite", map[string]string{"a_test.go": imports(own + "/store/storetest")}, ""},
		"nothing by way of tests": {"step", map[string]string{"a_test.go": imports(own + "/engine/daemon")}, "step/a_test.go: imports github.com/pawlhq/pawl/engine/daemon: against the direction of the layers"},
		"program in test":         {"step", map[string]string{"a_test.go": imports(own + "/cmd/workerd")}, "step/a_test.go: imports github.com/pawlhq/pawl/cmd/workerd: against the direction of the layers"},

		"third party allowed":         {"store/postgres", map[string]string{"a.go": imports("github.com/jackc/pgx/v5/pgxpool")}, ""},
		"third party in leaf":         {"step", map[string]string{"a.go": imports("github.com/google/uuid")}, "step/a.go: imports github.com/google/uuid: this package does without it"},
		"third party is not taken on": {"engine/daemon", map[string]string{"a.go": imports("github.com/jackc/pgx/v5")}, "engine/daemon/a.go: imports github.com/jackc/pgx/v5: this package does without it"},
		"driver in engine":            {"engine", map[string]string{"a.go": imports("github.com/ncruces/go-sqlite3/driver")}, "engine/a.go: imports github.com/ncruces/go-sqlite3/driver: this package does without it"},
		"commands in engine":          {"engine", map[string]string{"a.go": imports("github.com/spf13/cobra")}, "engine/a.go: imports github.com/spf13/cobra: this package does without it"},
		"testify in code":             {"engine", map[string]string{"a.go": imports("github.com/stretchr/testify/require")}, "engine/a.go: imports github.com/stretchr/testify/require: this package does without it"},
		"testify in test":             {"step", map[string]string{"a_test.go": imports("github.com/stretchr/testify/require")}, ""},
		"testify in suite":            {"store/storetest", map[string]string{"a.go": imports("github.com/stretchr/testify/require")}, ""},
		"cgo":                         {"store/sqlite", map[string]string{"a.go": imports("C")}, "store/sqlite/a.go: imports C: pawl builds without cgo"},

		"no doc.go":            {"store", map[string]string{"doc.go": "", "a.go": "package store"}, "store: package has no package comment"},
		"doc.go says nothing":  {"store", map[string]string{"doc.go": "//go:build unix\n\npackage store"}, "store: package has no package comment"},
		"comment elsewhere":    {"store", map[string]string{"doc.go": "", "a.go": "// Package store is.\npackage store"}, "store: the package comment is in a.go, and belongs into doc.go"},
		"comment twice":        {"store", map[string]string{"a.go": "// Package store is.\npackage store"}, ""},
		"comment in a test":    {"store", map[string]string{"doc.go": "package store", "a_test.go": "// Package store is.\npackage store"}, "store: package has no package comment"},
		"no example":           {"store", map[string]string{"example_test.go": ""}, "store: package has no Example function with an output"},
		"example is not run":   {"store", map[string]string{"example_test.go": "package store\nfunc Example() {}"}, "store: package has no Example function with an output"},
		"internal, no example": {"internal/pgtest", map[string]string{"example_test.go": ""}, ""},
		"only tests":           {"store", map[string]string{"doc.go": "", "example_test.go": "package store"}, ""},

		"function":             {"store", map[string]string{"a.go": "package store\nfunc Open() {}"}, "store/a.go: Open has no comment"},
		"function, directive":  {"store", map[string]string{"a.go": "package store\n//go:noinline\nfunc Open() {}"}, "store/a.go: Open has no comment"},
		"function, commented":  {"store", map[string]string{"a.go": "package store\n// Open opens.\nfunc Open() {}"}, ""},
		"function, own":        {"store", map[string]string{"a.go": "package store\nfunc open() {}"}, ""},
		"function in test":     {"store", map[string]string{"a_test.go": "package store\nfunc Open() {}"}, ""},
		"method":               {"store", map[string]string{"a.go": "package store\n// T is.\ntype T struct{}\nfunc (*T) Close() {}"}, "store/a.go: T.Close has no comment"},
		"method, generic":      {"store", map[string]string{"a.go": "package store\n// T is.\ntype T[K, V any] struct{}\nfunc (t *T[K, V]) Close() {}"}, "store/a.go: T.Close has no comment"},
		"method of own type":   {"store", map[string]string{"a.go": "package store\ntype t struct{}\nfunc (t) Close() {}"}, ""},
		"type":                 {"store", map[string]string{"a.go": "package store\ntype T int"}, "store/a.go: T has no comment"},
		"type in group":        {"store", map[string]string{"a.go": "package store\n// Types.\ntype (\nT int\n)"}, "store/a.go: T has no comment"},
		"interface's method":   {"store", map[string]string{"a.go": "package store\n// T is.\ntype T interface {\nClose()\n}"}, "store/a.go: T.Close has no comment"},
		"interface, commented": {"store", map[string]string{"a.go": "package store\n// T is.\ntype T interface {\nClose() // closes\nerror\n}"}, ""},
		"constant":             {"store", map[string]string{"a.go": "package store\nconst Limit = 1"}, "store/a.go: Limit has no comment"},
		"constant in group":    {"store", map[string]string{"a.go": "package store\n// Limits.\nconst (\nLimit = 1\n)"}, ""},
		"variable":             {"store", map[string]string{"a.go": "package store\nvar (\nErrA = 1 // is a\nErrB = 2\n)"}, "store/a.go: ErrB has no comment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := Parse(test.folder, with(test.changes))
			require.NoError(t, err)
			broken := Check(Design(), []Package{parsed})
			if test.broken == "" {
				require.Empty(t, broken)
				return
			}
			require.Equal(t, []string{test.broken}, broken)
		})
	}
}

// A program needs a package comment, but neither doc.go nor examples nor comments
// on what nobody can import.
func TestCommand(t *testing.T) {
	t.Parallel()
	check := func(source string) []string {
		parsed, err := Parse("cmd/workerd", map[string]string{"main.go": source})
		require.NoError(t, err)
		return Check(Design(), []Package{parsed})
	}
	require.Empty(t, check("// Command workerd works.\npackage main\nfunc Exported() {}"))
	require.Equal(t, []string{"cmd/workerd: package has no package comment"}, check("package main"))
}

// Load reads what belongs to the module, and nothing else.
func TestLoad(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	packages, err := Load(fstest.MapFS{
		"doc.go":               file("package pawl"),
		"README.md":            file("# pawl"),
		"step/key.go":          file("package step"),
		"step/key_test.go":     file("package step_test"),
		"step/generate.go":     file("//go:build ignore\n\npackage main"),
		"step/testdata/bad.go": file("not Go"),
		".cache/bad.go":        file("not Go"),
		"_old/bad.go":          file("not Go"),
		"other/go.mod":         file("module other"),
		"other/other.go":       file("package other"),
	})
	require.NoError(t, err)
	require.Len(t, packages, 2)
	require.Equal(t, ".", packages[0].Folder)
	require.Equal(t, "step", packages[1].Folder)
	require.Equal(t, "step", packages[1].Name)
	require.Len(t, packages[1].Files, 2)

	_, err = Load(fstest.MapFS{"step/bad.go": file("not Go")})
	require.ErrorContains(t, err, "parse step/bad.go")
}
