package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlhq/pawl/store"
)

// errTxOver is what a body gets that goes on using its transaction after the
// engine has gone on without it.
var errTxOver = errors.New("transaction is over")

// guardTx is the transaction that a body sees. It can be closed from outside,
// so that a body that was given up cannot reach into a connection that others
// use by then. That does not hold for what Unwrap returns.
type guardTx struct {
	mu   sync.Mutex
	tx   store.Tx
	over bool
}

// close waits for the statement under way, which its context ends.
func (g *guardTx) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

// Exec implements store.Tx.
func (g *guardTx) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return 0, errTxOver
	}
	return g.tx.Exec(ctx, sql, args...)
}

// QueryRow implements store.Tx.
func (g *guardTx) QueryRow(ctx context.Context, sql string, args ...any) store.Row {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return noRow{}
	}
	return g.tx.QueryRow(ctx, sql, args...)
}

// Query implements store.Tx.
func (g *guardTx) Query(ctx context.Context, sql string, args ...any) (store.Rows, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil, errTxOver
	}
	return g.tx.Query(ctx, sql, args...)
}

// Unwrap implements store.Tx.
func (g *guardTx) Unwrap() any { return g.tx.Unwrap() }

type noRow struct{}

func (noRow) Scan(...any) error { return errTxOver }
