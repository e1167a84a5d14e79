package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Many workflows are freed by one order, which is a workflow itself: its worker is
// stopped in the middle, and no target is given the order twice.
func TestBulk(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("parcel", "vote")
		const many = 230
		n := w.client()
		bulk, err := engine.RegisterBulk(n.Engine)
		require.NoError(w, err)
		n.run()
		for i := range many {
			id := fmt.Sprintf("w%03d", i)
			w.ledger.next(id, "send", failsBefore, failsBefore, failsBefore)
			n.start("parcel", id, trip{Amount: 1})
		}
		for i := range many {
			n.held(fmt.Sprintf("w%03d", i))
		}
		n.start("vote", "vote", trip{Quorum: 1})
		now, err := w.st.Now(w.ctx())
		require.NoError(w, err)
		q, err := engine.ParseQuery("type:parcel status:held since:1h state:sending", now)
		require.NoError(w, err)
		count, first, err := n.CountSelected(w.ctx(), q)
		require.NoError(w, err)
		require.Equal(w, many, count)
		require.Equal(w, "w000", first[0])

		_, err = bulk.Start(w.ctx(), "bulk-1", engine.Bulk{Query: q, Verb: engine.Retry, Actor: "ann", Reason: "the courier is back"})
		require.NoError(w, err)
		n.stop()
		n.run()
		end, err := bulk.Wait(w.ctx(), "bulk-1")
		require.NoError(w, err)
		require.Equal(w, store.Completed, end.Status)
		require.Equal(w, []int{many, 0}, []int{end.Data.Done, end.Data.Refused})
		for i := range many {
			id := fmt.Sprintf("w%03d", i)
			n.ends(id, store.Completed)
			require.Equal(w, 4, w.ledger.calls(id, "send"))
			audit, err := n.Audit(w.ctx(), id)
			require.NoError(w, err)
			require.Len(w, audit, 1)
			require.Equal(w, "the courier is back", audit[0].Reason)
		}

		limited, err := engine.ParseQuery("status:waiting,completed", now)
		require.NoError(w, err)
		_, err = bulk.Start(w.ctx(), "bulk-2", engine.Bulk{Query: limited, Verb: engine.Cancel, Actor: "ann", Limit: 5})
		require.NoError(w, err)
		end, err = bulk.Wait(w.ctx(), "bulk-2")
		require.NoError(w, err)
		require.Equal(w, []int{1, many}, []int{end.Data.Done, end.Data.Refused}, "what has ended refuses")
		require.Contains(w, end.Data.Last, "has ended")
		final := n.ends("vote", store.Compensated)
		require.Equal(w, statemachine.Cancelled, final.Cause)
	})
}

// Queries that cannot be meant are refused by name.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for text, fault := range map[string]string{
		"":                        "it is empty",
		"held":                    `"held" is not field:value`,
		"status:":                 `"status:" is not field:value`,
		"status:held status:done": `"status" comes twice`,
		"status:stuck":            `there is no status "stuck"`,
		"since:yesterday":         "since:yesterday is no time",
		"since:-2h":               "since:-2h is no time",
		"colour:red":              `there is no field "colour"`,
	} {
		_, err := engine.ParseQuery(text, now)
		require.ErrorIs(t, err, engine.ErrBadQuery, text)
		require.ErrorContains(t, err, fault)
	}
	q, err := engine.ParseQuery("type:order status:held,WAITING since:2h state:paying", now)
	require.NoError(t, err)
	require.Equal(t, engine.Query{Definition: "order", Statuses: []store.Status{store.Held, store.Waiting}, State: "paying", Since: now.Add(-2 * time.Hour)}, q)
}
