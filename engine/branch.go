package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Branches: rows of their own beside a workflow's. A root starts them, and asks
// them to stop, in its own transitions; a branch tells its root that it has
// ended in the transition with which it ends. Neither ever writes the other's
// row.

// messageOfEngine begins the ids of the engine's own messages. A caller's ids
// hold no control characters, so no signal can be taken for one of these.
const messageOfEngine = "\x1f"

// newBranch is the row of a branch, to be claimed by anybody.
func newBranch(m *statemachine.Machine, def store.Def, c statemachine.Cursor) store.New {
	return store.New{
		ID:         store.BranchID(c.ID, c.Branch),
		Definition: def,
		Parent:     c.ID,
		Place:      unowned(placeOf(m, c, follow{})),
	}
}

// stopMessage asks a branch or a child to end. However often it is sent, it is
// there once.
func stopMessage(id, reason string) store.Message {
	return store.Message{
		WorkflowID: id, ID: messageOfEngine + "stop",
		Kind: store.MessageCancel, Payload: []byte(storable(reason)),
	}
}

// branchEnd is the payload of a message that tells of a branch's end.
type branchEnd struct {
	Cause  statemachine.Cause `json:"cause,omitempty"`
	Reason string             `json:"reason,omitempty"`

	Failures int `json:"failures,omitempty"`
}

// endMessage tells the root of a branch's end.
func endMessage(branch string, e statemachine.BranchEnded) store.Message {
	payload, err := json.Marshal(branchEnd{e.Cause, storable(e.Reason), e.Failures})
	if err != nil {
		panic(fmt.Sprintf("encode branch's end: %v", err)) // strings always encode
	}
	return store.Message{
		WorkflowID: store.RootOf(branch), ID: messageOfEngine + e.Path,
		Kind: store.MessageBranch, Name: e.Path, Payload: payload,
	}
}

// endEvent is what a message tells the machine of an end.
func endEvent(msg store.Message) (statemachine.Event, error) {
	if msg.Kind == store.MessageChild {
		return childEndEvent(msg)
	}
	var end branchEnd
	if err := json.Unmarshal(msg.Payload, &end); err != nil {
		return nil, fmt.Errorf("message of branch %s: %w", msg.Name, err)
	}
	return statemachine.BranchEnded{Path: msg.Name, Cause: end.Cause, Reason: end.Reason, Failures: end.Failures}, nil
}

// takeBranchEnds takes up the ends of branches and children that have come, all
// at once, and reports whether there were any.
func (a *advance) takeBranchEnds(ctx context.Context) (took bool, err error) {
	for _, msg := range a.inbox {
		if a.cursor.Phase != statemachine.Waiting || a.cursor.Open == 0 {
			return took, nil
		}
		if msg.Kind != store.MessageBranch && msg.Kind != store.MessageChild || illegible(msg) {
			continue
		}
		ev, err := endEvent(msg)
		if err != nil {
			return took, err
		}
		if err := a.next(ctx, ev); err != nil {
			return took, err
		}
		a.consume(msg, "")
		took = true
	}
	return took, nil
}
