// Package bank is a payment provider to try workflows against: an HTTP server
// that keeps its books in one SQLite file, honours idempotency keys, and fails
// on request.
//
//	POST /charge  {"order": "order-42", "card": "4242", "cents": 4990}  ->  {"charge": "ch_1"}
//	POST /refund  {"order": "order-42", "charge": "ch_1"}
//	POST /void    {"order": "order-42", "key": "order-42/charge-card/1"}
//	GET  /find?key=order-42/charge-card/1
//
// Each POST carries an Idempotency-Key. The first answer to a key is kept and
// replayed, with the header Idempotent-Replayed, to whoever sends the key
// again; the same key with another request is a 422. Void is for a caller that
// never learnt whether its charge arrived: it refunds what the key has charged,
// and sees to it that the key charges nothing later on.
//
// # Books
//
// A request, its effect and its answer are written down in one transaction that
// is on the disk before the answer goes out, whether the caller still waits or
// not. So the file says how often the bank was asked, and what it did, whatever
// became of those who asked.
//
// # Cards
//
// Like a real provider's test cards, some numbers stand for trouble: see
// [FailBefore] and the others. With Config.IgnoreKeys the bank forgets all it
// has said about keys, and charges whenever it is asked to.
package bank
