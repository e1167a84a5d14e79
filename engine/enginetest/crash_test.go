package enginetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// count is a workflow of one call, whose other side counts calls, or keys.
func count(t *testing.T, honoursKeys bool) Play {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	var calls atomic.Int32
	body := func(context.Context, step.Key, int) (int, error) {
		if honoursKeys {
			calls.Store(1)
		} else {
			calls.Add(1)
		}
		return 1, nil
	}
	var flow *engine.Workflow[int]
	return Play{
		Store: st,
		Register: func(e *engine.Engine) (err error) {
			flow, err = engine.Register(e, statemachine.Definition[int]{
				Name: "count", Version: 1, Start: "counting", OnFailure: "bad",
				States: statemachine.States[int]{"counting": statemachine.Do(step.Call("count", body).NoUndo("it is a number"), func(i int) int { return i }, nil).Then("good")},
				Ends:   statemachine.Ends{"good": statemachine.Completed, "bad": statemachine.Failed},
			})
			return err
		},
		Drive: func(ctx context.Context, _ *engine.Engine, _ store.Store) error {
			if _, err := flow.Start(ctx, "w", 1); err != nil {
				return err
			}
			_, err := flow.Wait(ctx, "w")
			return err
		},
		Effects: func(context.Context) (string, error) { return fmt.Sprint(calls.Load()), nil },
	}
}

// TestACrashIsSeen: without keys a crash behind a body doubles its effect, and in
// front of it does not; with keys neither does. So the comparison can fail.
func TestACrashIsSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys  bool
		point string
		want  string
	}{{false, AfterBody, "2"}, {false, BeforeBody, "1"}, {true, AfterBody, "1"}} {
		got, crashed := perform(t, count(t, c.keys), c.point+" count #1")
		require.True(t, crashed)
		require.Equal(t, c.want, got, c.point)
	}
	_, crashed := perform(t, count(t, true), "before body nobody #1")
	require.False(t, crashed)
}

// TestEveryPointOnce: the points are those that a worker comes to, each once.
func TestEveryPointOnce(t *testing.T) {
	t.Parallel()
	effects, points := rehearse(t, func(t *testing.T) Play { return count(t, true) })
	require.Equal(t, "1", effects)
	require.Subset(t, points, []string{
		"before start #1", "after start #1", "before join #1", "after join #1",
		"before body count #1", "after body count #1", "before commit #1", "after commit #1",
	})
	seen := map[string]bool{}
	for _, p := range points {
		require.False(t, seen[p], p)
		seen[p] = true
	}
	CrashEverywhere(t, func(t *testing.T) Play { return count(t, true) })
}

// TestDiagram: a drawing is written when that is asked for, and compared else.
func TestDiagram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drawing")
	t.Setenv(updateEnv, "1")
	Diagram(t, "a", file)
	require.NoError(t, os.Unsetenv(updateEnv))
	Diagram(t, "a", file)
	quiet := &silent{TB: t}
	Diagram(quiet, "b", file)
	require.Equal(t, 1, quiet.errors)
}

// silent counts errors in place of failing.
type silent struct {
	testing.TB
	errors int
}

func (s *silent) Errorf(string, ...any) { s.errors++ }
