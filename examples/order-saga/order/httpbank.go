package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawlhq/pawl/step"
)

// ErrBankRefused says that the bank said no.
var ErrBankRefused = errors.New("the bank refused")

// HTTPBank is a [Bank] behind HTTP, as package bank serves it. It passes the
// key of the step on as the Idempotency-Key, and tells apart what the answer
// says about the effect: a 4xx is a refusal, so nothing happened; anything else
// that is no success leaves that open. It is safe for concurrent use.
type HTTPBank struct {
	URL    string
	Caller string       // who is calling, for the bank's books; sent as User-Agent
	Client *http.Client // default: http.DefaultClient. The step's policy bounds the time
}

// Charge implements [Bank].
func (b *HTTPBank) Charge(ctx context.Context, key step.Key, bill Bill) (charge string, err error) {
	var p Payment
	err = b.post(ctx, "/charge", key, bill, &p)
	return p.Charge, err
}

// Refund implements [Bank].
func (b *HTTPBank) Refund(ctx context.Context, key step.Key, orderID, charge string) error {
	return b.post(ctx, "/refund", key, map[string]string{"order": orderID, "charge": charge}, nil)
}

// Void implements [Bank].
func (b *HTTPBank) Void(ctx context.Context, key step.Key, orderID string, charged step.Key) error {
	return b.post(ctx, "/void", key, map[string]string{"order": orderID, "key": charged.Header()}, nil)
}

// post sends one request, and reads the answer into out unless that is nil.
func (b *HTTPBank) post(ctx context.Context, path string, key step.Key, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return step.Reject(fmt.Errorf("bank %s: %w", path, err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL+path, bytes.NewReader(body))
	if err != nil {
		return step.Reject(fmt.Errorf("bank %s: %w", path, err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", b.Caller)
	req.Header.Set("Idempotency-Key", key.Header())
	// Of its own accord net/http repeats a request that has an Idempotency-Key and
	// a body that it can read again. It is the workflow that repeats it, and
	// counts.
	req.GetBody = nil
	resp, err := b.client().Do(req)
	if err != nil {
		return fmt.Errorf("bank %s: %w", path, err)
	}
	defer resp.Body.Close()
	return read(resp, path, out)
}

func (b *HTTPBank) client() *http.Client {
	if b.Client == nil {
		return http.DefaultClient
	}
	return b.Client
}

const maxAnswer = 64 << 10

// read turns an answer into a result, a refusal, or an error that leaves the
// outcome open.
func read(resp *http.Response, path string, out any) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("bank %s: read answer: %w", path, err)
	}
	said := fmt.Errorf("bank %s: %s: %s", path, resp.Status, strings.TrimSpace(string(body)))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return askedPause(said, resp.Header)
	case resp.StatusCode >= 400:
		return step.Reject(fmt.Errorf("%w: %w", ErrBankRefused, said))
	case resp.StatusCode != http.StatusOK:
		return said
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("bank %s: read answer: %w", path, err)
	}
	return nil
}

// askedPause respects the pause that the bank asks for.
func askedPause(err error, h http.Header) error {
	if s, bad := strconv.Atoi(h.Get("Retry-After")); bad == nil {
		return step.RetryAfter(err, time.Duration(s)*time.Second)
	}
	return err
}
