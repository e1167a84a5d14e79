package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Workflows with a value that cannot be read. To run them would be to guess, and to
// leave them would have every worker claim them again and again. So they are paused
// where they stand: HELD, and whoever has the codec lets them go on by Resume. None
// of their values is lost by that, not even the cursor, which a HELD workflow needs
// for itself.

// sealed is what such a workflow's cursor holds: what it held before, unread, and
// what the machine must know once it is read. It is stored as sealedByte and JSON.
type sealed struct {
	Cursor []byte             `json:"cursor,omitempty"`
	Error  []byte             `json:"error,omitempty"` // the text that stood there before
	From   statemachine.Phase `json:"from"`
	Alarm  int64              `json:"alarm_us,omitempty"`
}

func (s sealed) encode() []byte {
	enc, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode sealed cursor: %v", err)) // bytes and numbers always encode
	}
	return append([]byte{sealedByte}, enc...)
}

// open makes of it the rest of a cursor that is paused.
func (s sealed) open() ([]byte, error) {
	var c statemachine.Cursor
	if err := c.SetRest(s.Cursor); err != nil {
		return nil, err
	}
	c.From, c.Alarm, c.Paused = s.From, s.Alarm, true
	if c.Why == "" {
		c.Why = string(s.Error)
	}
	return c.Rest(), nil
}

// sealed visits what is inside of a sealed cursor. Once all of it can be read it is
// sealed no more.
func (v *visitor) sealed(cursor []byte) []byte {
	var s sealed
	if json.Unmarshal(cursor[1:], &s) != nil || v.err != nil {
		return cursor
	}
	v.bytes(&s.Cursor)
	v.bytes(&s.Error)
	if !v.reads || isCoded(s.Cursor) || isCoded(s.Error) {
		return s.encode()
	}
	rest, err := s.open()
	if err != nil {
		return cursor
	}
	return rest
}

// unread is what is kept of the row of a workflow that cannot be read.
type unread struct {
	err    error
	cursor []byte // as it is stored
}

// readable returns a *CodecError if a value that a workflow goes on by is encoded.
func readable(w store.Workflow) error {
	for _, value := range [][]byte{w.Data, w.Cursor} {
		if isCoded(value) {
			return codecErrorOf(ofWorkflow(w.ID), value)
		}
	}
	if isCodedText(w.Error) {
		return codecErrorOf(ofWorkflow(w.ID), codedOfText(w.Error))
	}
	return nil
}

// carries reports whether a message's payload is more than words for people.
func carries(m store.Message) bool {
	return m.Kind == store.MessageSignal || m.Kind == store.MessageBranch || m.Kind == store.MessageChild
}

// illegible reports whether a message must wait for somebody who can read it.
func illegible(m store.Message) bool { return carries(m) && isCoded(m.Payload) }

// takeIllegible pauses the workflow if a message that it has cannot be read. It
// reports false if there is no reason to.
func (a *advance) takeIllegible(ctx context.Context) (done worked, took bool) {
	if a.job.run != nil || a.cursor.Phase == statemachine.Held || a.cursor.Phase == statemachine.Ended {
		return worked{}, false // it will come by here again before it needs the message
	}
	for _, m := range a.inbox {
		if !illegible(m) {
			continue
		}
		err := codecErrorOf("message "+m.Name+" of "+ofWorkflow(a.job.id), m.Payload)
		order := Order{Verb: Pause, Actor: "its worker", Reason: err.Error()}
		refused, failed := a.obey(ctx, order, statemachine.Asked{Counted: a.job.due && a.cursor.Mark.Attempt > 0})
		switch {
		case failed != nil:
			return a.fail(failed), true
		case refused == "":
			a.warnUnread(err)
			return a.finish(ctx), true
		}
		return worked{}, false
	}
	return worked{}, false
}

// warnUnread logs what holds nothing of the user's.
func (a *advance) warnUnread(err error) {
	a.shell.log.Warn("a value cannot be decoded, pausing the workflow", "workflow", a.job.id, "error", err)
}

// heldUnread pauses a workflow of which only what is no payload can be read.
func (a *advance) heldUnread() worked {
	j, c := a.job, a.job.cursor
	a.warnUnread(j.unread.err)
	p := store.Place{
		Status: store.Held, State: string(c.State), Mark: store.Mark(c.Mark), Awaits: c.Awaits, Pivoted: c.Pivoted,
		Cursor: j.unread.cursor, Error: c.Reason,
	}
	if c.Phase != statemachine.Held {
		s := sealed{Cursor: j.unread.cursor, Error: []byte(c.Reason), From: c.Phase}
		if isCodedText(c.Reason) {
			s.Error = codedOfText(c.Reason)
		}
		if c.Phase == statemachine.Waiting && !j.wakeAt.IsZero() {
			s.Alarm = j.wakeAt.UnixMicro()
		}
		if j.due && p.Mark.Attempt > 0 {
			p.Mark.Attempt-- // it was counted, and has not begun
		}
		p.Cursor, p.Error = s.encode(), storable("paused by its worker: "+j.unread.err.Error())
		c.Phase, c.Mark, c.Reason = statemachine.Held, statemachine.Mark(p.Mark), p.Error
	}
	t := store.Transition{Guard: store.Guard{ID: j.id, Revision: j.rev}, Place: p, Release: true, Seen: j.unseen}
	return worked{cursor: c, transition: t, stuck: true}
}

// leftUnread returns the ids of messages that cannot be read and that the workflow is
// to be paused for when it is looked at next: they stay fresh, so that it is.
func (a *advance) leftUnread() (ids []string) {
	if a.cursor.Phase == statemachine.Held {
		return nil
	}
	for _, m := range a.inbox {
		if illegible(m) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
