// Workerd is a worker for the order saga, and its command line. To make your
// own, copy main.go and change the import.
//
//	workerd run --database-url sqlite:orders.db
//	workerd workflow start order order-1 --database-url sqlite:orders.db --wait \
//		--input '{"id":"order-1","sku":"lamp","quantity":1,"cents":4990,"card":"4242","address":"12 Harbour Road"}'
//
// At its start it puts lamps on the shelf, by a workflow of its own. Money is
// charged at the bank that BANK_URL names, such as the one that the command
// "order-saga bank" runs; without it the bank is of paper.
//
// All commands, flags and exit codes are described in package daemon.
package main
