// Order-saga takes orders through stock, payment, approval and delivery, kills
// the processes that do it, and then counts the money.
//
//	go run ./examples/order-saga
//
// Without an argument it shows three orders: one that completes, one that is
// refused at shipping and so is undone, and one whose worker is killed with
// SIGKILL after the bank has charged the card and before that was recorded.
// Another worker takes that order over and asks the bank again with the same
// key, so the card is charged once.
//
//	go run ./examples/order-saga chaos --orders 300 --workers 3 --kill-every 400ms
//
// does that to hundreds of orders at once, at random moments. With
// --no-idempotency the bank ignores the keys, and the audit says what that
// costs.
//
// The parts are commands too, to be run in terminals of their own: bank,
// worker, order and audit. All take --database-url, sqlite:PATH or
// postgres://…; the default is sqlite:./order-saga.db.
//
// # The audit
//
// The last line of all three says what the databases hold:
//
//	AUDIT orders=3 completed=2 compensated=1 kills=1 takeovers=1 bank_requests=5 charges=3 double_charges=0 lost_orders=0 stock_errors=0 OK
//
// It is counted by SQL from the bank's own file and the order database: nothing
// of it comes from the engine's memory or its counters. A double charge is a
// charge beyond one for an order. A lost order was accepted, and did not end,
// or ended with the wrong money: a completed one must have paid its price, and
// a compensated one nothing. A stock error is an SKU of which another number is
// gone than completed orders took. Takeovers are the orders that a killed worker
// owned when it died and that went on afterwards. If a figure is wrong the line
// ends in FAILED, the lines before it name the orders, and the exit code is 1.
//
// # Exit codes
//
// 0 if all went well, 1 if something failed or the audit did, 2 if the program
// was called in a way that it does not understand.
//
// # Reading the source
//
// Begin with order/workflow.go, then order/shop.go and order/stock.go: that is
// what a user of pawl writes. worker.go shows how it is run, place.go in
// package order how an order is accepted. The rest is the stage: child
// processes, the tour, the chaos and the audit.
package main
