package step_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlhq/pawl/step"
)

// A step that calls a payment provider, and its compensation. The provider
// sees one key however often it is called, and so charges once.
func Example() {
	type bill struct{ Cents int }
	type payment struct{ ID string }

	charge := func(ctx context.Context, key step.Key, in bill) (payment, error) {
		fmt.Printf("charge %d cents, Idempotency-Key: %s\n", in.Cents, key.Header())
		return payment{ID: "ch_1"}, nil
	}
	refund := func(ctx context.Context, key step.Key, d step.Done[bill, payment]) error {
		if !d.Known {
			fmt.Printf("look for the charge by its key %s\n", d.Key)
			return nil
		}
		fmt.Printf("refund %s, Idempotency-Key: %s\n", d.Out.ID, key.Header())
		return nil
	}
	st := step.Call("charge-card", charge).
		With(step.Policy{Attempts: 6, Timeout: 10 * time.Second}).
		Undo(step.UndoCall("refund-card", refund).With(step.Policy{Attempts: step.Forever}))

	// What an engine does with it: bytes in, bytes out.
	ctx, spec := context.Background(), st.Spec()
	key, undoKey := step.NewKey("order-42", spec.Name, 1), step.NewKey("order-42", spec.Undo.Name, 1)
	in := []byte(`{"Cents":4990}`)
	out, err := spec.Run(ctx, step.Env{Key: key}, in)
	fmt.Println(string(out), err)

	done := step.Undoes{Key: key, In: in, Out: out, Known: true}
	_, err = spec.Undo.Run(ctx, step.Env{Key: undoKey, Undoes: done}, nil)
	fmt.Println(err)

	lost := step.Undoes{Key: key, In: in}
	_, err = spec.Undo.Run(ctx, step.Env{Key: undoKey, Undoes: lost}, nil)
	fmt.Println(err)

	// Output:
	// charge 4990 cents, Idempotency-Key: order-42/charge-card/1
	// {"ID":"ch_1"} <nil>
	// refund ch_1, Idempotency-Key: order-42/refund-card/1
	// <nil>
	// look for the charge by its key order-42/charge-card/1
	// <nil>
}

// The three ways to fail: refused, asked to come back later, and unknown.
func ExampleReject() {
	declined := step.Reject(errors.New("card declined"))
	busy := step.RetryAfter(errors.New("too many requests"), 30*time.Second)
	lost := errors.New("connection reset")

	for _, err := range []error{declined, busy, lost} {
		pause, asked := step.AskedPause(err)
		fmt.Println(err, step.IsRejected(err), pause, asked)
	}

	// Output:
	// card declined true 0s false
	// too many requests false 30s true
	// connection reset false 0s false
}

func ExampleKey() {
	key := step.NewKey("order-9527/PAY", "charge-card", 2)
	fmt.Println(key)
	fmt.Println(key.Step(), key.Group())
	fmt.Println(key.UUID())

	// Output:
	// order-9527/PAY/charge-card/2
	// charge-card 2
	// 8fc6df3a-d004-5655-855c-e92d3552e05d
}

func ExamplePolicy_Pause() {
	p := step.Policy{Backoff: step.Exponential(time.Second, 10*time.Second)}
	for failures := 1; failures <= 5; failures++ {
		fmt.Println(p.Pause(failures, 0), "or as little as", p.Pause(failures, 0.999999).Round(time.Millisecond))
	}

	// Output:
	// 1s or as little as 800ms
	// 2s or as little as 1.6s
	// 4s or as little as 3.2s
	// 8s or as little as 6.4s
	// 10s or as little as 8s
}
