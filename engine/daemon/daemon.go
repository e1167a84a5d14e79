package daemon

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/engine"
)

// Main runs the command that the process's arguments name, and exits with its
// code. Register is called with the engine before anything is started, run or
// signalled; it calls [engine.Register] for each definition.
func Main(register func(*engine.Engine) error, opts ...Option) {
	os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, register, opts...))
}

// Run runs one command and returns its exit code. When ctx is done the command
// "run" drains, as it does after a first SIGTERM, and any other command gives
// up. Args do not hold the program's name.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, register func(*engine.Engine) error, opts ...Option) int {
	a := &app{
		name:     filepath.Base(os.Args[0]),
		register: register,
		setup:    func(context.Context, *engine.Engine) error { return nil },
		getenv:   os.Getenv,
		in:       stdin,
		out:      &sticky{w: stdout},
		err:      stderr,
	}
	for _, opt := range opts {
		opt(a)
	}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(stdin)
	root.SetOut(a.out)
	root.SetErr(stderr)
	return a.finish(root.ExecuteContext(ctx))
}

// Option tunes Main and Run.
type Option func(*app)

// WithName sets the program's name in its messages; by default it is that of
// the executable.
func WithName(name string) Option { return func(a *app) { a.name = name } }

// WithVersion sets the version that the program says it has; by default it is
// the main module's.
func WithVersion(version string) Option { return func(a *app) { a.version = version } }

// WithConfig sets what the engine is configured with where no flag says
// otherwise. Its Logger is made from the flags and replaces any other.
func WithConfig(cfg engine.Config) Option { return func(a *app) { a.config = cfg } }

// WithSetup makes the command "run" call setup once the definitions are
// registered, before it works: to start what a worker counts on. It is called by
// every worker, and so must bear being repeated, as a start of the same id does.
func WithSetup(setup func(context.Context, *engine.Engine) error) Option {
	return func(a *app) { a.setup = setup }
}

// app is one command under way.
type app struct {
	name     string
	version  string
	config   engine.Config
	register func(*engine.Engine) error
	setup    func(context.Context, *engine.Engine) error
	getenv   func(string) string

	in  io.Reader
	out *sticky
	err io.Writer

	flags flags
	known []string // definitions, once registered
	id    string   // of the workflow that the command is about, if any
}

// sticky is a writer that remembers its first error, so that a full disk is
// noticed without checking each line.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}
