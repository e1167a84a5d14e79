package main

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/bank"
)

// message is what a child process tells its parent: one JSON line on standard
// output, with one field set.
type message struct {
	Ready   *ready            `json:"ready,omitempty"`
	Step    *engine.StepEvent `json:"step,omitempty"`
	Stalled *stalled          `json:"stalled,omitempty"`
	Effect  *bank.Effect      `json:"effect,omitempty"`
}

// ready says that the child is at work.
type ready struct {
	URL string `json:"url,omitempty"` // a bank's
}

// stalled says that the bank has charged an order, and that the worker holds
// still before it records that.
type stalled struct {
	Order string `json:"order"`
	Key   string `json:"key"`
}

// teller writes messages. It is safe for concurrent use.
type teller struct {
	mu  sync.Mutex
	enc *json.Encoder
}

func newTeller(w io.Writer) *teller { return &teller{enc: json.NewEncoder(w)} }

// tell writes one message. A parent that is gone has no use for it.
func (t *teller) tell(m message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.enc.Encode(m)
}
