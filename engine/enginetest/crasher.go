package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// errCrashed is what a dead worker's calls are answered.
var errCrashed = errors.New("this worker is dead")

// crasher is a store as one worker sees it. At one of its points the worker dies:
// the call under way gets no answer, and none gets through any more.
type crasher struct {
	store.Store
	target string // the point; "" for never

	mu     sync.Mutex
	counts map[string]int
	points []string
	over   bool
	dead   chan struct{}

	begin sync.Once
	works chan struct{} // closed when the worker takes starts
}

func newCrasher(st store.Store, target string) *crasher {
	return &crasher{Store: st, target: target, counts: map[string]int{}, dead: make(chan struct{}), works: make(chan struct{})}
}

// at comes to a point. It returns errCrashed if the worker dies there, or is dead.
func (c *crasher) at(when, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errCrashed
	}
	kind := when + " " + what
	c.counts[kind]++
	point := fmt.Sprintf("%s #%d", kind, c.counts[kind])
	c.points = append(c.points, point)
	if point == c.target {
		c.over = true
		close(c.dead)
		return errCrashed
	}
	return nil
}

// refused returns errCrashed if the worker is dead.
func (c *crasher) refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errCrashed
	}
	return nil
}

// seen returns the points that the worker has come to.
func (c *crasher) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.points)
}

// around is a body as the worker runs it.
func (c *crasher) around(ctx context.Context, b engine.Body, run func(context.Context) ([]byte, error)) ([]byte, error) {
	return call(c, "body "+b.Step, func() ([]byte, error) { return run(ctx) })
}

// call makes a call with a point before and after it.
func call[T any](c *crasher, what string, fn func() (T, error)) (T, error) {
	var none T
	if err := c.at("before", what); err != nil {
		return none, err
	}
	v, err := fn()
	if dead := c.at("after", what); dead != nil {
		return none, dead
	}
	return v, err
}

// quiet makes a call that is no point, if the worker lives.
func quiet[T any](c *crasher, fn func() (T, error)) (T, error) {
	if err := c.refused(); err != nil {
		var none T
		return none, err
	}
	return fn()
}

type nothing struct{}

func only(err error) (nothing, error) { return nothing{}, err }

// Start implements store.Hot.
func (c *crasher) Start(ctx context.Context, news []store.New) ([]store.StartResult, error) {
	return call(c, "start", func() ([]store.StartResult, error) { return c.Store.Start(ctx, news) })
}

// StartTx implements store.Clients.
func (c *crasher) StartTx(ctx context.Context, tx store.Tx, n store.New) (store.StartResult, error) {
	return call(c, "start-tx", func() (store.StartResult, error) { return c.Store.StartTx(ctx, tx, n) })
}

// Commit implements store.Hot.
func (c *crasher) Commit(ctx context.Context, w store.WorkerID, ts []store.Transition) ([]store.Verdict, error) {
	return call(c, "commit", func() ([]store.Verdict, error) { return c.Store.Commit(ctx, w, ts) })
}

// CommitTx implements store.Hot.
func (c *crasher) CommitTx(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body func(context.Context, store.Tx) (store.Transition, error)) (store.Verdict, error) {
	return call(c, "commit-tx", func() (store.Verdict, error) {
		return c.Store.CommitTx(ctx, w, g, limit, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
			t, err := body(ctx, tx)
			if dead := c.at("inside", "commit-tx"); dead != nil {
				return t, dead // with the transaction open: nothing is committed
			}
			return t, err
		})
	})
}

// Claim implements store.Hot. One that brings nothing is no point.
func (c *crasher) Claim(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) ([]store.Claimed, error) {
	rows, err := quiet(c, func() ([]store.Claimed, error) { return c.Store.Claim(ctx, w, defs, limit) })
	if err == nil && len(rows) > 0 {
		if dead := c.at("after", "claim"); dead != nil {
			return nil, dead
		}
	}
	return rows, err
}

// ClaimQueued implements store.Queues. One that brings nothing is no point.
func (c *crasher) ClaimQueued(ctx context.Context, w store.WorkerID, defs []store.Def, limit int) (store.QueueClaim, error) {
	claim, err := quiet(c, func() (store.QueueClaim, error) { return c.Store.ClaimQueued(ctx, w, defs, limit) })
	if err == nil && len(claim.Rows) > 0 {
		if dead := c.at("after", "claim-queued"); dead != nil {
			return store.QueueClaim{}, dead
		}
	}
	return claim, err
}

// Beat implements store.Progress.
func (c *crasher) Beat(ctx context.Context, w store.WorkerID, g store.Guard, key string, progress []byte) (store.Verdict, error) {
	return call(c, "beat", func() (store.Verdict, error) { return c.Store.Beat(ctx, w, g, key, progress) })
}

// LastBeat implements store.Progress.
func (c *crasher) LastBeat(ctx context.Context, id, key string) ([]byte, error) {
	return quiet(c, func() ([]byte, error) { return c.Store.LastBeat(ctx, id, key) })
}

// Send implements store.Clients.
func (c *crasher) Send(ctx context.Context, ms []store.Message) ([]store.SendResult, error) {
	return call(c, "send", func() ([]store.SendResult, error) { return c.Store.Send(ctx, ms) })
}

// SendTx implements store.Clients.
func (c *crasher) SendTx(ctx context.Context, tx store.Tx, m store.Message) (store.SendResult, error) {
	return call(c, "send-tx", func() (store.SendResult, error) { return c.Store.SendTx(ctx, tx, m) })
}

// Join implements store.Workers.
func (c *crasher) Join(ctx context.Context, w store.Worker, lease time.Duration) error {
	c.begin.Do(func() { close(c.works) })
	_, err := call(c, "join", func() (nothing, error) { return only(c.Store.Join(ctx, w, lease)) })
	return err
}

// PutDefinition implements store.Clients.
func (c *crasher) PutDefinition(ctx context.Context, d store.Definition) error {
	_, err := call(c, "put-definition", func() (nothing, error) { return only(c.Store.PutDefinition(ctx, d)) })
	return err
}

// Get implements store.Clients.
func (c *crasher) Get(ctx context.Context, id string) (store.Workflow, error) {
	return call(c, "get", func() (store.Workflow, error) { return c.Store.Get(ctx, id) })
}

// History implements store.Clients.
func (c *crasher) History(ctx context.Context, id string) ([]store.StepRecord, error) {
	return call(c, "history", func() ([]store.StepRecord, error) { return c.Store.History(ctx, id) })
}

// What polls or cleans up is no point, but a dead worker does none of it.

// Mail implements store.Hot.
func (c *crasher) Mail(ctx context.Context, w store.WorkerID) ([]store.Message, error) {
	return quiet(c, func() ([]store.Message, error) { return c.Store.Mail(ctx, w) })
}

// Renew implements store.Workers.
func (c *crasher) Renew(ctx context.Context, w store.WorkerID, lease time.Duration) (bool, error) {
	return quiet(c, func() (bool, error) { return c.Store.Renew(ctx, w, lease) })
}

// Leave implements store.Workers.
func (c *crasher) Leave(ctx context.Context, w store.WorkerID) (int, error) {
	return quiet(c, func() (int, error) { return c.Store.Leave(ctx, w) })
}

// Bury implements store.Workers.
func (c *crasher) Bury(ctx context.Context) ([]store.WorkerID, error) {
	return quiet(c, func() ([]store.WorkerID, error) { return c.Store.Bury(ctx) })
}

// Takeover implements store.Workers.
func (c *crasher) Takeover(ctx context.Context, base time.Duration, limit int) (int, error) {
	return quiet(c, func() (int, error) { return c.Store.Takeover(ctx, base, limit) })
}

// Release implements store.Workers.
func (c *crasher) Release(ctx context.Context, w store.WorkerID, rs []store.Released) error {
	_, err := quiet(c, func() (nothing, error) { return only(c.Store.Release(ctx, w, rs)) })
	return err
}

// Amend implements store.Operations.
func (c *crasher) Amend(ctx context.Context, t store.Transition, r store.Request) (store.Verdict, error) {
	return call(c, "amend", func() (store.Verdict, error) { return c.Store.Amend(ctx, t, r) })
}

// Fork implements store.Forks.
func (c *crasher) Fork(ctx context.Context, f store.Fork) (store.StartResult, error) {
	return call(c, "fork", func() (store.StartResult, error) { return c.Store.Fork(ctx, f) })
}

// ChangeSchedule implements store.Schedules.
func (c *crasher) ChangeSchedule(ctx context.Context, ch store.ScheduleChange) (store.Verdict, error) {
	return quiet(c, func() (store.Verdict, error) { return c.Store.ChangeSchedule(ctx, ch) })
}
