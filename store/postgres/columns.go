package postgres

import (
	"github.com/pawlhq/pawl/store"
)

// places are the columns of many store.Place, as arrays.
type places struct {
	status, state, step             []string
	grp, attempt, failures, crashes []int32
	awaits                          []string
	wakes                           []int32
	wakeUS                          []int64
	data, cursor                    [][]byte
	errors                          []string
	pivoted, ended                  []bool
}

// newPlaces makes room for n places.
func newPlaces(n int) *places {
	return &places{
		status: make([]string, n), state: make([]string, n), step: make([]string, n),
		grp: make([]int32, n), attempt: make([]int32, n), failures: make([]int32, n), crashes: make([]int32, n),
		awaits: make([]string, n), wakes: make([]int32, n), wakeUS: make([]int64, n),
		data: make([][]byte, n), cursor: make([][]byte, n), errors: make([]string, n),
		pivoted: make([]bool, n), ended: make([]bool, n),
	}
}

// set fills in the place of row i.
func (c *places) set(i int, p *store.Place) {
	c.status[i], c.state[i], c.step[i] = string(p.Status), p.State, p.Mark.Step
	c.grp[i], c.attempt[i] = int32(p.Mark.Group), int32(p.Mark.Attempt)
	c.failures[i], c.crashes[i] = int32(p.Mark.Failures), int32(p.Mark.Crashes)
	c.awaits[i] = p.Awaits
	c.wakes[i], c.wakeUS[i] = int32(p.Wake.Kind), p.Wake.After.Microseconds()
	if p.Wake.Kind == store.WakeAt {
		c.wakeUS[i] = p.Wake.At.UnixMicro()
	}
	c.data[i], c.cursor[i], c.errors[i] = p.Data, p.Cursor, text(p.Error)
	c.pivoted[i], c.ended[i] = p.Pivoted, p.Status.Ended()
}

// args returns the columns in the order that the statements take them.
func (c *places) args() []any {
	return []any{
		c.status, c.state, c.step, c.grp, c.attempt, c.failures, c.crashes,
		c.awaits, c.wakes, c.wakeUS, c.data, c.cursor, c.errors, c.pivoted, c.ended,
	}
}

// recordedSteps are the columns of the steps that ended, as arrays. n is the
// number of the transition, from 1.
type recordedSteps struct {
	n             []int64
	step          []string
	grp, item     []int32
	status        []string
	attempt       []int32
	input, output [][]byte
	errors        []string
	tookUS        []int64
}

// add appends one step of transition n.
func (c *recordedSteps) add(n int, s *store.StepRecord) {
	c.n = append(c.n, int64(n))
	c.step, c.grp, c.item = append(c.step, s.Step), append(c.grp, int32(s.Group)), append(c.item, int32(s.Item))
	c.status, c.attempt = append(c.status, string(s.Status)), append(c.attempt, int32(s.Attempt))
	c.input, c.output = append(c.input, s.Input), append(c.output, s.Output)
	c.errors, c.tookUS = append(c.errors, text(s.Error)), append(c.tookUS, s.Took.Microseconds())
}

// args returns the columns in the order that commitSQL takes them.
func (c *recordedSteps) args() []any {
	return []any{
		orEmpty(c.n), orEmpty(c.step), orEmpty(c.grp), orEmpty(c.item), orEmpty(c.status), orEmpty(c.attempt),
		orEmpty(c.input), orEmpty(c.output), orEmpty(c.errors), orEmpty(c.tookUS),
	}
}

// takenMail are the columns of the messages that a transition saw or
// consumed, as arrays.
type takenMail struct {
	n         []int64
	messageID []string
	consumed  []bool
	answer    []string
}

// add appends the messages of transition n. One that is both seen and consumed
// is consumed.
func (c *takenMail) add(n int, t *store.Transition) {
	for _, m := range t.Consumed {
		c.put(n, m.MessageID, true, m.Answer)
	}
	for _, id := range t.Seen {
		if !consumes(t, id) {
			c.put(n, id, false, "")
		}
	}
}

// put appends one message.
func (c *takenMail) put(n int, id string, consumed bool, answer string) {
	c.n, c.messageID = append(c.n, int64(n)), append(c.messageID, id)
	c.consumed, c.answer = append(c.consumed, consumed), append(c.answer, text(answer))
}

// consumes reports whether the transition consumes a message.
func consumes(t *store.Transition, id string) bool {
	for i := range t.Consumed {
		if t.Consumed[i].MessageID == id {
			return true
		}
	}
	return false
}

// args returns the columns in the order that commitSQL takes them.
func (c *takenMail) args() []any {
	return []any{orEmpty(c.n), orEmpty(c.messageID), orEmpty(c.consumed), orEmpty(c.answer)}
}

// orEmpty returns an empty slice for a nil one, which would be NULL.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
