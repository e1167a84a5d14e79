package daemon

import "io"

// WithEnv replaces the environment, so that tests can run in parallel.
func WithEnv(env map[string]string) Option {
	return func(a *app) { a.getenv = func(name string) string { return env[name] } }
}

// Inner functions for tests of their own.
var (
	Conceal    = conceal
	Line       = line
	ShellWord  = shellWord
	UnquoteURL = unquoteURL
)

// ShownURL is how a database URL is shown to people.
func ShownURL(text, schema string) (string, error) {
	db, err := parseDatabase(text, schema)
	return db.shown, err
}

// Finish runs the end of a command that failed with err.
func Finish(name string, err error, w io.Writer) int {
	a := &app{name: name, out: &sticky{w: w}, err: w}
	return a.finish(err)
}
