package order_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/step"
)

// recorder is a bank that writes down how it was called.
type recorder struct {
	calls []string
	err   error
}

func (r *recorder) Charge(_ context.Context, key step.Key, b order.Bill) (string, error) {
	r.calls = append(r.calls, "charge "+key.String()+" "+b.Card)
	return "ch_7", r.err
}

func (r *recorder) Refund(_ context.Context, key step.Key, orderID, charge string) error {
	r.calls = append(r.calls, "refund "+key.String()+" "+orderID+" "+charge)
	return r.err
}

func (r *recorder) Void(_ context.Context, key step.Key, orderID string, charged step.Key) error {
	r.calls = append(r.calls, "void "+key.String()+" "+orderID+" "+charged.String())
	return r.err
}

func TestChargePassesTheKeyOn(t *testing.T) {
	t.Parallel()
	bank := &recorder{}
	got, err := (&order.Shop{Bank: bank}).Charge(t.Context(), step.NewKey("a", "charge-card", 1), order.Bill{OrderID: "a", Card: "4242", Cents: 1})
	require.NoError(t, err)
	require.Equal(t, order.Payment{Charge: "ch_7"}, got)
	require.Equal(t, []string{"charge a/charge-card/1 4242"}, bank.calls)
}

func TestRefundNamesTheChargeOrVoidsItsKey(t *testing.T) {
	t.Parallel()
	bank := &recorder{}
	shop := &order.Shop{Bank: bank}
	done := step.Done[order.Bill, order.Payment]{
		Key: step.NewKey("a", "charge-card", 1), In: order.Bill{OrderID: "a"}, Out: order.Payment{Charge: "ch_7"}, Known: true,
	}
	undo := step.NewKey("a", "refund-card", 1)
	require.NoError(t, shop.Refund(t.Context(), undo, done))
	done.Known, done.Out = false, order.Payment{}
	require.NoError(t, shop.Refund(t.Context(), undo, done))
	require.Equal(t, []string{"refund a/refund-card/1 a ch_7", "void a/refund-card/1 a a/charge-card/1"}, bank.calls)

	bank.err = errors.New("out of order")
	require.ErrorIs(t, shop.Refund(t.Context(), undo, done), bank.err)
}

func TestPrintLabelGivesOneNumberForOneKey(t *testing.T) {
	t.Parallel()
	shop := &order.Shop{}
	key := step.NewKey("a", "print-label", 1)
	first, err := shop.PrintLabel(t.Context(), key, order.Parcel{OrderID: "a", Address: "12 Harbour Road"})
	require.NoError(t, err)
	again, err := shop.PrintLabel(t.Context(), key, order.Parcel{OrderID: "a", Address: "12 Harbour Road"})
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NotEmpty(t, first.Tracking)

	_, err = shop.PrintLabel(t.Context(), key, order.Parcel{OrderID: "a", Address: order.Nowhere})
	require.ErrorIs(t, err, order.ErrUndeliverable)
	require.True(t, step.IsRejected(err))
}

func TestAPaperBankAnswersByTheKey(t *testing.T) {
	t.Parallel()
	key := step.NewKey("a", "charge-card", 1)
	first, err := order.PaperBank{}.Charge(t.Context(), key, order.Bill{Cents: 1})
	require.NoError(t, err)
	again, err := order.PaperBank{}.Charge(t.Context(), key, order.Bill{Cents: 1})
	require.NoError(t, err)
	require.Equal(t, first, again)
	other, err := order.PaperBank{}.Charge(t.Context(), step.NewKey("b", "charge-card", 1), order.Bill{Cents: 1})
	require.NoError(t, err)
	require.NotEqual(t, first, other)
}
