package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// Query selects workflows. A zero field does not restrict.
type Query struct {
	Definition string             `json:"definition,omitempty"`
	Statuses   []store.Status     `json:"statuses,omitempty"`
	State      statemachine.State `json:"state,omitempty"`
	Since      time.Time          `json:"since,omitzero"` // last changed at this time or later
}

// ErrBadQuery says that a query cannot be meant; the message names the term.
var ErrBadQuery = errors.New("bad query")

// queryStatuses are the statuses that a query may name.
var queryStatuses = []store.Status{
	store.Pending, store.Waiting, store.Compensating, store.Held,
	store.Completed, store.Compensated, store.Failed, store.Terminated, store.Expired,
}

// ParseQuery reads a query such as "type:order status:held,waiting since:2h
// state:paying", all of whose terms must hold. Since counts back from now. An empty
// query is refused: it would mean everything.
func ParseQuery(text string, now time.Time) (q Query, err error) {
	terms := strings.Fields(text)
	if len(terms) == 0 {
		return q, fmt.Errorf("%w: it is empty; name what you mean, such as type:order status:held", ErrBadQuery)
	}
	seen := map[string]bool{}
	for _, term := range terms {
		field, value, ok := strings.Cut(term, ":")
		switch {
		case !ok || value == "":
			return Query{}, fmt.Errorf("%w: %q is not field:value", ErrBadQuery, term)
		case seen[field]:
			return Query{}, fmt.Errorf("%w: %q comes twice", ErrBadQuery, field)
		}
		seen[field] = true
		if err := q.term(field, value, now); err != nil {
			return Query{}, err
		}
	}
	return q, nil
}

// term adds one term.
func (q *Query) term(field, value string, now time.Time) error {
	switch field {
	case "type":
		q.Definition = value
	case "state":
		q.State = statemachine.State(value)
	case "status":
		for _, name := range strings.Split(value, ",") {
			s := store.Status(strings.ToUpper(name))
			if !slices.Contains(queryStatuses, s) {
				return fmt.Errorf("%w: there is no status %q", ErrBadQuery, name)
			}
			q.Statuses = append(q.Statuses, s)
		}
	case "since":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return fmt.Errorf("%w: since:%s is no time, such as 90m or 2h", ErrBadQuery, value)
		}
		q.Since = now.Add(-d)
	default:
		return fmt.Errorf("%w: there is no field %q: they are type, status, state and since", ErrBadQuery, field)
	}
	return nil
}

// fits tells what the store's own query leaves open.
func (q Query) fits(info Info) bool {
	return (q.State == "" || info.State == q.State) && (q.Since.IsZero() || !info.UpdatedAt.Before(q.Since))
}
