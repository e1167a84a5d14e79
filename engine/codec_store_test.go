package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
	"github.com/pawlhq/pawl/store/storetest"
)

// flip is a codec that turns every bit around.
type flip struct{ err error }

func (f *flip) Name() string { return "flip" }

func (f *flip) Encode(plain []byte) ([]byte, error) {
	coded := bytes.Clone(plain)
	for i := range coded {
		coded[i] ^= 0xff
	}
	return coded, f.err
}

func (f *flip) Decode(coded []byte) ([]byte, error) { return f.Encode(coded) }

func newFlipped(t *testing.T, c Codec) store.Store {
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return withCodec(st, c)
}

// A store with a codec keeps the contract of a store.
func TestCodedStoreConforms(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return newFlipped(t, &flip{}) })
}

func TestNoCodecIsNoWrapper(t *testing.T) {
	t.Parallel()
	st := &codedStore{}
	require.Same(t, st, withCodec(st, nil))
}

// clear are the texts and bytes of the store's records that are no payload. A new
// field is either visited or added here.
var clear = []string{
	"Place.State", "Place.Awaits", "Place.Status", "Mark.Step", "Def.Name", "Guard.ID", "Transition.Seen", "Consumed.MessageID",
	"StepRecord.Step", "StepRecord.Branch", "StepRecord.Status", "New.ID", "New.Parent", "New.InputHash", "Message.WorkflowID",
	"Message.ID", "Message.Kind", "Message.Name", "Workflow.ID", "Workflow.Parent", "Workflow.InputHash", "Schedule.Name",
	"Schedule.Definition", "Schedule.Zone", "Schedule.Spec", "ScheduleState.Running", "Workflow.Owner", "New.Owner", "Line.Queue", "Line.Key", "Queue.Name",
}

// Every text and all bytes of a record go through the codec, or are known to be no
// payload.
func TestEveryPayloadIsVisited(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		record any
		visit  func(v *visitor, record any)
	}{
		{&store.Transition{}, func(v *visitor, r any) { v.transition(r.(*store.Transition)) }},
		{&store.Claimed{}, func(v *visitor, r any) { v.claimed(r.(*store.Claimed)) }},
		{&store.Request{}, func(v *visitor, r any) { v.request(r.(*store.Request)) }},
		{&store.Fork{}, func(v *visitor, r any) { v.fork(r.(*store.Fork)) }},
		{&store.Queue{}, func(v *visitor, r any) { v.queue(r.(*store.Queue)) }},
		{&store.Schedule{}, func(v *visitor, r any) { v.schedule(r.(*store.Schedule)) }},
	} {
		fill(reflect.ValueOf(test.record).Elem())
		v := &visitor{turn: func(b []byte) ([]byte, error) { return append([]byte("coded "), b...), nil }}
		test.visit(v, test.record)
		require.NoError(t, v.err)
		var plain []string
		collect(reflect.ValueOf(test.record).Elem(), "", &plain)
		for _, field := range plain {
			require.Contains(t, clear, field, "%T", test.record)
		}
		require.NotEmpty(t, plain)
	}
}

const filling = "plain"

// fill puts something into every text, and one element into every list.
func fill(v reflect.Value) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(filling)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(filling))
	case v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		v.Index(0).SetUint(1)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// collect names the fields that are as fill left them.
func collect(v reflect.Value, name string, plain *[]string) {
	switch {
	case v.Kind() == reflect.String && v.String() == filling,
		v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && string(v.Bytes()) == filling,
		v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		*plain = append(*plain, name)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			collect(v.Index(i), name, plain)
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			collect(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, plain)
		}
	}
}

// Every method of a store that takes or gives a record with payloads is one of
// codedStore's own.
func TestEveryMethodWithPayloadsIsCoded(t *testing.T) {
	t.Parallel()
	coded := reflect.TypeFor[*codedStore]()
	own := 0
	for m := range reflect.TypeFor[store.Store]().NumMethod() {
		method := reflect.TypeFor[store.Store]().Method(m)
		if !slices.Contains([]string{"PauseQueue", "Beat", "LastBeat"}, method.Name) && !carriesPayload(method.Type, map[reflect.Type]bool{}) {
			continue
		}
		impl, _ := coded.MethodByName(method.Name)
		at := runtime.FuncForPC(impl.Func.Pointer())
		file, _ := at.FileLine(impl.Func.Pointer())
		require.Equal(t, "codec_store.go", filepath.Base(file), "%s is the store's own", method.Name)
		own++
	}
	require.Equal(t, 28, own)
}

// carriesPayload looks for records with payloads in a type and all that it is made of.
func carriesPayload(t reflect.Type, seen map[reflect.Type]bool) bool {
	records := []reflect.Type{
		reflect.TypeFor[store.Place](), reflect.TypeFor[store.StepRecord](), reflect.TypeFor[store.Message](),
		reflect.TypeFor[store.Consumed](), reflect.TypeFor[store.ScheduleState](), reflect.TypeFor[store.Queue](),
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	var parts []reflect.Type
	switch t.Kind() {
	case reflect.Func:
		parts = append(slices.Collect(t.Ins()), slices.Collect(t.Outs())...)
	case reflect.Slice, reflect.Pointer, reflect.Array:
		parts = append(parts, t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			parts = append(parts, f.Type)
		}
	}
	return slices.Contains(records, t) || slices.ContainsFunc(parts, func(p reflect.Type) bool { return carriesPayload(p, seen) })
}

// What is sent is the caller's, who may send it again: nothing of it is changed.
func TestEncodingLeavesTheCallersRecords(t *testing.T) {
	t.Parallel()
	var tr, before store.Transition
	fill(reflect.ValueOf(&tr).Elem())
	fill(reflect.ValueOf(&before).Elem())
	sent := tr
	(&codedStore{codec: &flip{}}).encoding().transition(&sent)
	require.Equal(t, before, tr)
	require.NotEqual(t, before.Steps, sent.Steps)
	require.NotEqual(t, before.Starts, sent.Starts)
	require.NotEqual(t, before.Sends, sent.Sends)
	require.NotEqual(t, before.Consumed, sent.Consumed)
}

var errVault = errors.New("the vault is closed")

// What a worker is about to write is kept while the codec fails; a client is told.
func TestErrorsOfEncoding(t *testing.T) {
	t.Parallel()
	st := newFlipped(t, &flip{errVault})
	row := store.New{ID: "w", Definition: store.Def{Name: "d", Version: 1}, Place: store.Place{Status: store.Pending, Data: []byte("{}")}}
	_, err := st.Start(t.Context(), []store.New{row})
	require.ErrorIs(t, err, errVault)
	require.NotErrorIs(t, err, store.ErrRetry)
	_, err = st.Get(t.Context(), "w")
	require.ErrorIs(t, err, store.ErrNotFound, "nothing was written")
	_, err = st.Commit(t.Context(), store.WorkerID{1}, []store.Transition{{Guard: store.Guard{ID: "w"}, Place: row.Place}})
	require.ErrorIs(t, err, errVault)
	require.ErrorIs(t, err, store.ErrRetry)
}

// A codec that cannot decode for now makes the call be repeated; what can never be
// decoded is returned as it is.
func TestErrorsOfDecoding(t *testing.T) {
	t.Parallel()
	codec := &flip{}
	st := newFlipped(t, codec)
	row := store.New{ID: "w", Definition: store.Def{Name: "d", Version: 1}, Place: store.Place{Status: store.Pending, State: "s", Data: []byte("{}"), Error: "text"}}
	_, err := st.Start(t.Context(), []store.New{row})
	require.NoError(t, err)
	codec.err = fmt.Errorf("%w: %w", store.ErrRetry, errVault)
	_, err = st.Get(t.Context(), "w")
	require.ErrorIs(t, err, store.ErrRetry)
	codec.err = errVault
	w, err := st.Get(t.Context(), "w")
	require.NoError(t, err)
	require.Equal(t, "\x01\x04\x00flip\x84\x82", string(w.Data))
	require.Equal(t, "(encoded by flip)", shown(w.Error))
	require.ErrorIs(t, readable(w), ErrCodec)
	codec.err = nil
	w, err = st.Get(t.Context(), "w")
	require.NoError(t, err)
	require.Equal(t, "{}text", string(w.Data)+w.Error)
}

// A text of a user's is never taken for what a codec has written.
func TestStorableIsNotCoded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\x01", "\x01abc", "\x02{}", "\x01\x01"} {
		require.False(t, isCoded([]byte(storable(text))))
		require.Equal(t, "\uFFFD"+text[1:], storable(text))
	}
}

// Whatever the bytes, they are read without harm, and a value that is read is the one
// that was written.
func FuzzCodedValue(f *testing.F) {
	f.Add([]byte{1, 2, 0, 'a'}, "codec", "key")
	f.Fuzz(func(t *testing.T, b []byte, codec, key string) {
		parseCoded(b)
		Encoded(b)
		codedOfText(string(rune(codedByte)) + string(b))
		if len(codec) > 255 || len(key) > 255 {
			return
		}
		v := codedValue{codec, key, b}
		got, ok := parseCoded(v.bytes())
		require.True(t, ok)
		require.Equal(t, codec+key+string(b), got.codec+got.key+string(got.body))
		require.Equal(t, v.bytes(), codedOfText(textOfCoded(v.bytes())))
		require.False(t, strings.ContainsRune(textOfCoded(v.bytes()), 0))
	})
}

// A sealed cursor that can be read is one of a pause: nothing of it is lost.
func TestSealedCursor(t *testing.T) {
	t.Parallel()
	s := &codedStore{codec: &flip{}}
	before := statemachine.Cursor{Groups: map[statemachine.State]int{"s": 2}, Open: 3, Cause: statemachine.Overdue, Asks: 1}
	row := store.Workflow{ID: "w", Place: store.Place{Status: store.Waiting, State: "s", Cursor: before.Rest(), Error: "last"}}
	s.encoding().workflow(&row)

	cur, err := cursorOf(row)
	require.ErrorIs(t, err, ErrCodec)
	a := advance{shell: &shell{log: slog.New(slog.DiscardHandler)}, job: job{id: "w", cursor: cur, unread: &unread{err, row.Cursor}, wakeAt: time.UnixMicro(17)}}
	place := a.heldUnread().transition.Place
	require.Equal(t, store.Held, place.Status)
	require.Nil(t, place.Data)
	again := store.Workflow{ID: "w", Place: place}
	_, err = cursorOf(again)
	require.ErrorIs(t, err, ErrCodec, "it is not read without the codec")
	s.encoding().workflow(&again)
	require.Equal(t, place, again.Place, "what is sealed is encoded")

	s.decoding().workflow(&again)
	cur, err = cursorOf(again)
	require.NoError(t, err)
	want := before
	want.From, want.Alarm, want.Paused, want.Why = statemachine.Waiting, 17, true, "last"
	require.Equal(t, string(want.Rest()), string(cur.Rest()))
	require.Contains(t, cur.Reason, "paused by its worker")
}

// What is sealed in the clear, beside data that cannot be read, is encoded.
func TestSealedCursorIsEncoded(t *testing.T) {
	t.Parallel()
	s := &codedStore{codec: &flip{}}
	p := store.Place{Cursor: sealed{Cursor: []byte(`{"why":"secret"}`), Error: []byte("secret"), From: statemachine.Waiting}.encode()}
	s.encoding().place(&p)
	var got sealed
	require.NoError(t, json.Unmarshal(p.Cursor[1:], &got))
	require.True(t, isCoded(got.Cursor) && isCoded(got.Error))
}

func TestCommitTxEncodes(t *testing.T) {
	t.Parallel()
	inner := &txStore{}
	s := &codedStore{inner, &flip{}}
	body := func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Place: store.Place{Data: []byte("secret")}}, nil
	}
	_, err := s.CommitTx(t.Context(), store.WorkerID{}, store.Guard{}, time.Second, body)
	require.NoError(t, err)
	require.True(t, isCoded(inner.got.Data))
	s.codec = &flip{errVault}
	_, err = s.CommitTx(t.Context(), store.WorkerID{}, store.Guard{}, time.Second, body)
	require.ErrorIs(t, err, store.ErrRetry, "the body is run again")
}

type txStore struct {
	store.Store
	got store.Transition
}

func (s *txStore) CommitTx(ctx context.Context, _ store.WorkerID, _ store.Guard, _ time.Duration, body func(context.Context, store.Tx) (store.Transition, error)) (v store.Verdict, err error) {
	s.got, err = body(ctx, nil)
	return store.Applied, err
}
