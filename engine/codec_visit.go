package engine

import (
	"slices"

	"github.com/pawlhq/pawl/store"
)

// visitor puts every payload of a record through turn, in either direction. Slices
// are copied first: they may be somebody else's, who sends them again. After an
// error nothing that it has visited is of any use.
type visitor struct {
	turn  func([]byte) ([]byte, error)
	reads bool // the way back
	err   error
}

func (v *visitor) bytes(b *[]byte) {
	if v.err == nil {
		*b, v.err = v.turn(*b)
	}
}

// text is for a column of text, which takes no bytes as they come.
func (v *visitor) text(s *string) {
	if *s == "" || v.err != nil {
		return
	}
	b := []byte(*s)
	if isCodedText(*s) {
		b = codedOfText(*s)
	}
	if b, v.err = v.turn(b); isCoded(b) {
		*s = textOfCoded(b)
	} else {
		*s = string(b)
	}
}

func (v *visitor) place(p *store.Place) {
	v.bytes(&p.Data)
	if len(p.Cursor) > 0 && p.Cursor[0] == sealedByte {
		// The text beside it is the engine's own: see heldUnread. It is left in the
		// clear, since whoever has the key of the rest may not have this worker's.
		p.Cursor = v.sealed(p.Cursor)
		return
	}
	v.text(&p.Error)
	v.bytes(&p.Cursor)
}

func (v *visitor) transition(t *store.Transition) {
	v.place(&t.Place)
	t.Steps = slices.Clone(t.Steps)
	for i := range t.Steps {
		v.step(&t.Steps[i])
	}
	t.Consumed = slices.Clone(t.Consumed)
	for i := range t.Consumed {
		v.text(&t.Consumed[i].Answer)
	}
	t.Starts, t.Sends = v.news(t.Starts), v.messages(t.Sends)
}

func (v *visitor) news(news []store.New) []store.New {
	news = slices.Clone(news)
	for i := range news {
		v.place(&news[i].Place)
	}
	return news
}

func (v *visitor) messages(ms []store.Message) []store.Message {
	ms = slices.Clone(ms)
	for i := range ms {
		v.message(&ms[i])
	}
	return ms
}

func (v *visitor) step(r *store.StepRecord) {
	v.bytes(&r.Input)
	v.bytes(&r.Output)
	v.text(&r.Error)
}

func (v *visitor) message(m *store.Message) { v.bytes(&m.Payload) }

func (v *visitor) request(r *store.Request) {
	v.message(&r.Message)
	v.text(&r.Answer)
}

func (v *visitor) workflow(w *store.Workflow) { v.place(&w.Place) }

func (v *visitor) claimed(c *store.Claimed) {
	v.workflow(&c.Workflow)
	c.Inbox = v.messages(c.Inbox)
}

// The rest of a schedule's spec is the calendar's, and no payload.
func (v *visitor) schedule(s *store.Schedule) {
	v.bytes(&s.Data)
	v.scheduleState(&s.ScheduleState)
}

func (v *visitor) scheduleState(s *store.ScheduleState) {
	v.text(&s.Note)
	v.text(&s.Error)
}

func (v *visitor) queue(q *store.Queue) { v.text(&q.Note) }

func (v *visitor) fork(f *store.Fork) {
	v.place(&f.Place)
	f.Steps, f.Asked = slices.Clone(f.Steps), slices.Clone(f.Asked)
	for i := range f.Steps {
		v.step(&f.Steps[i])
	}
	for i := range f.Asked {
		v.request(&f.Asked[i])
	}
}
