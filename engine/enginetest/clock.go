package enginetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// LongLease is a lease that outlives any jump of a [Clock]: a worker that is alive
// is not to be buried because a test has let a year pass.
const LongLease = 100 * 365 * 24 * time.Hour

// idlePoll is how often Finish looks, in real time, whether a workflow has moved.
const idlePoll = 2 * time.Millisecond

// Clock is a clock that goes on only when it is told to. It is safe for concurrent
// use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the beginning of 2030, in UTC.
func NewClock() *Clock { return &Clock{now: time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance lets d pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// advanceTo lets the time come, unless it has passed.
func (c *Clock) advanceTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// Finish waits until a workflow has ended or is HELD, and returns it. Whenever all
// workflows of the store wait, and one of them for the time, the clock jumps there.
// A workflow that waits for a signal only is waited for until ctx is done. The
// engine must be running.
func (c *Clock) Finish(ctx context.Context, e *engine.Engine, st store.Store, id string) (engine.Info, error) {
	tick := time.NewTicker(idlePoll)
	defer tick.Stop()
	for {
		info, err := e.Get(ctx, id)
		if err != nil || info.Status.Ended() || info.Status == store.Held {
			return info, err
		}
		next, idle, err := nextTimer(ctx, st, c.Now())
		if err != nil {
			return info, err
		}
		if idle && !next.IsZero() {
			c.advanceTo(next)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return info, fmt.Errorf("workflow %q does not end, it is %s in %s: %w", id, info.Status, info.State, context.Cause(ctx))
		}
	}
}

// nextTimer returns when the first workflow or branch wakes by itself, and whether
// nothing else is to be done before.
func nextTimer(ctx context.Context, st store.Store, now time.Time) (next time.Time, idle bool, err error) {
	rows, err := unended(ctx, st, store.Query{})
	if err != nil {
		return next, false, err
	}
	for _, root := range rows {
		branches, err := unended(ctx, st, store.Query{BranchesOf: root.ID})
		if err != nil {
			return next, false, err
		}
		rows = append(rows, branches...)
	}
	for _, wf := range rows {
		due := !wf.WakeAt.IsZero() && !wf.WakeAt.After(now)
		if due || !wf.Owner.IsZero() {
			return next, false, nil
		}
		if next.IsZero() || !wf.WakeAt.IsZero() && wf.WakeAt.Before(next) {
			next = wf.WakeAt
		}
	}
	return next, true, nil
}

// unended reads all that a query selects and that has not ended.
func unended(ctx context.Context, st store.Store, q store.Query) (rows []store.Workflow, err error) {
	q.Statuses = []store.Status{store.Pending, store.Waiting, store.Compensating}
	for q.Limit = 500; ; {
		page, err := st.List(ctx, q)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page...)
		if len(page) < q.Limit {
			return rows, nil
		}
		q.After = page[len(page)-1].ID
	}
}
