package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// world is a workflow together with what its database has recorded of it.
type world struct {
	c       Cursor
	records []Record
}

// key tells worlds apart. The number of attempts counts as far as it matters.
func (w world) key() string {
	w.c.Mark.Attempt = min(w.c.Mark.Attempt, 2)
	w.c.Reason, w.c.Why = "", ""
	w.records = slices.Clone(w.records)
	for i := range w.records {
		w.records[i].Attempt, w.records[i].Error = 0, ""
	}
	return fmt.Sprintf("%s %+v", text(w.c), w.records)
}

// events is everything that can happen to a workflow, wherever it stands.
func events() []Event {
	return []Event{
		Resumed{},
		StepDone{Out: []byte(`"id"`)},
		StepFailed{Error: "lost"},
		StepFailed{Error: "no", Rejected: true},
		StepFailed{Error: "gone", NoEffect: true},
		StepFailed{Error: "never", Final: true},
		Interrupted{},
		TimerFired{},
		Signalled{Name: "approval", Payload: []byte("true")},
		Signalled{Name: "approval", Payload: []byte("false")},
		CancelAsked{Reason: "changed my mind"},
		CancelAsked{Reason: "changed my mind", Begun: true},
		Unstorable{Error: "too deep"},
	}
}

// kindly is true for the events of a world without failures: by those alone a
// workflow that no person holds must come to its end.
func kindly(e Event) bool {
	switch e.(type) {
	case Resumed, StepDone, TimerFired:
		return true
	}
	return false
}

// crash is what a dead process leaves: the columns, without what was in
// memory, and an attempt that a claim has counted.
func (w world) crash(t testing.TB) world {
	c := w.c
	require.NoError(t, c.SetRest(w.c.Rest()))
	c.Past, c.PastKnown = nil, false
	if c.Mark.Step != "" && c.Phase != Held {
		c.Mark.Attempt++
		c.Mark.Crashes++
	}
	return world{c, w.records}
}

// after is the world after an event, or false if it does not take it.
func (w world) after(t testing.TB, m *Machine, e Event) (world, bool) {
	c := w.c
	got, cmds, err := m.Next(c, e)
	if errors.Is(err, ErrNeedsPast) {
		c.Past, c.PastKnown = past(w.records), true
		got, cmds, err = m.Next(c, e)
	}
	if err != nil {
		if !errors.Is(err, ErrUnexpected) {
			require.NoError(t, err, "%T", e)
		}
		return w, false
	}
	to := world{got, slices.Clone(w.records)}
	for i, cmd := range cmds {
		switch cmd := cmd.(type) {
		case Record:
			to.records = append(to.records, cmd)
		case RunStep, Wake:
			if i != len(cmds)-1 {
				require.Fail(t, "not the last command", "%T", cmd)
			}
		}
	}
	return to, true
}

func past(records []Record) []Past {
	var p []Past
	for _, r := range records {
		p = append(p, Past{Step: r.Step, Group: r.Group, Item: r.Item, Outcome: r.Outcome, In: r.In, Out: r.Out})
	}
	return p
}

// TestEveryReachableWorld walks, breadth first, through everything that can
// happen to the order saga, process deaths between any two events included,
// and shows that each of the worlds is sound and can still come to an end.
func TestEveryReachableWorld(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"small order": small, "big order": big} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := explore(t, compile(t, orderSaga()), data)
			t.Logf("%d worlds, %d ends, %d held, %d moves", len(s.worlds), s.count(Ended), s.count(Held), s.moves)
			s.provesEnds(t)
		})
	}
}

// search is the graph of worlds: who can be reached from whom.
type search struct {
	worlds []world
	index  map[string]int
	from   [][]int // by kindly events only
	moves  int
}

func explore(t testing.TB, m *Machine, data string) *search {
	s := &search{index: map[string]int{}}
	begun, ok := world{c: Cursor{ID: "w", Data: []byte(data), PastKnown: true}}.after(t, m, Started{})
	require.True(t, ok)
	s.add(t, m, begun)
	for i := 0; i < len(s.worlds); i++ {
		w := s.worlds[i]
		for _, e := range events() {
			to, ok := w.after(t, m, e)
			if !ok {
				continue
			}
			requireStep(t, w, to)
			j := s.add(t, m, to)
			s.moves++
			if kindly(e) && j != i {
				s.from[j] = append(s.from[j], i)
			}
		}
		if w.c.Mark.Crashes < MaxCrashes {
			s.add(t, m, w.crash(t))
		}
	}
	return s
}

// add returns the world's number, and gives it one if it is new.
func (s *search) add(t testing.TB, m *Machine, w world) int {
	k := w.key()
	i, ok := s.index[k]
	if !ok {
		requireSound(t, m, w)
		i = len(s.worlds)
		s.worlds, s.from = append(s.worlds, w), append(s.from, nil)
		s.index[k] = i
	}
	return i
}

func (s *search) count(p Phase) (n int) {
	for _, w := range s.worlds {
		if w.c.Phase == p {
			n++
		}
	}
	return n
}

// provesEnds walks backwards from the ends, and from the workflows that a
// person holds, and must meet every world.
func (s *search) provesEnds(t testing.TB) {
	met := make([]bool, len(s.worlds))
	var queue []int
	for i, w := range s.worlds {
		if w.c.Phase == Ended || w.c.Phase == Held {
			met[i], queue = true, append(queue, i)
		}
	}
	require.NotEmpty(t, queue)
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range s.from[queue[0]] {
			if !met[i] {
				met[i], queue = true, append(queue, i)
			}
		}
	}
	for i, ok := range met {
		require.True(t, ok, "stuck for ever: %s", s.worlds[i].key())
	}
}

// requireStep proves what must hold of any move.
func requireStep(t testing.TB, from, to world) {
	if from.c.Phase == Ended {
		require.Equal(t, from.key(), to.key(), "an end is an end")
	}
	if from.c.Phase == RollingBack {
		require.Contains(t, []Phase{RollingBack, Held, Ended}, to.c.Phase, "no way back from a rollback")
		require.Equal(t, from.c.Cause, to.c.Cause, "no second rollback")
	}
	if from.c.Pivoted {
		require.True(t, to.c.Pivoted, "a pivot stays passed")
	}
}

// requireSound proves what must hold of each world.
func requireSound(t testing.TB, m *Machine, w world) {
	requireConsistent(t, m, w.c)
	undone := requireUndoOrder(t, m, w.records)
	if w.c.Pivoted {
		require.Zero(t, undone, "an undo behind the pivot")
		require.NotEqual(t, RollingBack, w.c.Phase, "a rollback behind the pivot")
		require.NotEqual(t, RollingBack, w.c.From, "a rollback behind the pivot")
	}
	if w.c.Phase != Ended {
		return
	}
	end, ok := m.End(w.c.End)
	require.True(t, ok)
	if end == RolledBack {
		require.Equal(t, undoable(m, w.records), undone, "each effect is undone: %+v", w.records)
	} else {
		require.Zero(t, undone, "a completed workflow keeps its effects")
	}
}

// undoable counts the recorded steps that a rollback must undo.
func undoable(m *Machine, records []Record) (n int) {
	for _, r := range records {
		if sp, _ := m.Spec(r.Step); sp.Undo != nil && r.Outcome != NoEffect {
			n++
		}
	}
	return n
}

// requireUndoOrder proves that no step is recorded twice, that each undo has
// its step before it, done or maybe done, and that undos come in the reverse
// order of their steps. It returns the number of undos.
func requireUndoOrder(t testing.TB, m *Machine, records []Record) (undos int) {
	seen := map[string]bool{}
	var open []Record // a stack of what can be undone
	for _, r := range records {
		id := fmt.Sprint(r.Step, "/", r.Item, ".", r.Group)
		require.False(t, seen[id], "%s is recorded twice", id)
		seen[id] = true
		sp, ok := m.Spec(r.Step)
		require.True(t, ok)
		switch {
		case sp.Undo != nil && r.Outcome != NoEffect:
			require.NotNil(t, r.In, "an undo needs to know what %s was asked", id)
			open = append(open, r)
		case sp.IsUndo:
			require.Equal(t, Done, r.Outcome)
			require.NotEmpty(t, open, "%s undoes nothing", id)
			last, _ := m.Spec(open[len(open)-1].Step)
			require.Equal(t, last.Undo.Name, r.Step, "out of order")
			require.Equal(t, open[len(open)-1].Group, r.Group, "out of order")
			require.Equal(t, open[len(open)-1].Item, r.Item, "out of order")
			open, undos = open[:len(open)-1], undos+1
		}
	}
	return undos
}

// requireConsistent proves what the engine relies on of each cursor.
func requireConsistent(t testing.TB, m *Machine, c Cursor) {
	sp, marked := m.Spec(c.Mark.Step)
	require.Equal(t, c.Mark.Step != "", marked, "an unknown mark: %+v", c)
	require.True(t, !marked || (c.Mark.Group >= 1 && c.Mark.Attempt >= 1), "%+v", c)
	phase := c.Phase
	if phase == Held {
		require.Contains(t, []Phase{Running, Waiting, RollingBack}, c.From)
		require.NotEmpty(t, c.Reason, "nobody knows why it is held")
		phase = c.From
	} else {
		require.Zero(t, c.From, "%+v", c)
	}
	switch phase {
	case Running:
		require.True(t, marked && !sp.IsUndo, "%+v", c)
		require.Empty(t, c.Awaits)
	case Waiting:
		require.False(t, sp.IsUndo, "%+v", c)
		require.False(t, marked && c.Awaits != "", "%+v", c)
	case RollingBack:
		require.True(t, sp.IsUndo, "%+v", c)
		requireTarget(t, m, c, RolledBack)
	case Ended:
		require.False(t, marked, "%+v", c)
		require.Equal(t, c.End, c.State)
		requireTarget(t, m, c, RolledBack, Failed)
	default:
		require.Fail(t, "no such phase", "%+v", c)
	}
	if phase != RollingBack && phase != Ended {
		require.Empty(t, c.End, "%+v", c)
		require.Empty(t, c.Cause, "%+v", c)
	}
	var back Cursor
	require.NoError(t, back.SetRest(c.Rest()))
	require.Equal(t, c.Rest(), back.Rest())
}

// requireTarget proves that a cause goes with a bad end, and with no other.
func requireTarget(t testing.TB, m *Machine, c Cursor, bad ...End) {
	end, ok := m.End(c.End)
	require.True(t, ok, "%+v", c)
	require.Equal(t, slices.Contains(bad, end), c.Cause != "", "%+v", c)
}
