package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// clientTimeout bounds a client command unless --timeout says otherwise.
const clientTimeout = 30 * time.Second

// session is a command's access to a database.
type session struct {
	db     database
	store  store.Store
	eng    *engine.Engine
	closed atomic.Bool // or about to be
}

// access says what a command needs of the database.
type access struct {
	create   bool // a SQLite file that is not there is created
	defs     bool // the definitions must be registered
	policies bool // it says more if they are
	hints    bool // the command leaves something for workers to look at
	long     bool // it may take as long as it likes, unless --timeout is given
}

// client wraps the body of a command that works as a client.
func (a *app) client(need *access, body func(context.Context, *session, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		ctx, cancel := a.limit(cmd.Context(), need.long)
		defer cancel()
		s, err := a.connect(ctx, *need, a.config)
		if err != nil {
			return timedOut(ctx, err)
		}
		defer func() { err = errors.Join(err, s.close()) }()
		if err := body(ctx, s, args); err != nil {
			return timedOut(ctx, err)
		}
		if need.hints {
			_ = s.store.Notify(ctx, store.TopicReady) // without it they look at their next poll
		}
		return nil
	}
}

// limit bounds a client command.
func (a *app) limit(ctx context.Context, long bool) (context.Context, context.CancelFunc) {
	d := a.flags.timeout
	if d == 0 || long && !a.flags.timeoutSet {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("timed out after %v: %w", d, context.DeadlineExceeded))
}

// timedOut says so if the end of ctx is what an error comes from.
func timedOut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// connect opens the database and makes an engine on it.
func (a *app) connect(ctx context.Context, need access, cfg engine.Config) (*session, error) {
	db, err := a.database(need.create)
	if err != nil {
		return nil, err
	}
	st, err := db.open(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{db: db, store: st}
	if err := a.equip(s, need, cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// database is the one that the settings name. Unless it may be created it must
// be there, as far as that can be seen.
func (a *app) database(create bool) (database, error) {
	text, err := a.databaseURL()
	if err != nil {
		return database{}, err
	}
	db, err := parseDatabase(text, a.flags.schema)
	if err != nil || create {
		return db, err
	}
	return db, db.exists()
}

// equip makes the engine of a session.
func (a *app) equip(s *session, need access, cfg engine.Config) (err error) {
	cfg.Logger = slog.New(whileOpen{a.logger().Handler(), &s.closed})
	if s.eng, err = engine.New(s.store, cfg); err != nil {
		return err
	}
	switch {
	case need.defs:
		return a.registerOn(s.eng)
	case need.policies: // a reader need not be allowed to write
		if err := a.registerOn(s.eng); err != nil {
			cfg.Logger.Warn("definitions are not registered", "error", line(err.Error()))
		}
	}
	return nil
}

func (a *app) registerOn(eng *engine.Engine) error {
	if err := a.register(eng); err != nil {
		return err
	}
	for _, d := range eng.Definitions() {
		a.known = append(a.known, definitionName(d))
	}
	_, err := engine.RegisterBulk(eng)
	return err
}

func (s *session) close() error {
	s.closed.Store(true)
	if err := s.store.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// whileOpen is a log that ends with its session: what the engine does in the
// background, such as listening, fails then, and nobody needs to know.
type whileOpen struct {
	slog.Handler
	closed *atomic.Bool
}

// Enabled implements slog.Handler.
func (h whileOpen) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.closed.Load() && h.Handler.Enabled(ctx, level)
}

func definitionName(d store.Def) string { return fmt.Sprintf("%s v%d", d.Name, d.Version) }
