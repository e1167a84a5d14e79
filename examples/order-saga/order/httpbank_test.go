package order_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/step"
)

// openBank serves a bank and returns its client, and a counter of requests.
func openBank(t *testing.T) (*order.HTTPBank, *atomic.Int32) {
	t.Helper()
	b, err := bank.Open(t.Context(), bank.Config{File: filepath.Join(t.TempDir(), "bank.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return &order.HTTPBank{URL: server.URL, Caller: "test", Client: server.Client()}, &requests
}

func TestHTTPBankChargesRefundsAndVoids(t *testing.T) {
	t.Parallel()
	b, _ := openBank(t)
	key := step.NewKey("a", "charge-card", 1)
	first, err := b.Charge(t.Context(), key, order.Bill{OrderID: "a", Card: "4242", Cents: 100})
	require.NoError(t, err)
	again, err := b.Charge(t.Context(), key, order.Bill{OrderID: "a", Card: "4242", Cents: 100})
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, b.Refund(t.Context(), step.NewKey("a", "refund-card", 1), "a", first))

	late := step.NewKey("b", "charge-card", 1)
	require.NoError(t, b.Void(t.Context(), step.NewKey("b", "refund-card", 1), "b", late))
	_, err = b.Charge(t.Context(), late, order.Bill{OrderID: "b", Card: "4242", Cents: 100})
	require.ErrorIs(t, err, order.ErrBankRefused, "a charge that comes after its own undo must have no effect")
	require.True(t, step.IsRejected(err))
}

func TestHTTPBankTellsRefusalsFromUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for card, refused := range map[string]bool{bank.Declined: true, bank.FailBefore: false, bank.FailAfter: false, bank.DropReply: false} {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			b, requests := openBank(t)
			_, err := b.Charge(t.Context(), step.NewKey("a", "charge-card", 1), order.Bill{OrderID: "a", Card: card, Cents: 100})
			require.Error(t, err)
			require.Equal(t, refused, step.IsRejected(err))
			require.EqualValues(t, 1, requests.Load(), "the workflow repeats requests, not the HTTP client")
		})
	}
}

// One connection that is kept alive and then dropped is what makes an HTTP
// client repeat a request by itself.
func TestHTTPBankNeverRepeatsARequestByItself(t *testing.T) {
	t.Parallel()
	b, requests := openBank(t)
	_, err := b.Charge(t.Context(), step.NewKey("a", "charge-card", 1), order.Bill{OrderID: "a", Card: "4242", Cents: 100})
	require.NoError(t, err)
	_, err = b.Charge(t.Context(), step.NewKey("b", "charge-card", 1), order.Bill{OrderID: "b", Card: bank.Silent, Cents: 100})
	require.Error(t, err)
	require.EqualValues(t, 2, requests.Load())
}

func TestHTTPBankRespectsRetryAfter(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	b := &order.HTTPBank{URL: server.URL}
	_, err := b.Charge(t.Context(), step.NewKey("a", "charge-card", 1), order.Bill{})
	pause, asked := step.AskedPause(err)
	require.True(t, asked)
	require.Equal(t, 7*time.Second, pause)
	require.False(t, step.IsRejected(err), "too many requests says nothing about the outcome")
}

func TestHTTPBankReportsWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"no JSON":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"not a 200": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			_, err := (&order.HTTPBank{URL: server.URL}).Charge(t.Context(), step.NewKey("a", "charge-card", 1), order.Bill{})
			require.Error(t, err)
			require.False(t, step.IsRejected(err))
		})
	}
}

func TestHTTPBankGivesUpWhenItsContextDoes(t *testing.T) {
	t.Parallel()
	b, _ := openBank(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Charge(ctx, step.NewKey("a", "charge-card", 1), order.Bill{OrderID: "a", Card: "4242", Cents: 100})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, step.IsRejected(err))
}
