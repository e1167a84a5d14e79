// Package order is the workflow of the order saga: the life of an order as a
// table of states, and the steps that move it.
//
//	reserve stock   InTx   in the shop's own tables, in the workflow's transaction
//	charge card     Call   at the bank, always with the same key
//	approval        Await  a clerk's signal, where the order is dear
//	print label     Call   the pivot: from here on there is only forward
//	mail receipt    Call   cannot be unsent, and needs no undo; at the same time
//	file invoice    Child  a workflow of its own, which the order waits for
//
// If anything is refused or fails for good before the label is printed, what
// was done is undone, newest first: the money goes back, then the stock.
//
//	shop := &order.Shop{Bank: &order.HTTPBank{URL: "http://127.0.0.1:8080"}}
//	orders, err := engine.Register(eng, shop.Workflow())
//
// [Shop.Workflow] is the place to begin reading. Each step body is a method of
// [Shop], so what it needs is a field, and its signature is its guarantee.
//
// # The shop's tables
//
// Stock, reservations and accepted orders live in the database that holds the
// workflows, made by [CreateTables]. That is what lets [Shop.Reserve] take
// stock in the very transaction that records that it did, and [Place] accept an
// order in the one that starts its workflow. The statements run on PostgreSQL
// and SQLite alike.
//
// # What is played
//
// The bank is real as far as a workflow can tell: another process that may
// fail, hang or fall silent. The courier, the post office and the tax office are
// played by pure functions: what matters here is when they are called, not what they do.
package order
