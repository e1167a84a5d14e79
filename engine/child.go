package engine

import (
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Children: workflows that others start. A child is inserted in its parent's
// transition, and tells the parent of its end in its own last one.

// startChild prepares a child's row. One that ends at once, by its choices alone,
// is told of by its parent itself, since nobody will ever own it.
func (a *advance) startChild(cmd statemachine.StartChild) error {
	cur, cmds, err := cmd.Machine.Next(statemachine.Cursor{ID: cmd.ID, Data: cmd.Data, PastKnown: true}, statemachine.Started{})
	if err != nil {
		return fmt.Errorf("start child %q: %w", cmd.ID, err)
	}
	next := followOf(cmds)
	cur = capStart(cmd.Machine, cur, &next)
	n := store.New{
		ID: cmd.ID, Definition: store.Def{Name: cmd.Machine.Name(), Version: cmd.Machine.Version()},
		InputHash: a.shell.eng.inputHash(cmd.Data), Parent: a.job.id,
		Place: unowned(placeOf(cmd.Machine, cur, next)),
	}
	a.starts = append(a.starts, n)
	if cur.Phase == statemachine.Ended {
		a.sends = append(a.sends, childMessage(cmd.Machine, a.job.id, cur))
	}
	return nil
}

// childEnd is the payload of a message that tells of a child's end.
type childEnd struct {
	End    statemachine.End `json:"end"`
	Data   json.RawMessage  `json:"data"`
	Reason string           `json:"reason,omitempty"`
}

// childMessage tells a parent of its child's end.
func childMessage(m *statemachine.Machine, parent string, c statemachine.Cursor) store.Message {
	end, known := m.End(c.End)
	if !known { // terminated: it may have had an effect, and nothing was undone
		end = statemachine.Failed
	}
	return childEndMessage(parent, c.ID, childEnd{end, c.Data, storable(c.Reason)})
}

func childEndMessage(parent, child string, end childEnd) store.Message {
	payload, err := json.Marshal(end)
	if err != nil {
		panic(fmt.Sprintf("encode child's end: %v", err)) // the data came out of an encoder
	}
	return store.Message{
		WorkflowID: parent, ID: messageOfEngine + child,
		Kind: store.MessageChild, Name: child, Payload: payload,
	}
}

func childEndEvent(msg store.Message) (statemachine.Event, error) {
	var end childEnd
	if err := json.Unmarshal(msg.Payload, &end); err != nil {
		return nil, fmt.Errorf("message of child %q: %w", msg.Name, err)
	}
	return statemachine.ChildEnded{ID: msg.Name, End: end.End, Out: end.Data, Reason: end.Reason}, nil
}
