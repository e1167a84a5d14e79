package store

import "context"

// Census tells what a database holds of definitions.
type Census interface {
	// Definitions returns all recorded definitions, by name and version.
	Definitions(ctx context.Context) ([]Definition, error)

	// Open counts what has not ended, branches included, by where it stands.
	Open(ctx context.Context) ([]Standing, error)
}

// Standing is how many workflows and branches of a definition stand in one place.
type Standing struct {
	Def
	State string
	Step  string // the marked step; "" if none
	Count int
	ID    string // one of them
}
