package bank

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Config configures a [Bank]. Only File is required.
type Config struct {
	// File holds the books. It is created if it is not there.
	File string

	// MinDelay and MaxDelay bound how long a request takes. Part of it passes
	// before the effect and the rest between the effect and the answer.
	MinDelay, MaxDelay time.Duration

	// Seed decides the delays.
	Seed uint64

	// IgnoreKeys makes the bank charge whenever it is asked to, whatever the
	// Idempotency-Key says.
	IgnoreKeys bool

	// OnEffect, if not nil, is called once an effect is durable and before it is
	// answered. It must not block.
	OnEffect func(Effect)
}

// Effect is something that the bank did.
type Effect struct {
	Kind   string    `json:"kind"` // charge, refund or void
	Key    string    `json:"key"`
	Order  string    `json:"order"`
	Caller string    `json:"caller"`
	Cents  int64     `json:"cents"`
	At     time.Time `json:"at"`
}

// Bank is the server. It is an [http.Handler], safe for concurrent use.
type Bank struct {
	cfg   Config
	books *sql.DB
	mux   *http.ServeMux

	mu   sync.Mutex
	rand *rand.Rand
}

// Open opens the bank's books. Close must be called when it serves no more.
func Open(ctx context.Context, cfg Config) (*Bank, error) {
	if cfg.MinDelay < 0 || cfg.MaxDelay < cfg.MinDelay {
		return nil, fmt.Errorf("open bank: a delay of %v to %v makes no sense", cfg.MinDelay, cfg.MaxDelay)
	}
	books, err := OpenBooks(ctx, cfg.File)
	if err != nil {
		return nil, err
	}
	b := &Bank{cfg: cfg, books: books, mux: http.NewServeMux(), rand: rand.New(rand.NewPCG(cfg.Seed, 1))}
	for _, path := range []string{"/charge", "/refund", "/void"} {
		b.mux.HandleFunc("POST "+path, b.post)
	}
	b.mux.HandleFunc("GET /find", b.find)
	return b, nil
}

// Close closes the books.
func (b *Bank) Close() error { return b.books.Close() }

// ServeHTTP implements [http.Handler].
func (b *Bank) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// order is what a POST asks for. Which fields count depends on the path.
type order struct {
	Order  string `json:"order"`
	Card   string `json:"card,omitempty"`
	Cents  int64  `json:"cents,omitempty"`
	Charge string `json:"charge,omitempty"`
	Key    string `json:"key,omitempty"` // of the charge to void
}

// request is a POST that has been read.
type request struct {
	path   string
	key    string
	caller string
	text   string // path and body, to tell one request from another
	order  order
}

// post answers one request for an effect.
func (b *Bank) post(w http.ResponseWriter, r *http.Request) {
	req, err := read(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// What has arrived is carried out, whether the caller still waits or not.
	ctx := context.WithoutCancel(r.Context())
	before, after := b.delays()
	sleep(ctx, before)
	done, err := b.handle(ctx, req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, e := range done.effects {
		if b.cfg.OnEffect != nil {
			b.cfg.OnEffect(e)
		}
	}
	sleep(r.Context(), after)
	reply(w, done)
}

func reply(w http.ResponseWriter, done outcome) {
	switch done.mishap {
	case dropReply:
		panic(http.ErrAbortHandler) // net/http closes the connection
	case failBefore, failAfter:
		http.Error(w, "the bank is out of order", http.StatusInternalServerError)
		return
	}
	if done.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(done.status)
	fmt.Fprint(w, done.body)
}

const maxBody = 64 << 10

func read(w http.ResponseWriter, r *http.Request) (request, error) {
	req := request{path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), caller: r.UserAgent()}
	if req.key == "" {
		return req, fmt.Errorf("%s: the header Idempotency-Key is missing", req.path)
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req.order); err != nil {
		return req, fmt.Errorf("%s: %w", req.path, err)
	}
	canonical, err := json.Marshal(req.order)
	if err != nil {
		return req, fmt.Errorf("%s: %w", req.path, err)
	}
	req.text = req.path + " " + string(canonical)
	return req, nil
}

// delays returns how long to wait before the effect and after it.
func (b *Bank) delays() (before, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := b.cfg.MinDelay + time.Duration(b.rand.Float64()*float64(b.cfg.MaxDelay-b.cfg.MinDelay))
	before = time.Duration(b.rand.Float64() * float64(total))
	return before, total - before
}

// sleep returns when d has passed or ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
