package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Orders as the messages that workers take up, and as what is left of them for
// those who ask later.

// obey has the machine do what an order wants, or say why not.
func (a *advance) obey(ctx context.Context, o Order, ev statemachine.Asked) (refused string, err error) {
	ev.Verb, ev.By, ev.Out = o.Verb, storable(o.by()), o.Result
	cur, cmds, err := a.ask(ctx, ev)
	if err != nil {
		return "", err
	}
	for _, cmd := range cmds {
		if answer, ok := cmd.(statemachine.Answered); ok && answer.Refused != "" {
			return answer.Refused, nil
		}
	}
	return "", a.take(cur, cmds)
}

// takeVerbs takes up what people have asked for while a worker was at work. It
// reports whether the workflow took another course because of it.
func (a *advance) takeVerbs(ctx context.Context, counted bool) (took bool, err error) {
	for _, msg := range slices.Clone(a.inbox) {
		if msg.Kind != store.MessageVerb {
			continue
		}
		var p orderPayload
		if isCoded(msg.Payload) {
			a.consume(msg, answerText(Operated{}, codecErrorOf("the order", msg.Payload).Error()))
			continue
		}
		if err := json.Unmarshal(msg.Payload, &p); err != nil {
			a.consume(msg, answerText(Operated{}, "it cannot be read: "+err.Error()))
			continue
		}
		before := standsAt(statusOf(a.m, a.cursor), string(a.cursor.State))
		o := Order{Verb: Verb(msg.Name), Actor: p.Actor, Reason: p.Reason, Result: p.Result}
		ev := statemachine.Asked{Counted: counted && a.cursor.Mark.Attempt > 0, Begun: a.begun(counted), At: msg.SentAt}
		refused, err := a.obey(ctx, o, ev)
		if err != nil {
			return took, err
		}
		if refused == "" {
			took, counted = true, false
		}
		a.consume(msg, answerText(Operated{Before: before, After: standsAt(statusOf(a.m, a.cursor), string(a.cursor.State))}, refused))
	}
	return took, nil
}

// begun reports whether an attempt of what is marked has begun; counted says that
// the last one was counted and has not.
func (a *advance) begun(counted bool) bool {
	if counted {
		return a.cursor.Mark.Attempt > 1
	}
	return a.cursor.Mark.Attempt > 0
}

// orderAnswer is what an order's sender is told.
type orderAnswer struct {
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Note    string `json:"note,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func answerText(done Operated, refused string) string {
	enc, err := json.Marshal(orderAnswer{done.Before, done.After, done.Note, refused})
	if err != nil {
		panic(fmt.Sprintf("encode answer: %v", err)) // texts always encode
	}
	return string(enc)
}

// answered looks whether an order was taken up before.
func (e *Engine) answered(ctx context.Context, id string, o Order) (done Operated, known bool, err error) {
	requests, err := e.store.Requests(ctx, id)
	if err != nil {
		return done, false, fmt.Errorf("%s workflow %q: %w", o.Verb, id, err)
	}
	for _, r := range requests {
		if r.ID != o.RequestID || r.TakenAt.IsZero() {
			continue
		}
		if r.Kind != store.MessageVerb || Verb(r.Name) != o.Verb {
			return done, true, &RefusedError{id, o.Verb, fmt.Sprintf("request %q was one to %s", r.ID, r.Name)}
		}
		if isCodedText(r.Answer) {
			return done, true, codecErrorOf(fmt.Sprintf("answer to request %q of workflow %q", r.ID, id), codedOfText(r.Answer))
		}
		var a orderAnswer
		if err := json.Unmarshal([]byte(r.Answer), &a); err != nil {
			return done, true, fmt.Errorf("read the answer to request %q: %w", r.ID, err)
		}
		if a.Refused != "" {
			return done, true, &RefusedError{id, o.Verb, a.Refused}
		}
		return Operated{Before: a.Before, After: a.After, Note: a.Note, Repeated: true}, true, nil
	}
	return done, false, nil
}

// AuditEntry is something that was asked of a workflow.
type AuditEntry struct {
	RequestID string
	Branch    string // "" for the workflow itself
	What      string // "signal approval", "cancel", or the verb
	Actor     string // of a verb
	Reason    string // of a verb or a cancellation
	SentAt    time.Time
	TakenAt   time.Time // zero if it was not taken up
	Before    string    // of a verb: how the workflow stood
	After     string    // of a verb: how it stood then
	Answer    string    // else, or why a verb was refused
}

// Audit returns what was ever asked of a workflow and its branches, oldest first,
// or ErrNotFound. It outlives the workflow's payloads.
func (e *Engine) Audit(ctx context.Context, id string) ([]AuditEntry, error) {
	if _, err := e.Get(ctx, id); err != nil {
		return nil, err
	}
	requests, err := e.store.Requests(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("audit workflow %q: %w", id, err)
	}
	var entries []AuditEntry
	for _, r := range requests {
		if strings.HasPrefix(r.ID, messageOfEngine) {
			continue // of a parent, or a root
		}
		entries = append(entries, auditEntryOf(r))
	}
	return entries, nil
}

func auditEntryOf(r store.Request) AuditEntry {
	entry := AuditEntry{RequestID: r.ID, Branch: store.BranchOf(r.WorkflowID), SentAt: r.SentAt, TakenAt: r.TakenAt, Answer: shown(r.Answer)}
	switch r.Kind {
	case store.MessageVerb:
		entry.What = r.Name
		var p orderPayload
		var a orderAnswer
		if isCoded(r.Payload) {
			entry.Reason = shownBytes(r.Payload)
		} else if json.Unmarshal(r.Payload, &p) == nil {
			entry.Actor, entry.Reason = p.Actor, p.Reason
		}
		if json.Unmarshal([]byte(r.Answer), &a) == nil {
			entry.Before, entry.After, entry.Answer = a.Before, a.After, a.Refused
			if a.Note != "" {
				entry.Answer = a.Note
			}
		}
	case store.MessageCancel:
		entry.What, entry.Reason = "cancel", shownBytes(r.Payload)
	default:
		entry.What = string(r.Kind) + " " + r.Name
	}
	return entry
}

// leftUndone names what has or may have had an effect, could be undone, and was
// not.
func leftUndone(m *statemachine.Machine, past []statemachine.Past) string {
	var left []string
	for p := range m.LeftToUndo(past) {
		left = append(left, p.Step)
	}
	if len(left) == 0 {
		return "nothing was left undone"
	}
	return "left undone: " + strings.Join(left, ", ")
}
