package statemachine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// script reads a fuzzer's bytes as a story: what happens next, with what.
type script struct{ bytes []byte }

func (s *script) byte() byte {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return b
}

func pickOne[T any](s *script, of ...T) T { return of[int(s.byte())%len(of)] }

func (s *script) payload() []byte {
	return pickOne(s, []byte(`"id"`), []byte("1"), []byte("true"), []byte("null"), []byte(`{"a":[]}`), []byte("{"), []byte("\xff\x00"), nil)
}

func (s *script) event() Event {
	pause := pickOne(s, nil, new(time.Duration))
	switch s.byte() % 10 {
	case 0:
		return Started{}
	case 1:
		return Resumed{}
	case 2:
		return StepFailed{Error: "lost", Rejected: s.byte()&1 > 0, NoEffect: s.byte()&1 > 0, Final: s.byte()&1 > 0, Pause: pause}
	case 3:
		return Interrupted{}
	case 4:
		return TimerFired{}
	case 5:
		return Signalled{pickOne(s, "approval", "answer", "direction", ""), s.payload()}
	case 6:
		return CancelAsked{Reason: "enough", Begun: s.byte()&1 > 0}
	case 7:
		return Unstorable{Error: "too deep"}
	case 8:
		return pickOne[Event](s, nil, fmtEvent{})
	default:
		return StepDone{s.payload()}
	}
}

// forge changes one field of a cursor to what no machine would put there.
func (s *script) forge(c Cursor) Cursor {
	states := []State{"", reserving, charging, reviewing, approving, shipping, delivered, cancelled, "start", "work", "nowhere"}
	steps := []string{"", "reserve-stock", "release-stock", "charge-card", "refund-card", "print-label", "work", "unwork", "nothing"}
	numbers := []int{0, 1, 2, 5, 6, -1, -1 << 62, 1<<62 - 1}
	switch s.byte() % 12 {
	case 0:
		c.State = pickOne(s, states...)
	case 1:
		c.Phase = Phase(s.byte() % 8)
	case 2:
		c.Data = s.payload()
	case 3:
		c.Mark = Mark{pickOne(s, steps...), pickOne(s, numbers...), pickOne(s, numbers...), pickOne(s, numbers...), pickOne(s, numbers...)}
	case 4:
		c.Awaits = pickOne(s, "", "approval", "nothing")
	case 5:
		c.Pivoted = !c.Pivoted
	case 6:
		c.End, c.Cause = pickOne(s, states...), pickOne(s, "", Refused, "boredom")
	case 7:
		c.From = Phase(s.byte() % 8)
	case 8:
		c.Groups = map[State]int{pickOne(s, states...): pickOne(s, numbers...)}
	case 9:
		past := Past{pickOne(s, steps...), pickOne(s, numbers...), int(s.byte() % 3), Outcome(s.byte() % 5), s.payload(), s.payload()}
		c.Past = append(slices.Clone(c.Past), past)
	case 10:
		c.PastKnown = !c.PastKnown
	default:
		c.ID = string(s.payload())
	}
	return c
}

// FuzzNext tells workflows any story. Next never panics, always gives the same
// answer, never changes what it was given, and never loses an effect; and as
// long as nobody forges the cursor, it stays sound.
func FuzzNext(f *testing.F) {
	machines := fuzzMachines(f)
	f.Add(byte(0), false, []byte{0, 9, 0, 0, 9, 0, 0, 9, 0, 0, 9, 0})
	f.Add(byte(1), false, []byte{0, 9, 0, 0, 9, 0, 0, 6, 0, 0, 9, 0, 0, 9, 0, 0, 9, 0})
	f.Add(byte(2), false, []byte{0, 2, 0, 0, 0, 0, 4, 0, 9, 1, 0, 5, 1, 1})
	f.Add(byte(3), true, []byte{3, 1, 2, 3, 4, 5, 9, 1, 1, 1, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, which byte, forged bool, story []byte) {
		tellAll(t, machines[int(which)%len(machines)], forged, story[:min(len(story), 400)])
	})
}

// TestRandomStories is what FuzzNext does, without a fuzzer.
func TestRandomStories(t *testing.T) {
	t.Parallel()
	chance := rand.NewChaCha8([32]byte{})
	story := make([]byte, 200)
	for _, m := range fuzzMachines(t) {
		for i := range 25 {
			_, err := chance.Read(story)
			require.NoError(t, err)
			tellAll(t, m, i%2 == 0, story)
		}
	}
}

func tellAll(t testing.TB, m *Machine, forged bool, story []byte) {
	s := &script{story}
	w := world{c: Cursor{ID: "w", Data: []byte(`{"cents":200000}`), PastKnown: true}}
	for len(s.bytes) > 0 {
		if forged && s.byte()%4 == 0 {
			w.c = s.forge(w.c)
		}
		w = tell(t, m, w, s.event(), forged)
	}
}

// tell gives a workflow its next event and checks the answer.
func tell(t testing.TB, m *Machine, w world, e Event, forged bool) world {
	c, cmds, err := next(t, m, w.c, e)
	if err != nil {
		require.Equal(t, text(w.c), text(c))
		require.Empty(t, cmds)
		requireTyped(t, err)
		return w
	}
	to := world{c, slices.Clone(w.records)}
	for i, cmd := range cmds {
		switch cmd := cmd.(type) {
		case Record:
			to.records = append(to.records, cmd)
		case RunStep:
			require.Equal(t, cmd.Spec.Name, c.Mark.Step)
			require.Equal(t, len(cmds)-1, i)
		case Wake:
			require.GreaterOrEqual(t, cmd.After, time.Duration(0))
			require.Equal(t, len(cmds)-1, i)
		}
	}
	if !forged && c.Phase != 0 {
		requireSound(t, m, to)
		requireStep(t, w, to)
	}
	return to
}

// requireTyped proves that the engine can tell what to do about an error.
func requireTyped(t testing.TB, err error) {
	_, code := errors.AsType[*CodeError](err)
	_, payload := errors.AsType[*PayloadError](err)
	require.True(t, code || payload || errors.Is(err, ErrUnexpected) || errors.Is(err, ErrNeedsPast), "%v", err)
}

func fuzzMachines(t testing.TB) []*Machine {
	work := step.Call("work", call[int, int]).With(twice).Undo(step.UndoCall("unwork", undoCall[int, int]).With(twice))
	loop := trips(States[trip]{
		"start":  Do(work, trip.times, (*trip).count).Then("enough"),
		"enough": If(trip.twice, "ask", "start"),
		"ask":    Await(direction, (*trip).went).Within(time.Minute, "start").Then("sort"),
	})
	return []*Machine{compile(t, orderSaga()), compile(t, loop), compile(t, brittleSaga()), compile(t, failing())}
}

// failing is a workflow whose failure is an end in itself.
func failing() Definition[trip] {
	d := trips(States[trip]{
		"start": Sleep(trip.pause).Then("work"),
		"work":  Do(step.Call("work", call[int, int]).With(twice).NoUndo("harmless"), trip.times, (*trip).count).Then("sort"),
	})
	d.OnFailure = "lost"
	return d
}
