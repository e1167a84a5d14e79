package main

import (
	"context"
	"log"
	"time"
)

func Example() {
	if err := run(context.Background(), time.Second); err != nil {
		log.Fatal(err)
	}
	// Output:
	// chair    reserve 4990 cents, key chair/reserve/1
	// chair    spend 4990 cents, approved by ada, key chair/spend/1
	// chair    COMPLETED, approved by ada
	// yacht    reserve 4990 cents, key yacht/reserve/1
	// yacht    release 4990 cents, key yacht/release/1
	// yacht    COMPENSATED, not done within 1s
}
