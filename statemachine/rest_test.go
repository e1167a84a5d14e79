package statemachine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRestIsNothingMostOfTheTime(t *testing.T) {
	t.Parallel()
	p := begin(t, compile(t, orderSaga()), big)
	require.Nil(t, p.c.Rest())
	p.done(`"s"`, `"p"`)
	p.take(Signalled{Name: "approval", Payload: []byte("true")})
	p.take(StepFailed{Error: "lost"})
	require.Nil(t, p.c.Rest())
	require.Nil(t, Cursor{Groups: map[State]int{}}.Rest())
}

func TestRestRoundTrip(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]Cursor{
		`{"end":"cancelled","cause":"refused"}`:                   {End: cancelled, Cause: Refused},
		`{"end":"delivered"}`:                                     {End: delivered},
		`{"from":"rolling back","why":"no"}`:                      {From: RollingBack, Why: "no"},
		`{"why":"no"}`:                                            {Why: "no"},
		`{"groups":{"charging":2,"shipping":1}}`:                  {Groups: map[State]int{shipping: 1, charging: 2}},
		`{"end":"x","cause":"timed out","groups":{"charging":3}}`: {End: "x", Cause: TimedOut, Groups: map[State]int{charging: 3}},
	} {
		require.Equal(t, text, string(c.Rest()))
		back := Cursor{State: charging, Mark: first("charge-card")}
		require.NoError(t, back.SetRest([]byte(text)))
		c.State, c.Mark = charging, first("charge-card")
		require.Equal(t, c, back)
	}
}

func TestSetRestForgetsWhatWasThere(t *testing.T) {
	t.Parallel()
	for _, nothing := range []string{"", "{}", `{"a field of a later version":1}`} {
		c := Cursor{State: charging, End: cancelled, Cause: Refused, From: Running, Why: "no", Groups: map[State]int{charging: 2}}
		require.NoError(t, c.SetRest([]byte(nothing)))
		require.Equal(t, Cursor{State: charging}, c)
	}
}

func TestSetRestRefusesWhatIsMalformed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{", "[]", `"x"`, `{"end":1}`, `{"from":1}`, `{"from":"asleep"}`, `{"from":""}`, `{"groups":{"charging":0}}`, `{"groups":{"charging":-1}}`, `{"groups":[1]}`,
	} {
		before := Cursor{State: charging, End: cancelled}
		c := before
		require.ErrorIs(t, c.SetRest([]byte(text)), ErrBadRest, text)
		require.Equal(t, before, c)
	}
}
