package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Retention says how long what a definition's workflows leave behind is kept. Time
// counts from their end. Register checks Keep against the horizon: as long as
// somebody may still ask for the answer of a workflow, it must be there.
type Retention struct {
	// Keep is how long data, steps and results are kept. Then the workflow becomes
	// an EXPIRED tombstone.
	Keep time.Duration

	// Tombstone is how long the id stays taken after that. Until then a start of
	// it is an ErrExpired; afterwards it is a new workflow.
	Tombstone time.Duration

	// Processing is how long whoever asks may take to do so once more: the
	// longest chain of retries of a client or a broker. Default: 24 h.
	Processing time.Duration

	// Replay is how far back operators replay by hand. Default: 24 h.
	Replay time.Duration

	// Skew is by how much clocks may differ. Default: 1 min.
	Skew time.Duration

	// Buffer is what is added for good measure. Default: 1 h.
	Buffer time.Duration
}

// Horizon is the sum that a retention must exceed, by its parts.
type Horizon struct {
	Chain      time.Duration // the longest retry chain of a step, with its timeouts
	Processing time.Duration
	Replay     time.Duration
	Skew       time.Duration
	Buffer     time.Duration
}

// Sum is the whole of it.
func (h Horizon) Sum() time.Duration { return h.Chain + h.Processing + h.Replay + h.Skew + h.Buffer }

// String spells the sum out.
func (h Horizon) String() string {
	return fmt.Sprintf("%v = retry chain %v + processing %v + replay %v + clock skew %v + buffer %v",
		h.Sum(), h.Chain, h.Processing, h.Replay, h.Skew, h.Buffer)
}

// ErrRetentionTooShort says that a definition would be forgotten while somebody may
// still ask for it. The message spells the sum out.
var ErrRetentionTooShort = errors.New("retention is too short")

// RegisterOption tunes one call of Register.
type RegisterOption func(*registered)

// Retain keeps what the definition's workflows leave behind for a while only.
// Without it all is kept for ever.
func Retain(r Retention) RegisterOption { return func(reg *registered) { reg.retention = &r } }

// horizon computes what the retention of a definition must exceed.
func (r *registered) horizon() Horizon {
	ret := r.retention
	h := Horizon{
		Processing: or(ret.Processing, 24*time.Hour), Replay: or(ret.Replay, 24*time.Hour),
		Skew: or(ret.Skew, time.Minute), Buffer: or(ret.Buffer, time.Hour),
	}
	for _, sp := range r.machine.Specs() {
		h.Chain = max(h.Chain, retryChain(sp.Policy))
	}
	return h
}

// retryChain is how long a step may go on trying. One that never gives up goes on
// before the end, from which the retention counts: its last pause matters.
func retryChain(p step.Policy) time.Duration {
	timeout := p.AttemptTimeout()
	if p.Attempts == step.Forever {
		return p.Pause(1<<16, 0) + timeout
	}
	chain := timeout
	for n := 1; !p.Exhausted(n); n++ {
		chain += p.Pause(n, 0) + timeout
	}
	return chain
}

// checkRetention refuses a retention that is shorter than the horizon.
func (r *registered) checkRetention() error {
	if r.retention == nil {
		return nil
	}
	for name, d := range map[string]time.Duration{
		"Tombstone": r.retention.Tombstone, "Processing": r.retention.Processing, "Replay": r.retention.Replay,
		"Skew": r.retention.Skew, "Buffer": r.retention.Buffer,
	} {
		if d < 0 {
			return fmt.Errorf("retention: %s %v: it cannot be negative", name, d)
		}
	}
	if h := r.horizon(); r.retention.Keep <= h.Sum() {
		return fmt.Errorf("%w: %v is not more than %v", ErrRetentionTooShort, r.retention.Keep, h)
	}
	return nil
}

// RetentionPlan is what a definition's retention is and must exceed.
type RetentionPlan struct {
	Definition store.Def
	Retention  *Retention // nil if all is kept for ever
	Horizon    Horizon    // zero then
}

// RetentionPlans returns those of all registered definitions.
func (e *Engine) RetentionPlans() []RetentionPlan {
	e.mu.Lock()
	defer e.mu.Unlock()
	var plans []RetentionPlan
	for _, d := range e.sortedDefs() {
		p := RetentionPlan{Definition: d}
		if reg := e.defs[d]; reg.retention != nil {
			ret := *reg.retention
			p.Retention, p.Horizon = &ret, reg.horizon()
		}
		plans = append(plans, p)
	}
	return plans
}

const (
	// cleanBatch bounds what one transaction expires or forgets.
	cleanBatch = 200

	// cleanLease is the name of the cleaner's lease.
	cleanLease = "cleaner"
)

// cleanRound is what a round of cleaning came to.
type cleanRound struct {
	expired, forgotten int
	more               bool // there may be more to do at once
}

// retentions are those of all definitions, by name: the longest, where versions
// differ.
func (e *Engine) retentions() map[string]Retention {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, kept := map[string]Retention{}, map[string]bool{}
	for d, reg := range e.defs {
		if reg.retention == nil {
			kept[d.Name] = true
			continue
		}
		have := all[d.Name]
		have.Keep, have.Tombstone = max(have.Keep, reg.retention.Keep), max(have.Tombstone, reg.retention.Tombstone)
		all[d.Name] = have
	}
	for name := range kept {
		delete(all, name)
	}
	return all
}

// clean makes one bounded batch of tombstones, and removes one, for each
// definition, if this worker is the cleaner.
func (e *Engine) clean(ctx context.Context, me store.WorkerID, lease time.Duration) (round cleanRound, err error) {
	holds, err := e.store.Lead(ctx, cleanLease, me, lease)
	if err != nil || !holds {
		return round, err
	}
	for name, r := range e.retentions() {
		ids, err := e.store.Expirable(ctx, name, r.Keep, cleanBatch)
		if err != nil {
			return round, err
		}
		if len(ids) > 0 {
			if ids, err = e.store.Expire(ctx, ids); err != nil {
				return round, err
			}
		}
		n, err := e.store.Forget(ctx, name, r.Keep+r.Tombstone, cleanBatch)
		if err != nil {
			return round, err
		}
		round.expired, round.forgotten = round.expired+len(ids), round.forgotten+n
		round.more = round.more || len(ids) == cleanBatch || n == cleanBatch
	}
	return round, nil
}
