package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var readTests = []test{
	{"GetNotFound", getNotFound},
	{"OddIDs", oddIDs},
	{"Ended", readEnded},
	{"HistoryAndInboxOfNobody", readNothing},
	{"HistoryInOrderOfCompletion", historyOrder},
	{"ListPages", listPages},
	{"ListOrder", listOrder},
	{"ListByDefinitionAndStatus", listFilters},
	{"ListWithoutData", listNoData},
	{"Now", readNow},
}

func getNotFound(e *env) {
	_, err := e.st.Get(e.ctx, "nowhere")
	require.ErrorIs(e, err, store.ErrNotFound)
	require.ErrorContains(e, err, `"nowhere"`)
}

// oddIDs: an id is bytes; nothing in it is special to the database.
func oddIDs(e *env) {
	w := e.worker()
	for _, id := range []string{`o'Neil"; DROP TABLE workflow; --`, "order-9527/PAY", "日本語", "%_*?$1", `\`, "a,b{c}", `["x"]`} {
		wf := e.startAs(w, id, pending(charge, never))
		require.Equal(e, id, wf.ID)
		e.send(id, id)
		require.Equal(e, []string{id}, e.inbox(id))
		ps, err := e.st.ReadBack(e.ctx, []string{id})
		require.NoError(e, err)
		require.Len(e, ps, 1)
		cs, err := e.st.Load(e.ctx, w, []string{id})
		require.NoError(e, err)
		require.Len(e, cs, 1)
		e.apply(w, wf, completed, func(t *store.Transition) {
			t.Consumed = []store.Consumed{{MessageID: id, Answer: id}}
			t.Steps = []store.StepRecord{done("charge", 1)}
		})
		require.Empty(e, e.inbox(id))
		require.Len(e, e.history(id), 1)
		ended, missing, err := e.st.Ended(e.ctx, []string{id})
		require.NoError(e, err)
		require.Empty(e, missing)
		require.Len(e, ended, 1)
	}
}

func readEnded(e *env) {
	w := e.worker()
	p := completed
	p.Data = []byte("result")
	want := []store.Workflow{e.apply(w, e.startAs(w, "a", pending(charge, never)), p)}
	p = store.Place{Status: store.Compensated, State: "Cancelled", Error: "declined"}
	want = append(want, e.apply(w, e.startAs(w, "b", pending(charge, never)), p))
	e.start("c", waiting(never))
	e.start("d", store.Place{Status: store.Held, State: "H"})
	ended, missing, err := e.st.Ended(e.ctx, []string{"d", "nowhere", "c", "b", "a"})
	require.NoError(e, err)
	require.ElementsMatch(e, want, ended)
	require.Equal(e, []string{"nowhere"}, missing)
	ended, missing, err = e.st.Ended(e.ctx, nil)
	require.NoError(e, err)
	require.Empty(e, ended)
	require.Empty(e, missing)
}

func readNothing(e *env) {
	require.Empty(e, e.history("nowhere"))
	require.Empty(e, e.inbox("nowhere"))
}

// historyOrder: the order is that of the transitions, not of the names.
func historyOrder(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	names := []string{"c", "a", "d", "b"}
	for _, name := range names {
		wf = e.apply(w, wf, pending(charge, never), func(t *store.Transition) {
			t.Steps = []store.StepRecord{done(name, 1)}
		})
	}
	var got []string
	for _, r := range e.history("a") {
		got = append(got, r.Step)
	}
	require.Equal(e, names, got)
}

func (e *env) list(q store.Query) []string {
	ws, err := e.st.List(e.ctx, q)
	require.NoError(e, err)
	list := make([]string, len(ws))
	for i, w := range ws {
		list[i] = w.ID
	}
	return list
}

func listPages(e *env) {
	want := ids(105)
	for i := len(want) - 1; i >= 0; i-- {
		e.start(want[i], waiting(never))
	}
	require.Equal(e, want[:100], e.list(store.Query{}), "100 is the default")
	require.Equal(e, want[100:], e.list(store.Query{After: want[99]}))
	require.Equal(e, want, e.list(store.Query{Limit: 1000}))
	require.Equal(e, want[10:13], e.list(store.Query{Limit: 3, After: want[9]}))
	require.Empty(e, e.list(store.Query{After: want[104]}))
}

// listOrder: ids are ordered by their bytes, in every store and every locale.
func listOrder(e *env) {
	want := []string{"-", "A", "B", "Z", "_", "a", "a b", "a-", "aB", "aa", "b", "ä", "日"}
	for i := len(want) - 1; i >= 0; i-- {
		e.start(want[i], waiting(never))
	}
	require.Equal(e, want, e.list(store.Query{}))
	require.Equal(e, want[4:], e.list(store.Query{After: "Z"}))
}

func listFilters(e *env) {
	w := e.worker()
	for _, name := range []string{"order", "refund"} {
		for _, s := range []store.Status{store.Pending, store.Waiting, store.Completed} {
			n := store.New{ID: name + "-" + string(s), Definition: store.Def{Name: name, Version: 1}, Owner: w, Place: store.Place{Status: s, State: "S"}}
			_, err := e.st.Start(e.ctx, []store.New{n})
			require.NoError(e, err)
		}
	}
	require.Equal(e, []string{"refund-COMPLETED", "refund-PENDING", "refund-WAITING"}, e.list(store.Query{Definition: "refund"}))
	require.Equal(e, []string{"order-COMPLETED", "order-WAITING"},
		e.list(store.Query{Definition: "order", Statuses: []store.Status{store.Waiting, store.Completed}}))
	require.Equal(e, []string{"order-PENDING", "refund-PENDING"}, e.list(store.Query{Statuses: []store.Status{store.Pending}}))
	require.Empty(e, e.list(store.Query{Definition: "other"}))
	require.Empty(e, e.list(store.Query{Statuses: []store.Status{store.Held}}))
}

func listNoData(e *env) {
	p := waiting(never)
	p.Data, p.Cursor = []byte("data"), []byte("cursor")
	want := e.start("a", p)
	ws, err := e.st.List(e.ctx, store.Query{})
	require.NoError(e, err)
	want.Data = nil
	require.Len(e, ws, 1)
	ws[0].Cursor = want.Cursor // a list may leave it out too
	require.Equal(e, want, ws[0])
}

func readNow(e *env) {
	before := e.start("a", waiting(never))
	at := e.time()
	require.False(e, at.Before(before.CreatedAt), "it is the clock that rows are written by")
	require.False(e, e.start("b", waiting(never)).CreatedAt.Before(at))
}
