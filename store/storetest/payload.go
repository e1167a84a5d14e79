package storetest

import (
	"bytes"
	"context"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var payloadTests = []test{
	{"BytesAreKeptAsTheyAre", payloadBytes},
	{"OneMebibyte", payloadLarge},
	{"EmptyIsNotMissing", payloadEmpty},
}

// roundTrip puts one payload wherever a payload may be, and reads it back.
func roundTrip(e *env, id string, payload []byte) {
	w := e.worker()
	p := pending(charge, never)
	p.Data, p.Cursor = payload, payload
	wf := e.startAs(w, id, p)
	same := func(got []byte) {
		e.Helper()
		require.True(e, bytes.Equal(payload, got), "%d bytes became %d others", len(payload), len(got))
	}
	same(wf.Data)
	same(wf.Cursor)

	m := signal(id, "m")
	m.Payload = payload
	require.Equal(e, store.SendAccepted, e.sendAs(m))
	ms, err := e.st.Inbox(e.ctx, id)
	require.NoError(e, err)
	same(ms[0].Payload)

	r := done("charge", 1)
	r.Input, r.Output = payload, payload
	wf = e.apply(w, wf, p, func(t *store.Transition) { t.Steps = []store.StepRecord{r} })
	same(wf.Data)
	same(wf.Cursor)
	r.Group = 2
	_, err = e.commitTx(w, wf, func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Place: p, Steps: []store.StepRecord{r}}, nil
	})
	require.NoError(e, err)
	same(e.get(id).Data)
	for _, got := range e.history(id) {
		same(got.Input)
		same(got.Output)
	}
	cs, err := e.st.Load(e.ctx, w, []string{id})
	require.NoError(e, err)
	same(cs[0].Data)
	same(cs[0].Inbox[0].Payload)
}

func payloadBytes(e *env) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for i, payload := range [][]byte{
		{0}, {0, 0, 0}, {0xff, 0xfe}, []byte("1e400"), []byte(`"\ud800"`), []byte(`\x00`), []byte("2024-02-29T12:00:00Z"), every,
	} {
		roundTrip(e, ids(10)[i], payload)
	}
}

func payloadLarge(e *env) {
	roundTrip(e, "a", bytes.Repeat([]byte{0, 0xff, 'x', '\''}, 1<<18))
}

// payloadEmpty: an empty output is an output; none at all is none.
func payloadEmpty(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	empty, none := done("empty", 1), done("none", 1)
	empty.Input, empty.Output = []byte{}, []byte{}
	none.Input, none.Output = nil, nil
	e.apply(w, wf, completed, func(t *store.Transition) { t.Steps = []store.StepRecord{empty, none} })
	for _, r := range e.history("a") {
		require.Equal(e, r.Step == "none", r.Output == nil, r.Step)
		require.Equal(e, r.Step == "none", r.Input == nil, r.Step)
		require.Empty(e, r.Output)
	}
}
