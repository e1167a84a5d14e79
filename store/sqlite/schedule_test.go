package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// A slot whose workflow is refused takes everything with it that the same change
// has written before.
func TestChangeScheduleIsAtomic(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	require.NoError(t, err)
	defer st.Close()
	_, err = st.DB().Exec(`
		CREATE TRIGGER refuse BEFORE INSERT ON workflow WHEN NEW.id = 'nightly/2'
		BEGIN SELECT raise(ABORT, 'not this one'); END`)
	require.NoError(t, err)
	require.NoError(t, st.CreateSchedule(t.Context(), store.Schedule{Name: "nightly", Definition: "order", Zone: "UTC", Spec: []byte("{}")}))
	before, err := st.GetSchedule(t.Context(), "nightly")
	require.NoError(t, err)

	slot := func(nominal int64, id string) store.SlotChange {
		return store.SlotChange{
			Slot:  store.Slot{Nominal: time.Unix(nominal, 0), Status: store.SlotFired, Origin: store.SlotOfCalendar, WorkflowID: id},
			Start: &store.New{ID: id, Definition: store.Def{Name: "order", Version: 1}, Place: store.Place{Status: store.Waiting}},
		}
	}
	_, err = st.ChangeSchedule(t.Context(), store.ScheduleChange{
		Name: "nightly", Revision: 1, Slots: []store.SlotChange{slot(1, "nightly/1"), slot(2, "nightly/2")},
	})
	require.ErrorContains(t, err, "not this one")
	after, err := st.GetSchedule(t.Context(), "nightly")
	require.NoError(t, err)
	require.Equal(t, before, after)
	slots, err := st.Slots(t.Context(), "nightly", time.Time{}, 10)
	require.NoError(t, err)
	require.Empty(t, slots)
	_, err = st.Get(t.Context(), "nightly/1")
	require.ErrorIs(t, err, store.ErrNotFound)
}
