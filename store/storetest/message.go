package storetest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var messageTests = []test{
	{"AnswersInTheOrderGiven", sendOrder},
	{"KeepsEveryField", sendFields},
	{"DuplicateIsKnownForEver", sendDuplicate},
	{"SameIDInAnotherWorkflow", sendSameID},
	{"CancelPastThePivot", sendPastPivot},
	{"InATransaction", sendTx},
	{"InATransactionThatIsRolledBack", sendTxRollback},
	{"NothingToSend", sendNothing},
	{"ChangesNoWorkflow", sendChangesNothing},
	{"MailIsWhatIsFresh", mailFresh},
	{"MailIsTheOwners", mailOwner},
	{"ReadingDoesNotMakeSeen", mailStaysFresh},
	{"FreshOutlivesItsOwner", mailOutlives},
	{"ConsumedOnce", consumeOnce},
	{"ConsumedUnknown", consumeUnknown},
	{"SeenIsNotConsumed", seenStays},
}

func sendOrder(e *env) {
	w := e.worker()
	e.apply(w, e.startAs(w, "ended", pending(charge, never)), completed)
	e.start("a", waiting(never))
	e.start("b", waiting(never))
	e.send("a", "old")
	rs, err := e.st.Send(e.ctx, []store.Message{
		signal("b", "m"), signal("nowhere", "m"), signal("a", "old"), signal("ended", "m"), signal("a", "m"),
	})
	require.NoError(e, err)
	require.Equal(e, []store.SendResult{
		store.SendAccepted, store.SendNotFound, store.SendDuplicate, store.SendEnded, store.SendAccepted,
	}, rs)
	require.Equal(e, []string{"old", "m"}, e.inbox("a"))
	require.Equal(e, []string{"m"}, e.inbox("b"))
	require.Empty(e, e.inbox("ended"))
	require.Empty(e, e.inbox("nowhere"))
}

func sendFields(e *env) {
	e.start("a", waiting(never))
	sent := []store.Message{
		{WorkflowID: "a", ID: "m1", Kind: store.MessageSignal, Name: "approval", Payload: []byte{0, 0xff}},
		{WorkflowID: "a", ID: "m2", Kind: store.MessageCancel, Payload: []byte("reason")},
	}
	for _, m := range sent {
		require.Equal(e, store.SendAccepted, e.sendAs(m))
	}
	got, err := e.st.Inbox(e.ctx, "a")
	require.NoError(e, err)
	require.Len(e, got, 2)
	for i := range got {
		e.near(got[i].SentAt, 0)
		sent[i].SentAt = got[i].SentAt
	}
	require.Equal(e, sent, got)
}

// sendDuplicate: an id goes on deduplicating after its message was consumed
// and after the workflow has ended; the first payload stays.
func sendDuplicate(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	again := signal("a", "m")
	again.Payload = []byte("another")
	require.Equal(e, store.SendDuplicate, e.sendAs(again))
	ms, err := e.st.Inbox(e.ctx, "a")
	require.NoError(e, err)
	require.Len(e, ms, 1)
	require.Equal(e, signal("a", "m").Payload, ms[0].Payload)

	wf = e.apply(w, wf, waiting(never), func(t *store.Transition) { t.Consumed = []store.Consumed{{MessageID: "m", Answer: "taken"}} })
	require.Equal(e, store.SendDuplicate, e.sendAs(again), "it was consumed")
	require.Empty(e, e.inbox("a"))
	require.Empty(e, e.mail(w))

	e.apply(w, wf, completed)
	require.Equal(e, store.SendDuplicate, e.sendAs(again), "the workflow has ended")
}

func sendSameID(e *env) {
	e.start("a", waiting(never))
	e.start("b", waiting(never))
	e.send("a", "m")
	e.send("b", "m")
}

func sendPastPivot(e *env) {
	p := waiting(never)
	p.Pivoted = true
	e.start("a", p)
	e.start("b", waiting(never))
	cancel := store.Message{WorkflowID: "a", ID: "c", Kind: store.MessageCancel}
	require.Equal(e, store.SendPastPivot, e.sendAs(cancel))
	require.Empty(e, e.inbox("a"))
	e.send("a", "m")
	cancel.WorkflowID = "b"
	require.Equal(e, store.SendAccepted, e.sendAs(cancel))
}

func sendNothing(e *env) {
	rs, err := e.st.Send(e.ctx, nil)
	require.NoError(e, err)
	require.Empty(e, rs)
}

// sendChangesNothing: a message is an insert into the inbox; the row is its
// owner's.
func sendChangesNothing(e *env) {
	wf := e.startAs(e.worker(), "a", waiting(in(time.Hour)))
	e.send("a", "m")
	require.Equal(e, wf, e.get("a"))
}

func mailFresh(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.startAs(w, "b", waiting(never))
	e.send("a", "m1")
	e.send("b", "m2")
	e.send("a", "m3")
	ms, err := e.st.Mail(e.ctx, w)
	require.NoError(e, err)
	require.Equal(e, []string{"m1", "m2", "m3"}, messageIDs(ms))
	require.Equal(e, signal("a", "m1").Payload, ms[0].Payload)
	e.apply(w, wf, waiting(never), func(t *store.Transition) { t.Seen = []string{"m1"} })
	require.Equal(e, []string{"m2", "m3"}, e.mail(w))
}

func mailOwner(e *env) {
	w := e.worker()
	e.startAs(w, "a", waiting(never))
	e.start("b", waiting(never))
	e.send("a", "m")
	e.send("b", "m")
	require.Len(e, e.mail(w), 1)
	require.Empty(e, e.mail(e.worker()))
	require.Empty(e, e.mail(store.WorkerID{}))
}

func mailStaysFresh(e *env) {
	w := e.worker()
	e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	for range 2 {
		require.Equal(e, []string{"m"}, e.mail(w))
		require.Equal(e, []string{"m"}, e.inbox("a"))
	}
	e.start("b", waiting(never))
	e.send("b", "m")
	require.Len(e, e.claimOne(w).Inbox, 1)
	require.Equal(e, []string{"m", "m"}, e.mail(w), "a claim does not make it seen either")
}

// mailOutlives: an owner that dies before it has told that it saw the message
// leaves it fresh, and the next worker claims the workflow for it.
func mailOutlives(e *env) {
	w := e.worker()
	e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	require.Len(e, e.mail(w), 1)
	e.expire(w)
	require.Equal(e, 1, e.takeover(time.Second))
	c := e.claimOne(e.worker())
	require.False(e, c.Due)
	require.Equal(e, []string{"m"}, messageIDs(c.Inbox))
}

// consumeOnce: a message is consumed by the first transition that says so.
func consumeOnce(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	consume := func(t *store.Transition) { t.Consumed = []store.Consumed{{MessageID: "m", Answer: "yes"}} }
	wf = e.apply(w, wf, waiting(never), consume)
	require.Empty(e, e.inbox("a"))
	require.Empty(e, e.mail(w))
	wf = e.apply(w, wf, waiting(never), consume)
	e.apply(w, wf, waiting(never), release, func(t *store.Transition) { t.Seen = []string{"m"} })
	require.Empty(e, e.inbox("a"))
	require.Empty(e, e.claim(w))
}

func consumeUnknown(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.start("b", waiting(never))
	e.send("b", "m")
	e.apply(w, wf, waiting(never), func(t *store.Transition) {
		t.Consumed = []store.Consumed{{MessageID: "m"}}
		t.Seen = []string{"m"}
	})
	require.Equal(e, []string{"m"}, e.inbox("b"), "it is another workflow's")
	require.Len(e, e.claim(w), 1, "and still fresh")
}

func seenStays(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m")
	e.apply(w, wf, waiting(never), func(t *store.Transition) { t.Seen = []string{"m"} })
	require.Empty(e, e.mail(w))
	require.Equal(e, []string{"m"}, e.inbox("a"))
	cs, err := e.st.Load(e.ctx, w, []string{"a"})
	require.NoError(e, err)
	require.Equal(e, []string{"m"}, messageIDs(cs[0].Inbox))
}

// sendTx: a message that was sent in a transaction is there once that has committed;
// the answers are those of Send, and tell what the transaction itself has done.
func sendTx(e *env) {
	e.start("a", waiting(never))
	w := e.worker()
	e.apply(w, e.startAs(w, "over", pending(charge, never)), completed)
	e.inTx(func(tx store.Tx) {
		sends := func(m store.Message) store.SendResult {
			r, err := e.st.SendTx(e.ctx, tx, m)
			require.NoError(e, err)
			return r
		}
		require.Equal(e, store.SendAccepted, sends(signal("a", "m")))
		require.Equal(e, store.SendDuplicate, sends(signal("a", "m")))
		require.Equal(e, store.SendNotFound, sends(signal("none", "m")))
		require.Equal(e, store.SendEnded, sends(signal("over", "m")))
		_, err := e.st.StartTx(e.ctx, tx, store.New{ID: "new", Definition: order, Place: waiting(never)})
		require.NoError(e, err)
		require.Equal(e, store.SendAccepted, sends(signal("new", "m")))
	})
	require.Equal(e, store.SendDuplicate, e.sendAs(signal("a", "m")))
	cs := e.claim(w)
	require.Len(e, cs, 2)
	for _, c := range cs {
		require.Equal(e, []string{"m"}, messageIDs(c.Inbox))
	}
}

func sendTxRollback(e *env) {
	e.start("a", waiting(never))
	back := errors.New("changed my mind")
	err := e.tryInTx(func(tx store.Tx) error {
		_, err := e.st.SendTx(e.ctx, tx, signal("a", "m"))
		require.NoError(e, err)
		return back
	})
	require.ErrorIs(e, err, back)
	require.Empty(e, e.inbox("a"))
	require.Equal(e, store.SendAccepted, e.sendAs(signal("a", "m")))
}
