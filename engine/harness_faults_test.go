package engine_test

import (
	"context"
	"errors"
	"time"

	"github.com/pawlhq/pawl/store"
)

// faulty is a store that a test can get in the way of: each function that is set
// is called instead of the store's own, which it may call itself.
type faulty struct {
	store.Store

	commit   func(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error)
	commitTx func(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body txBody) (store.Verdict, error)
	start    func(ctx context.Context, news []store.New) ([]store.StartResult, error)
	claim    func(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error)
	renew    func(ctx context.Context, w store.WorkerID, lease time.Duration) (bool, error)
	bury     func(ctx context.Context) ([]store.WorkerID, error)
	takeover func(ctx context.Context, base time.Duration, limit int) (int, error)
	history  func(ctx context.Context, id string) ([]store.StepRecord, error)
}

// errNetwork is what a test lets go wrong.
var errNetwork = errors.New("the network is down")

type txBody = func(context.Context, store.Tx) (store.Transition, error)

// spoils returns what wraps a store as change says.
func spoils(change func(f *faulty)) func(store.Store) store.Store {
	return func(st store.Store) store.Store {
		f := &faulty{Store: st}
		change(f)
		return f
	}
}

func (f *faulty) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	if f.commit != nil {
		return f.commit(ctx, w, ts)
	}
	return f.Store.Commit(ctx, w, ts)
}

func (f *faulty) CommitTx(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body func(context.Context, store.Tx) (store.Transition, error)) (store.Verdict, error) {
	if f.commitTx != nil {
		return f.commitTx(ctx, w, g, limit, body)
	}
	return f.Store.CommitTx(ctx, w, g, limit, body)
}

func (f *faulty) Start(ctx context.Context, news []store.New) ([]store.StartResult, error) {
	if f.start != nil {
		return f.start(ctx, news)
	}
	return f.Store.Start(ctx, news)
}

func (f *faulty) Claim(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	if f.claim != nil {
		return f.claim(ctx, w, defs, limit)
	}
	return f.Store.Claim(ctx, w, defs, limit)
}

func (f *faulty) Renew(ctx context.Context, w store.WorkerID, lease time.Duration) (bool, error) {
	if f.renew != nil {
		return f.renew(ctx, w, lease)
	}
	return f.Store.Renew(ctx, w, lease)
}

func (f *faulty) Bury(ctx context.Context) ([]store.WorkerID, error) {
	if f.bury != nil {
		return f.bury(ctx)
	}
	return f.Store.Bury(ctx)
}

func (f *faulty) Takeover(ctx context.Context, base time.Duration, limit int) (int, error) {
	if f.takeover != nil {
		return f.takeover(ctx, base, limit)
	}
	return f.Store.Takeover(ctx, base, limit)
}

func (f *faulty) History(ctx context.Context, id string) ([]store.StepRecord, error) {
	if f.history != nil {
		return f.history(ctx, id)
	}
	return f.Store.History(ctx, id)
}
