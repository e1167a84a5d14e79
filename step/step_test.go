package step

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type (
	bill    struct{ Cents int }
	payment struct{ ID string }
	tx      struct{ name string }
	person  string // a type of context key
)

var (
	errDown = errors.New("bank is down")
	key     = NewKey("order-42", "charge-card", 1)
	undoKey = NewKey("order-42", "refund-card", 1)
)

// TestBodies: what goes in and comes out of each kind, as bytes.
func TestBodies(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), person("who"), "ann")
	checked := func(ctx context.Context, in bill) (payment, error) {
		require.Equal(t, "ann", ctx.Value(person("who")), "the context is handed on")
		if in.Cents < 0 {
			return payment{"half done"}, errDown
		}
		return payment{"p-1"}, nil
	}
	for _, st := range []Step[bill, payment]{
		Func("charge-card", checked),
		Call("charge-card", func(ctx context.Context, k Key, in bill) (payment, error) {
			require.Equal(t, key, k)
			return checked(ctx, in)
		}),
		InTx("charge-card", func(ctx context.Context, x tx, in bill) (payment, error) {
			require.Equal(t, tx{"mine"}, x)
			return checked(ctx, in)
		}),
	} {
		run := st.Spec().Run
		env := Env{Key: key, Tx: tx{"mine"}}
		out, err := run(ctx, env, []byte(`{"Cents":7,"a field of a later version":1}`))
		require.NoError(t, err)
		require.JSONEq(t, `{"ID":"p-1"}`, string(out))

		out, err = run(ctx, env, []byte(`{"Cents":-1}`))
		require.Equal(t, errDown, err, "as the body returned it")
		require.Nil(t, out)

		_, err = run(ctx, env, []byte(`{"Cents":"seven"}`))
		require.ErrorIs(t, err, ErrDecode)
		require.False(t, IsRejected(err), "an attempt before may have had its effect")
		require.ErrorContains(t, err, "decode input of step charge-card")
	}
}

func TestAResultThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	st := Func("charge-card", func(context.Context, int) (func(), error) { return func() {}, nil })
	_, err := st.Spec().Run(t.Context(), Env{Key: key}, []byte("1"))
	require.ErrorIs(t, err, ErrEncode)
	require.False(t, IsRejected(err), "the effect has happened")
	require.ErrorContains(t, err, "charge-card")
}

// TestUndoBodies: an undo gets what is known of its step, and no more.
func TestUndoBodies(t *testing.T) {
	t.Parallel()
	var got Done[bill, payment]
	for _, u := range []Undo[bill, payment]{
		UndoCall("refund-card", func(_ context.Context, k Key, d Done[bill, payment]) error {
			require.Equal(t, undoKey, k)
			got = d
			return errDown
		}),
		UndoInTx("refund-card", func(_ context.Context, x tx, d Done[bill, payment]) error {
			require.Equal(t, tx{"mine"}, x)
			got = d
			return errDown
		}),
	} {
		run := Call("charge-card", charge).Undo(u).Spec().Undo.Run
		undo := func(in, out string, known bool) error {
			env := Env{Key: undoKey, Tx: tx{"mine"}, Undoes: Undoes{Key: key, In: []byte(in), Out: []byte(out), Known: known}}
			res, err := run(t.Context(), env, nil)
			require.Nil(t, res)
			return err
		}
		require.Equal(t, errDown, undo(`{"Cents":7}`, `{"ID":"p-1"}`, true))
		require.Equal(t, Done[bill, payment]{key, bill{7}, payment{"p-1"}, true}, got)

		require.Equal(t, errDown, undo(`{"Cents":7}`, "", false))
		require.Equal(t, Done[bill, payment]{key, bill{7}, payment{}, false}, got)

		require.Equal(t, errDown, undo(`{"Cents":7}`, `{"ID":"stale"}`, false))
		require.Zero(t, got.Out, "what is not known is not guessed")

		for _, bad := range []error{undo(`{`, `{"ID":"p-1"}`, true), undo(`{"Cents":7}`, `{`, true)} {
			require.True(t, IsRejected(bad))
			require.ErrorContains(t, bad, "for undo refund-card")
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	answer := struct {
		applied Applied
		err     error
	}{}
	ask := Call("charge-card", charge).Probe(func(_ context.Context, k Key, in bill) (payment, Applied, error) {
		require.Equal(t, key, k)
		require.Equal(t, bill{7}, in)
		return payment{"p-1"}, answer.applied, answer.err
	}).Spec().Ask

	for _, tt := range []struct {
		applied Applied
		err     error
		out     string
	}{
		{Happened, nil, `{"ID":"p-1"}`},
		{NotApplied, nil, ""},
		{StillUnknown, nil, ""},
		{StillUnknown, errDown, ""},
	} {
		answer.applied, answer.err = tt.applied, tt.err
		out, applied, err := ask(t.Context(), key, []byte(`{"Cents":7}`))
		require.Equal(t, tt.applied, applied)
		require.Equal(t, tt.err, err)
		require.Equal(t, tt.out, string(out))
	}
	_, applied, err := ask(t.Context(), key, []byte("{"))
	require.Equal(t, StillUnknown, applied)
	require.ErrorContains(t, err, "decode input for probe of charge-card")
}

func charge(context.Context, Key, bill) (payment, error)         { return payment{}, nil }
func refund(context.Context, Key, Done[bill, payment]) error     { return nil }
func refundInTx(context.Context, *tx, Done[bill, payment]) error { return nil }
func reserve(context.Context, *tx, bill) (payment, error)        { return payment{}, nil }
func compute(context.Context, bill) (payment, error)             { return payment{}, nil }
func ask(context.Context, Key, bill) (payment, Applied, error)   { return payment{}, Happened, nil }

func TestSpecSaysWhatWasDeclared(t *testing.T) {
	t.Parallel()
	patient := Policy{Attempts: 99}
	f := Func("compute", compute).Spec()
	require.Equal(t, "compute", f.Name)
	require.Equal(t, KindFunc, f.Kind)
	require.False(t, f.Kind.Effectful())
	require.Nil(t, f.TxType)
	require.Zero(t, f.Policy)

	c := Call("charge-card", charge).With(patient).Undo(UndoCall("refund-card", refund).With(patient)).Spec()
	require.Equal(t, KindCall, c.Kind)
	require.True(t, c.Kind.Effectful())
	require.Equal(t, patient, c.Policy)
	require.Equal(t, "refund-card", c.Undo.Name)
	require.Equal(t, KindCall, c.Undo.Kind)
	require.Equal(t, patient, c.Undo.Policy)
	require.True(t, c.Undo.IsUndo)
	require.False(t, c.IsUndo)
	require.Equal(t, Resend, c.Unknown)

	x := InTx("reserve-stock", reserve).Undo(UndoInTx("release-stock", refundInTx)).Spec()
	require.Equal(t, KindInTx, x.Kind)
	require.True(t, x.Kind.Effectful())
	require.Equal(t, reflect.TypeFor[*tx](), x.TxType)
	require.Equal(t, reflect.TypeFor[*tx](), x.Undo.TxType)
	require.Equal(t, KindInTx, x.Undo.Kind)

	require.True(t, Call("charge-card", charge).Pivot().Spec().Pivot)
	n := Call("charge-card", charge).NoUndo("").Spec()
	require.True(t, n.NoUndoSet)
	require.Equal(t, "free", Call("charge-card", charge).NoUndo("free").Spec().NoUndo)
	require.Equal(t, Hold, Call("charge-card", charge).Hold().Spec().Unknown)
	p := Call("charge-card", charge).Probe(ask).Spec()
	require.Equal(t, Probe, p.Unknown)
	require.NotNil(t, p.Ask)
}

// TestStepsAreValues: a changed copy leaves the original as it was.
func TestStepsAreValues(t *testing.T) {
	t.Parallel()
	u := UndoCall("refund-card", refund)
	st := Call("charge-card", charge).Undo(u)
	_ = st.As("other").Pivot().NoUndo("x").Hold().With(Policy{Attempts: 1}).Undo(u.As("other-undo"))
	_ = u.With(Policy{Attempts: 1})
	sp := st.Spec()
	require.Equal(t, "charge-card", sp.Name)
	require.Equal(t, "refund-card", sp.Undo.Name)
	require.Zero(t, sp.Undo.Policy)
	require.False(t, sp.Pivot || sp.NoUndoSet)
	require.Equal(t, Resend, sp.Unknown)
	require.Zero(t, sp.Policy)
}

// TestAStepUnderAnotherNameSpeaksOfItself by that name.
func TestAStepUnderAnotherNameSpeaksOfItself(t *testing.T) {
	t.Parallel()
	sp := Call("charge-card", charge).As("charge-again").Undo(UndoCall("refund-card", refund).As("refund-again")).Spec()
	require.Equal(t, "charge-again", sp.Name)
	require.Equal(t, "refund-again", sp.Undo.Name)
	_, err := sp.Run(t.Context(), Env{Key: NewKey("w", "charge-again", 1)}, []byte("{"))
	require.ErrorContains(t, err, "decode input of step charge-again")
	_, err = sp.Undo.Run(t.Context(), Env{Key: NewKey("w", "refund-again", 1)}, nil)
	require.ErrorContains(t, err, "decode input for undo refund-again")
}

// TestNoFunctionIsNoBody, so that a definition with one can be refused.
func TestNoFunctionIsNoBody(t *testing.T) {
	t.Parallel()
	for _, sp := range []Spec{
		Func[bill, payment]("compute", nil).Spec(),
		Call[bill, payment]("charge-card", nil).Spec(),
		InTx[*tx, bill, payment]("reserve-stock", nil).Spec(),
		*Call("charge-card", charge).Undo(UndoCall[bill, payment]("refund-card", nil)).Spec().Undo,
		*Call("charge-card", charge).Undo(UndoInTx[*tx, bill, payment]("refund-card", nil)).Spec().Undo,
	} {
		require.Nil(t, sp.Run, sp.Name)
		require.NotEmpty(t, sp.Name)
		require.NotZero(t, sp.Kind)
	}
}

func TestNamesForPeople(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"func", "call", "in-tx", "kind 9"}, []string{KindFunc.String(), KindCall.String(), KindInTx.String(), Kind(9).String()})
	require.Equal(t, []string{"resend", "probe", "hold"}, []string{Resend.String(), Probe.String(), Hold.String()})
}
