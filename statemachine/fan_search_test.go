package statemachine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// family is a workflow with its branches, what is on its way between them, and
// what all of them have recorded, in the order of time.
type family struct {
	root     Cursor
	branches map[string]Cursor
	ends     []BranchEnded   // that the root has not taken up
	stops    map[string]bool // that a branch has not taken up
	records  []Record
}

func (f family) key() string {
	var b strings.Builder
	line := func(c Cursor) {
		c.Mark.Attempt = min(c.Mark.Attempt, 2)
		c.Reason, c.Why = "", ""
		fmt.Fprintln(&b, text(c))
	}
	line(f.root)
	for _, path := range slices.Sorted(maps.Keys(f.branches)) {
		line(f.branches[path])
	}
	for _, r := range f.records {
		fmt.Fprintln(&b, r.Step, r.Item, r.Outcome)
	}
	for _, e := range f.ends {
		fmt.Fprintln(&b, e.Path, e.Cause)
	}
	fmt.Fprintln(&b, f.stops)
	return b.String()
}

func (f family) clone() family {
	f.branches, f.stops = maps.Clone(f.branches), maps.Clone(f.stops)
	f.ends, f.records = slices.Clone(f.ends), slices.Clone(f.records)
	return f
}

// give is the family after an event for one of its rows, or false if the row
// does not take it. As after a crash, nothing is remembered but what is stored.
func (f family) give(t testing.TB, m *Machine, path string, e Event) (family, bool) {
	to := f.clone()
	c := f.root
	if path != "" {
		c = f.branches[path]
	}
	got, cmds, err := next(t, m, c, e)
	if errors.Is(err, ErrNeedsPast) {
		require.Empty(t, path, "a branch never needs the past")
		c.Past, c.PastKnown = past(f.records), true
		got, cmds, err = next(t, m, c, e)
	}
	if err != nil {
		require.ErrorIs(t, err, ErrUnexpected, "%T", e)
		return f, false
	}
	got.Past, got.PastKnown = nil, false
	require.NoError(t, got.SetRest(got.Rest()))
	if path == "" {
		to.root = got
	} else {
		to.branches[path] = got
	}
	for _, cmd := range cmds {
		switch cmd := cmd.(type) {
		case Record:
			to.records = append(to.records, cmd)
		case StartBranch:
			require.NotContains(t, to.branches, cmd.Cursor.Branch, "started twice")
			to.branches[cmd.Cursor.Branch] = cmd.Cursor
		case StopBranch:
			if to.branches[cmd.Path].Phase != Ended {
				to.stops[cmd.Path] = true
			}
		case EndBranch:
			delete(to.stops, path)
			to.ends = append(to.ends, cmd.Event)
		}
	}
	return to, true
}

// move is something that can happen to a family.
type move struct {
	to     family
	kindly bool // it happens by itself, sooner or later
}

// moves is all that can happen next.
func (f family) moves(t testing.TB, m *Machine) (ms []move) {
	add := func(to family, ok, kindly bool) {
		if ok {
			ms = append(ms, move{to, kindly})
		}
	}
	rows := append([]string{""}, slices.Sorted(maps.Keys(f.branches))...)
	for _, path := range rows {
		for _, e := range []Event{
			StepDone{Out: []byte(`"id"`)}, Resumed{}, TimerFired{}, Interrupted{},
			StepFailed{Error: "lost"}, StepFailed{Error: "no", Rejected: true},
		} {
			if path == "" || f.branches[path].Phase != Ended {
				to, ok := f.give(t, m, path, e)
				add(to, ok, kindly(e))
			}
		}
		if f.stops[path] {
			for _, begun := range []bool{false, true} {
				to, ok := f.give(t, m, path, CancelAsked{Reason: "stop", Begun: begun})
				add(to, ok, true)
			}
		}
	}
	to, ok := f.give(t, m, "", CancelAsked{Reason: "changed my mind", Begun: true})
	add(to, ok, false)
	for i, e := range f.ends {
		to, ok := f.give(t, m, "", e)
		if ok {
			to.ends = slices.Delete(to.ends, i, i+1)
		}
		add(to, ok, true)
	}
	return ms
}

// requireFamily proves what must hold of every family.
func requireFamily(t testing.TB, m *Machine, f family, completed func(family)) {
	undone := requireUndoOrder(t, m, f.records)
	open := len(f.ends)
	for _, b := range f.branches {
		if b.Phase != Ended {
			open++
		}
	}
	require.Equal(t, f.root.Open, open, "the root's count is that of the branches and of the news of them: %s", f.key())
	if f.root.Phase == RollingBack || f.root.Phase == Ended {
		require.Zero(t, open, "a branch goes on without its root: %s", f.key())
	}
	if f.root.Phase != Ended {
		return
	}
	if end, _ := m.End(f.root.End); end == RolledBack {
		require.Equal(t, undoable(m, f.records), undone, "each effect is undone: %+v", f.records)
		return
	}
	require.Zero(t, undone)
	completed(f)
}

// TestEveryReachableFamily walks, breadth first, through everything that can
// happen to a workflow with two branches, each of them and the root going on at
// its own time, and shows that undos come in the reverse order of completion
// whichever branch was done first, that no branch outlives its root's decision,
// and that every one of the families still comes to an end by itself.
func TestEveryReachableFamily(t *testing.T) {
	t.Parallel()
	exploreFamilies(t, compile(t, parallel()), small, func(f family) {
		require.JSONEq(t, `{"cents":4990,"payment":"id","stock":"id","label":"idid"}`, string(f.root.Data))
	})
}

func exploreFamilies(t *testing.T, m *Machine, data string, completed func(family)) {
	begun, ok := family{
		root: Cursor{ID: "w", Data: []byte(data)}, branches: map[string]Cursor{}, stops: map[string]bool{},
	}.give(t, m, "", Started{})
	require.True(t, ok)

	index, families, from := map[string]int{}, []family{}, [][]int{}
	number := func(f family) int {
		k := f.key()
		if _, ok := index[k]; !ok {
			requireFamily(t, m, f, completed)
			index[k] = len(families)
			families, from = append(families, f), append(from, nil)
		}
		return index[k]
	}
	number(begun)
	var done []int
	for i := 0; i < len(families); i++ {
		if p := families[i].root.Phase; p == Ended || p == Held {
			done = append(done, i)
		}
		for _, mv := range families[i].moves(t, m) {
			if j := number(mv.to); mv.kindly && j != i {
				from[j] = append(from[j], i)
			}
		}
	}
	t.Logf("%d families, %d of them at an end", len(families), len(done))
	met := make([]bool, len(families))
	for queue := done; len(queue) > 0; queue = queue[1:] {
		if !met[queue[0]] {
			met[queue[0]] = true
			queue = append(queue, from[queue[0]]...)
		}
	}
	for i, ok := range met {
		require.True(t, ok, "stuck for ever: %s", families[i].key())
	}
}
