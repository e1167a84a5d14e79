package bank_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
)

// branch is a bank that serves, and its books.
type branch struct {
	url   string
	bank  *bank.Bank
	books *sql.DB
}

func open(t *testing.T, cfg bank.Config) branch {
	t.Helper()
	if cfg.File == "" {
		cfg.File = filepath.Join(t.TempDir(), "bank.db")
	}
	b, err := bank.Open(t.Context(), cfg)
	require.NoError(t, err)
	server := httptest.NewServer(b)
	books, err := bank.OpenBooks(t.Context(), cfg.File)
	require.NoError(t, err)
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, b.Close())
		require.NoError(t, books.Close())
	})
	return branch{server.URL, b, books}
}

// answer is what came back; status 0 means that the connection was closed.
type answer struct {
	status   int
	body     string
	replayed bool
}

func (b branch) post(t *testing.T, path, key, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.GetBody = nil // so that net/http does not repeat it
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, string(text), resp.Header.Get("Idempotent-Replayed") == "true"}
}

func (b branch) charge(t *testing.T, key, card string) answer {
	t.Helper()
	return b.post(t, "/charge", key, fmt.Sprintf(`{"order":"o","card":%q,"cents":100}`, card))
}

// effects counts what the books hold.
func (b branch) effects(t *testing.T, kind string) (n int) {
	t.Helper()
	require.NoError(t, b.books.QueryRowContext(t.Context(), `SELECT count(*) FROM effect WHERE kind = ?`, kind).Scan(&n))
	return n
}

func (b branch) requests(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, b.books.QueryRowContext(t.Context(), `SELECT count(*) FROM request`).Scan(&n))
	return n
}

func TestTheFirstAnswerToAKeyIsReplayed(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	first := b.charge(t, "k", "4242")
	require.Equal(t, answer{200, `{"charge":"ch_1"}`, false}, first)
	require.Equal(t, answer{200, `{"charge":"ch_1"}`, true}, b.charge(t, "k", "4242"))
	require.Equal(t, answer{200, `{"charge":"ch_2"}`, false}, b.charge(t, "other", "4242"))
	require.Equal(t, 2, b.effects(t, "charge"))
	require.Equal(t, 3, b.requests(t))
}

func TestARefusalIsReplayedToo(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	require.Equal(t, answer{402, `{"error":"card declined"}`, false}, b.charge(t, "k", bank.Declined))
	require.Equal(t, answer{402, `{"error":"card declined"}`, true}, b.charge(t, "k", bank.Declined))
	require.Zero(t, b.effects(t, "charge"))
}

func TestAnotherRequestUnderTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	require.Equal(t, 200, b.charge(t, "k", "4242").status)
	require.Equal(t, 422, b.charge(t, "k", "4343").status)
	require.Equal(t, 1, b.effects(t, "charge"))
}

func TestWhatIsNoRequestIsRefusedUnwritten(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	require.Equal(t, 400, b.post(t, "/charge", "", `{"order":"o","card":"4242","cents":100}`).status)
	require.Equal(t, 400, b.post(t, "/charge", "k", `{`).status)
	require.Equal(t, 404, b.post(t, "/steal", "k", `{}`).status)
	require.Zero(t, b.requests(t))
	require.Equal(t, 400, b.post(t, "/charge", "k", `{"order":"o","cents":0}`).status)
	require.Zero(t, b.effects(t, "charge"))
}

// Fifty callers with one key: check and effect must be one transaction.
func TestConcurrentRequestsChargeOnce(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	var all sync.WaitGroup
	answers := make([]answer, 50)
	for i := range answers {
		all.Go(func() { answers[i] = b.charge(t, "k", "4242") })
	}
	all.Wait()
	for _, a := range answers {
		require.Equal(t, `{"charge":"ch_1"}`, a.body)
	}
	require.Equal(t, 1, b.effects(t, "charge"))
	require.Equal(t, 50, b.requests(t))
}

func TestCardsStandForTrouble(t *testing.T) {
	t.Parallel()
	for card, want := range map[string]struct {
		statuses [3]int // of three requests with one key
		effects  [3]int // after each
	}{
		bank.FailBefore: {[3]int{500, 200, 200}, [3]int{0, 1, 1}},
		bank.FailAfter:  {[3]int{500, 200, 200}, [3]int{1, 1, 1}},
		bank.DropReply:  {[3]int{0, 200, 200}, [3]int{1, 1, 1}},
		bank.Silent:     {[3]int{0, 0, 0}, [3]int{1, 1, 1}},
		bank.Declined:   {[3]int{402, 402, 402}, [3]int{0, 0, 0}},
		"4242":          {[3]int{200, 200, 200}, [3]int{1, 1, 1}},
	} {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			b := open(t, bank.Config{})
			for i := range 3 {
				require.Equal(t, want.statuses[i], b.charge(t, "k", card).status, "request %d", i+1)
				require.Equal(t, want.effects[i], b.effects(t, "charge"), "request %d", i+1)
			}
		})
	}
}

func TestTroubleBefallsTheRefundToo(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	require.Zero(t, b.charge(t, "k", bank.DropReply).status)
	require.Zero(t, b.post(t, "/refund", "r", `{"order":"o","charge":"ch_1"}`).status)
	require.Equal(t, answer{200, "{}", true}, b.post(t, "/refund", "r", `{"order":"o","charge":"ch_1"}`))
	require.Equal(t, 1, b.effects(t, "refund"))
}

func TestARefundUnderAnotherKeyGivesBackOnce(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	b.charge(t, "k", "4242")
	for _, key := range []string{"r1", "r2"} {
		require.Equal(t, 200, b.post(t, "/refund", key, `{"order":"o","charge":"ch_1"}`).status)
	}
	require.Equal(t, 1, b.effects(t, "refund"))
}

func TestVoidUndoesWhatArrived(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	b.charge(t, "k", "4242")
	for range 2 {
		require.Equal(t, 200, b.post(t, "/void", "v", `{"order":"o","key":"k"}`).status)
	}
	require.Equal(t, 1, b.effects(t, "refund"))
}

func TestVoidBarsWhatArrivesLate(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	require.Equal(t, 200, b.post(t, "/void", "v", `{"order":"o","key":"k"}`).status)
	require.Equal(t, 409, b.charge(t, "k", "4242").status)
	require.Zero(t, b.effects(t, "charge"))
}

func TestABankThatIgnoresKeysChargesAgain(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{IgnoreKeys: true})
	for i := range 3 {
		require.Equal(t, answer{200, fmt.Sprintf(`{"charge":"ch_%d"}`, i+1), false}, b.charge(t, "k", "4242"))
	}
	require.Equal(t, 3, b.effects(t, "charge"))
	require.Equal(t, 200, b.post(t, "/void", "v", `{"order":"o","key":"k"}`).status)
	require.Equal(t, 3, b.effects(t, "refund"))
}

func TestACallerThatGoesAwayIsChargedAllTheSame(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{MinDelay: time.Millisecond, MaxDelay: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/charge", strings.NewReader(`{"order":"o","card":"4242","cents":100}`))
	req.Header.Set("Idempotency-Key", "k")
	b.bank.ServeHTTP(httptest.NewRecorder(), req)
	require.Equal(t, 1, b.effects(t, "charge"))
}

func TestTheBooksOutliveTheBank(t *testing.T) {
	t.Parallel()
	cfg := bank.Config{File: filepath.Join(t.TempDir(), "bank.db")}
	first := open(t, cfg)
	require.Equal(t, 200, first.charge(t, "k", "4242").status)
	second := open(t, cfg)
	require.Equal(t, answer{200, `{"charge":"ch_1"}`, true}, second.charge(t, "k", "4242"))
}

func TestEffectsAreToldOnceDurable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	told := make(chan bank.Effect, 1)
	b := open(t, bank.Config{File: file, OnEffect: func(e bank.Effect) { told <- e }})
	require.Equal(t, 200, b.charge(t, "k", "4242").status)
	e := <-told
	require.Equal(t, "charge k o 100", fmt.Sprintf("%s %s %s %d", e.Kind, e.Key, e.Order, e.Cents))
	b.charge(t, "k", "4242")
	require.Empty(t, told, "a replay has no effect")
}

func TestFindSaysWhatAKeyHasDone(t *testing.T) {
	t.Parallel()
	b := open(t, bank.Config{})
	b.charge(t, "o/charge-card/1", "4242")
	b.charge(t, "o/charge-card/1", "4242")
	require.Equal(t, bank.Found{Requests: 2, Charges: 1, Cents: 100}, b.find(t, "o/charge-card/1"))
	require.Equal(t, bank.Found{}, b.find(t, "another"))
}

func (b branch) find(t *testing.T, key string) (f bank.Found) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/find?key="+url.QueryEscape(key), nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&f))
	return f
}

func TestADelayThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	_, err := bank.Open(t.Context(), bank.Config{File: filepath.Join(t.TempDir(), "bank.db"), MinDelay: time.Second})
	require.ErrorContains(t, err, "1s to 0s")
	_, err = bank.Open(t.Context(), bank.Config{File: filepath.Join(t.TempDir(), "none", "bank.db")})
	require.Error(t, err)
}
