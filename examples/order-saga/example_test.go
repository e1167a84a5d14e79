package main

import "os"

// The line that everything ends with. A wrong figure has a line of its own
// before it.
func Example() {
	lamp := orderRow{id: "order-x-1", status: "COMPLETED", cents: 4990}
	rug := orderRow{id: "order-x-2", status: "COMPENSATED", cents: 100}
	a := &audit{}
	a.judgeOrder(lamp, account{requests: 2, charges: 1, charged: 4990})
	a.judgeOrder(rug, account{requests: 1, charges: 1, charged: 100})
	_ = a.print(os.Stdout)
	// Output:
	// wrong: order-x-2: COMPENSATED, but the bank kept 1.00 and not 0.00
	// AUDIT orders=2 completed=1 compensated=1 kills=0 takeovers=0 bank_requests=3 charges=2 double_charges=0 lost_orders=1 stock_errors=0 FAILED
}
