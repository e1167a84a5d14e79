package statemachine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type appointment struct {
	At  time.Time `json:"at"`
	Say string    `json:"say,omitempty"`
}

func (a appointment) at() time.Time  { return a.At }
func (a *appointment) said(s string) { a.Say = s }

func appointments(n Node[appointment]) Definition[appointment] {
	return Definition[appointment]{
		Name: "appointment", Version: 1, Start: "start", OnFailure: "late",
		States: States[appointment]{"start": n},
		Ends:   Ends{"met": Completed, "late": RolledBack},
	}
}

var word = Signal[string]{Name: "word"}

const noon = `{"at":"2030-01-02T12:00:00+01:00"}`

func TestSleepUntil(t *testing.T) {
	t.Parallel()
	m := compile(t, appointments(SleepUntil(appointment.at).Then("met")))
	p := &play{t, m, Cursor{ID: "w", Data: []byte(noon)}}
	cmds := p.take(Started{})
	require.True(t, cmds[0].(Wake).At.Equal(time.Date(2030, 1, 2, 11, 0, 0, 0, time.UTC)), "as the data says, whatever the clock")
	p.at(Waiting, "start", Mark{})
	p.take(TimerFired{})
	p.at(Ended, "met", Mark{})
}

func TestAwaitUntil(t *testing.T) {
	t.Parallel()
	d := appointments(Await(word, (*appointment).said).Until(appointment.at, "late").Then("met"))
	require.Contains(t, d.Mermaid(), "start --> late: in time no more")
	m := compile(t, d)
	p := &play{t, m, Cursor{ID: "w", Data: []byte(noon)}}
	require.False(t, p.take(Started{})[0].(Wake).At.IsZero())
	waits := p.c
	p.take(Signalled{Name: "word", Payload: []byte(`"yes"`)})
	p.at(Ended, "met", Mark{})
	p.c = waits
	p.take(TimerFired{})
	p.at(Ended, "late", Mark{})
	require.Equal(t, `no signal "word" in time`, p.c.Reason)
}

// A time that was forgotten is a mistake, not the year 1.
func TestUntilTheZeroTime(t *testing.T) {
	t.Parallel()
	for _, n := range []Node[appointment]{
		SleepUntil(appointment.at).Then("met"),
		Await(word, (*appointment).said).Until(appointment.at, "late").Then("met"),
	} {
		m := compile(t, appointments(n))
		p := &play{t, m, Cursor{ID: "w", Data: []byte(`{}`)}}
		require.ErrorContains(t, p.refuses(Started{}), "zero time")
	}
	require.ErrorContains(t, appointments(SleepUntil[appointment](nil).Then("met")).Validate(), "at is nil")
}
