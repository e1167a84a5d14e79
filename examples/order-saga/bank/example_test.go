package bank_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
)

// The reply to a charge is lost. The caller asks again with the same key, and
// learns what the first request did.
func Example() {
	dir, err := os.MkdirTemp("", "bank")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := bank.Open(context.Background(), bank.Config{File: filepath.Join(dir, "bank.db")})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	server := httptest.NewServer(b)
	defer server.Close()

	for range 2 {
		body := strings.NewReader(`{"order": "order-42", "card": "drop-reply", "cents": 4990}`)
		req, err := http.NewRequest(http.MethodPost, server.URL+"/charge", body)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "order-42/charge-card/1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Println("no reply")
			continue
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(text), "replayed:", resp.Header.Get("Idempotent-Replayed"))
		resp.Body.Close()
	}
	// Output:
	// no reply
	// {"charge":"ch_1"} replayed: true
}
