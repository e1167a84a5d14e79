package sqlite

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// TestConsumedOnce: the first answer to a request stays, whoever consumes it
// again.
func TestConsumedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	st := openInside(t)
	w := store.WorkerID{1}
	owned(t, st, w, "a")
	_, err := st.Send(ctx, []store.Message{{WorkflowID: "a", ID: "m", Kind: store.MessageCancel}})
	require.NoError(t, err)
	for i, answer := range []string{"accepted", "too late"} {
		_, err = st.Commit(ctx, w, []store.Transition{{
			Guard: store.Guard{ID: "a", Revision: int64(i + 1)}, Place: store.Place{Status: store.Pending, State: "S"},
			Consumed: []store.Consumed{{MessageID: "m", Answer: answer}},
		}})
		require.NoError(t, err)
		var got string
		require.NoError(t, st.DB().QueryRow("SELECT answer FROM inbox").Scan(&got))
		require.Equal(t, "accepted", got)
	}
}

// TestSweepTidies: messages to ended workflows stop being fresh, and workers
// that were buried more than an hour ago are removed; all others stay.
func TestSweepTidies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var late atomic.Int64
	st := openInside(t, WithClock(func() time.Time { return time.Now().Add(time.Duration(late.Load())) }))
	w := store.WorkerID{1}
	for _, id := range []string{"ended", "going-on"} {
		owned(t, st, w, id)
		_, err := st.Send(ctx, []store.Message{{WorkflowID: id, ID: "m", Kind: store.MessageSignal}})
		require.NoError(t, err)
	}
	_, err := st.Commit(ctx, w, []store.Transition{{Guard: store.Guard{ID: "ended", Revision: 1}, Place: store.Place{Status: store.Completed}}})
	require.NoError(t, err)
	require.NoError(t, st.Join(ctx, store.Worker{ID: w}, 24*time.Hour))
	for i, lease := range []time.Duration{time.Microsecond, 90 * time.Minute} {
		require.NoError(t, st.Join(ctx, store.Worker{ID: store.WorkerID{byte(2 + i)}}, lease))
	}
	count := func(query string) (n int) {
		require.NoError(t, st.DB().QueryRow(query).Scan(&n))
		return n
	}
	sweep := func() {
		_, err := st.Bury(ctx)
		require.NoError(t, err)
		_, err = st.Takeover(ctx, time.Second, 10)
		require.NoError(t, err)
	}
	sweep()
	require.Equal(t, 1, count("SELECT count(*) FROM inbox WHERE fresh"))
	require.Equal(t, 1, count("SELECT count(*) FROM inbox WHERE fresh AND workflow_id = 'going-on'"))
	require.Equal(t, 3, count("SELECT count(*) FROM worker"), "it was buried just now")

	late.Store(int64(2 * time.Hour))
	ws, err := st.Workers(ctx)
	require.NoError(t, err)
	require.Len(t, ws, 2, "the one that was buried two hours ago is not told of")
	sweep()
	require.Equal(t, 2, count("SELECT count(*) FROM worker"))
	sweep()
	require.Equal(t, 2, count("SELECT count(*) FROM worker"), "one lives, the other was buried just now")
}
