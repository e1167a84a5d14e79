package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var operateTests = []test{
	{"AmendsWhatNobodyOwns", amends},
	{"AmendIsGuarded", amendGuard},
	{"RequestIsTakenUpOnce", amendOnce},
	{"AmendReopensAnEnd", amendEnded},
	{"OneOfEightAmends", amendRace},
	{"RequestsOfAFamily", requests},
	{"ExpireLeavesATombstone", expires},
	{"ExpirePassesOver", expirePassesOver},
}

// request is what somebody wants of a workflow.
func request(workflow, id string) store.Request {
	return store.Request{
		Message: store.Message{WorkflowID: workflow, ID: id, Kind: store.MessageVerb, Name: "retry", Payload: []byte(`{"actor":"ann"}`)},
		Answer:  "done",
	}
}

// amend writes a transition of wf to p.
func (e *env) amend(wf store.Workflow, p store.Place, r store.Request) store.Verdict {
	v, err := e.st.Amend(e.ctx, store.Transition{Guard: store.Guard{ID: wf.ID, Revision: wf.Revision}, Place: p}, r)
	require.NoError(e, err)
	return v
}

var heldPlace = store.Place{Status: store.Held, State: "Charging", Mark: charge, Error: "failed"}

func amends(e *env) {
	e.start("root", waiting(never))
	wf := e.start("a", heldPlace)
	t := store.Transition{
		Guard: store.Guard{ID: "a", Revision: wf.Revision}, Place: pending(charge, now),
		Steps:  []store.StepRecord{{Step: "reserve", Group: 1, Status: store.StepUnknown, Attempt: 2}},
		Starts: []store.New{branch("a", "x/1/y")},
		Sends:  []store.Message{signal("root", "told")},
	}
	v, err := e.st.Amend(e.ctx, t, request("a", "r"))
	require.NoError(e, err)
	require.Equal(e, store.Applied, v)
	got := e.get("a")
	require.Equal(e, store.Pending, got.Status)
	require.Equal(e, wf.Revision+1, got.Revision)
	require.True(e, got.Owner.IsZero())
	require.Len(e, e.history("a"), 1)
	require.Equal(e, []string{"told"}, e.inbox("root"))
	require.Equal(e, store.Pending, e.get(store.BranchID("a", "x/1/y")).Status)
	require.Empty(e, e.inbox("a"), "it counts as taken up")
	rs, err := e.st.Requests(e.ctx, "a")
	require.NoError(e, err)
	require.Len(e, rs, 1)
	e.near(rs[0].SentAt, 0)
	e.near(rs[0].TakenAt, 0)
	rs[0].SentAt, rs[0].TakenAt = request("", "").SentAt, request("", "").TakenAt
	require.Equal(e, request("a", "r"), rs[0])
}

func amendGuard(e *env) {
	w := e.worker()
	owned := e.startAs(w, "owned", pending(charge, never))
	require.Equal(e, store.Lost, e.amend(owned, completed, request("owned", "r")))
	wf := e.start("a", heldPlace)
	stale := wf
	stale.Revision--
	require.Equal(e, store.Lost, e.amend(stale, completed, request("a", "r")))
	require.Equal(e, store.Lost, e.amend(store.Workflow{ID: "nowhere"}, completed, request("nowhere", "r")))
	for _, id := range []string{"owned", "a", "nowhere"} {
		rs, err := e.st.Requests(e.ctx, id)
		require.NoError(e, err)
		require.Empty(e, rs, id)
	}
	require.Equal(e, wf, e.get("a"))
}

func amendOnce(e *env) {
	wf := e.start("a", heldPlace)
	require.Equal(e, store.Applied, e.amend(wf, heldPlace, request("a", "r")))
	wf = e.get("a")
	require.Equal(e, store.Lost, e.amend(wf, completed, request("a", "r")))
	require.Equal(e, wf, e.get("a"), "nothing of it is written")

	require.Equal(e, store.SendAccepted, e.sendAs(request("a", "sent").Message))
	require.Equal(e, []string{"sent"}, e.inbox("a"))
	require.Equal(e, store.Applied, e.amend(wf, heldPlace, request("a", "sent")), "one that waits is taken up")
	require.Empty(e, e.inbox("a"))
}

func amendEnded(e *env) {
	w := e.worker()
	wf := e.apply(w, e.startAs(w, "a", pending(charge, never)), store.Place{Status: store.Compensated, State: "Cancelled"})
	require.Equal(e, store.Applied, e.amend(wf, pending(charge, now), request("a", "r")))
	got := e.get("a")
	require.True(e, got.EndedAt.IsZero())
	require.Equal(e, "a", e.claimOne(w).ID)
}

func amendRace(e *env) {
	wf := e.start("a", heldPlace)
	var applied atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			v, err := e.st.Amend(e.ctx, store.Transition{Guard: store.Guard{ID: "a", Revision: wf.Revision}, Place: heldPlace}, request("a", fmt.Sprint("r", i)))
			if err == nil && v == store.Applied {
				applied.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(e, 1, applied.Load())
	rs, err := e.st.Requests(e.ctx, "a")
	require.NoError(e, err)
	require.Len(e, rs, 1)
}

func requests(e *env) {
	e.start("a", waiting(never))
	_, err := e.st.Start(e.ctx, []store.New{branch("a", "x/1/y")})
	require.NoError(e, err)
	e.start("b", waiting(never))
	b := store.BranchID("a", "x/1/y")
	require.Equal(e, store.SendAccepted, e.sendAs(store.Message{WorkflowID: "a", ID: "1", Kind: store.MessageCancel, Payload: []byte("why")}))
	require.Equal(e, store.SendAccepted, e.sendAs(store.Message{WorkflowID: b, ID: "2", Kind: store.MessageVerb, Name: "pause"}))
	require.Equal(e, store.SendAccepted, e.sendAs(store.Message{WorkflowID: "a", ID: "3", Kind: store.MessageBranch, Name: "x/1/y"}))
	e.send("b", "4")
	rs, err := e.st.Requests(e.ctx, "a")
	require.NoError(e, err)
	var ids []string
	for _, r := range rs {
		ids = append(ids, r.WorkflowID+"/"+r.ID)
		require.True(e, r.TakenAt.IsZero())
	}
	require.Equal(e, []string{"a/1", b + "/2"}, ids, "of people only, and of no other workflow")
	rs, err = e.st.Requests(e.ctx, "nowhere")
	require.NoError(e, err)
	require.Empty(e, rs)
}

func expires(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	wf = e.apply(w, wf, waiting(never), spreads([]store.New{branch("a", "x/1/y")}), func(t *store.Transition) {
		t.Steps = []store.StepRecord{{Step: "charge", Group: 1, Status: store.StepDone, Output: []byte("secret")}}
		t.Data = []byte("secret")
	})
	e.send("a", "signal")
	require.Equal(e, store.SendAccepted, e.sendAs(request("a", "verb").Message))
	for _, c := range e.claim(w) {
		if c.ID == "a" {
			wf = c.Workflow
		}
	}
	e.apply(w, wf, store.Place{Status: store.Completed, State: "Delivered", Error: "secret"})
	other := e.start("a b", waiting(never))

	expired, err := e.st.Expire(e.ctx, []string{"a"})
	require.NoError(e, err)
	require.Equal(e, []string{"a"}, expired)
	got := e.get("a")
	require.Equal(e, store.Expired, got.Status)
	require.Empty(e, got.Data)
	require.Empty(e, got.Error)
	require.Empty(e, got.Cursor)
	require.False(e, got.EndedAt.IsZero())
	require.Empty(e, e.history("a"))
	require.Empty(e, e.list(store.Query{BranchesOf: "a"}))
	rs, err := e.st.Requests(e.ctx, "a")
	require.NoError(e, err)
	require.Len(e, rs, 1, "what people have asked stays, and no payload of a signal does")
	require.Equal(e, "verb", rs[0].ID)
	require.Equal(e, other, e.get("a b"), "an id that begins the same is another workflow")

	again, err := e.st.Start(e.ctx, []store.New{{ID: "a", Definition: order, Place: pending(charge, now)}})
	require.NoError(e, err)
	require.False(e, again[0].Created)
	require.Equal(e, store.Expired, again[0].Status)
	expired, err = e.st.Expire(e.ctx, []string{"a"})
	require.NoError(e, err)
	require.Empty(e, expired, "once")
}

func expirePassesOver(e *env) {
	w := e.worker()
	running := e.startAs(w, "running", pending(charge, never))
	held := e.start("held", heldPlace)
	expired, err := e.st.Expire(e.ctx, []string{"running", "held", "nowhere"})
	require.NoError(e, err)
	require.Empty(e, expired)
	require.Equal(e, running, e.get("running"))
	require.Equal(e, held, e.get("held"))
	expired, err = e.st.Expire(e.ctx, nil)
	require.NoError(e, err)
	require.Empty(e, expired)
}
