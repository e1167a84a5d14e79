package store

import (
	"context"
	"time"
)

// Operations is what people need who look after workflows.
type Operations interface {
	// Amend writes a transition of a workflow that nobody owns, ended ones
	// included, together with the request that caused it, which counts as taken up.
	// It is Lost, and nothing is written, if the revision is another, if somebody
	// owns the row, or if a request of that id was taken up before: so it may be
	// repeated with the same id, by anybody, and is applied once. The row is owned
	// by nobody afterwards.
	Amend(ctx context.Context, t Transition, r Request) (Verdict, error)

	// Requests returns what was ever asked of a workflow and its branches by
	// signals, cancellations and verbs, oldest first; none if it does not exist.
	Requests(ctx context.Context, id string) ([]Request, error)

	// Expire makes tombstones of workflows that have ended: their payloads, records
	// and branches go; the row stays as EXPIRED, and with it whatever people have
	// asked of it. It returns the ids of those that were made one, and passes over
	// the others.
	Expire(ctx context.Context, ids []string) (expired []string, err error)
}

// Request is a message and what has become of it.
type Request struct {
	Message
	TakenAt time.Time // when it was taken up, by the database's clock; zero if it was not. Set by the store
	Answer  string    // what its sender is told; "" if there is nothing to say
}
