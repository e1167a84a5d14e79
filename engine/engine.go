package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// setupTimeout bounds the database calls of New and Register.
const setupTimeout = 30 * time.Second

// Engine starts, runs, steers and watches workflows in one store. It works as
// a client from New on, and as a worker too while Run is under way. It is safe
// for concurrent use.
type Engine struct {
	store store.Store
	cfg   Config
	log   *slog.Logger
	hints *hints
	waits *waits

	mu     sync.Mutex
	defs   map[store.Def]*registered
	worker *shell // while Run is under way
}

// registered is a definition as the engine works with it: without type
// parameters.
type registered struct {
	def      store.Def
	machine  *statemachine.Machine
	byParent bool // registered along with a definition that starts it

	retention *Retention // nil keeps all for ever
	queue     string     // that its workflows wait in unless told otherwise; "" for none
}

// New returns an engine on st. It checks that the store's schema fits this
// program.
func New(st store.Store, cfg Config) (*Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if st == nil {
		return nil, errors.New("new engine: there is no store: was the error of opening it looked at?")
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("new engine: %w", err)
	}
	if err := st.Check(ctx); err != nil {
		return nil, fmt.Errorf("check schema: %w", err)
	}
	cfg = cfg.withDefaults()
	st = withCodec(st, cfg.Codec)
	e := &Engine{store: st, cfg: cfg, log: cfg.Logger, defs: map[store.Def]*registered{}}
	e.hints = newHints(st, cfg.Logger)
	e.waits = newWaits(st, e.hints, cfg.Poll)
	return e, nil
}

// Run works as a worker until ctx is done, then drains: it stops claiming, lets
// running bodies end within Config.DrainTimeout, cancels the rest, and gives
// back what it owns so that others go on at once. It returns nil after a drain,
// and an error only if it could not begin. All definitions must be registered
// before.
func (e *Engine) Run(ctx context.Context) error {
	sh, err := e.beginWork()
	if err != nil {
		return err
	}
	defer e.endWork()
	sh.run(ctx)
	return nil
}

func (e *Engine) beginWork() (*shell, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.worker != nil {
		return nil, ErrRunning
	}
	e.worker = newShell(e, e.sortedDefs())
	return e.worker, nil
}

func (e *Engine) endWork() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.worker = nil
}

// working returns the shell of the Run under way, or nil.
func (e *Engine) working() *shell {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.worker
}

// Definitions returns what is registered, by name and version.
func (e *Engine) Definitions() []store.Def {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sortedDefs()
}

func (e *Engine) sortedDefs() []store.Def {
	defs := make([]store.Def, 0, len(e.defs))
	for d := range e.defs {
		defs = append(defs, d)
	}
	slices.SortFunc(defs, compareDefs)
	return defs
}

// lookup returns a registered definition.
func (e *Engine) lookup(d store.Def) (*registered, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if reg := e.defs[d]; reg != nil {
		return reg, nil
	}
	return nil, fmt.Errorf("%w: %s v%d", ErrUnknownDefinition, d.Name, d.Version)
}

// newest returns the newest registered version of a definition.
func (e *Engine) newest(name string) (*registered, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var best *registered
	for d, reg := range e.defs {
		if d.Name == name && (best == nil || d.Version > best.def.Version) {
			best = reg
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: %q", ErrUnknownDefinition, name)
	}
	return best, nil
}

func compareDefs(a, b store.Def) int {
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return a.Version - b.Version
}

// fitsTx returns an ErrWrongTx for the first step that asks for a transaction
// the store does not have.
func (e *Engine) fitsTx(specs []step.Spec) error {
	for _, s := range specs {
		if s.TxType != nil && s.TxType != portableTx && s.TxType != e.store.TxType() {
			return fmt.Errorf("%w: step %s asks for %v, the store has %v and store.Tx", ErrWrongTx, s.Name, s.TxType, e.store.TxType())
		}
	}
	return nil
}
