package step

import "context"

// Info says which attempt a body is: for logs, traces and requests to other
// systems. What a body does should not depend on it, except on Key.
type Info struct {
	WorkflowID string // the workflow's id, without the branch it is in
	Step       string // the step's name; in an undo, the undo's
	Group      int    // the attempt group, from 1
	Attempt    int    // attempts begun in this group, this one included
	Item       int    // which item of many it works on, from 1; 0 if there are no items
	Key        Key    // the idempotency key, of an InTx or Func body too
}

type infoKey struct{}

// WithInfo returns a context in which InfoFrom finds info. The engine gives
// one to every body; a test of a body may do so too.
func WithInfo(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom returns what the engine says of the attempt that ctx belongs to, and
// whether it says anything: it does in every body and undo (InTx, Func and
// Call), in a probe, and in engine.Config.Around.
func InfoFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

// WorkflowID returns the id of the workflow that a body works for, or "" if ctx
// is none that the engine has given to a body.
func WorkflowID(ctx context.Context) string {
	info, _ := InfoFrom(ctx)
	return info.WorkflowID
}
