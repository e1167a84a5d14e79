package order

import (
	"context"

	"github.com/pawlhq/pawl/step"
)

// PaperBank is a [Bank] that keeps no books and moves no money, for a program
// that has no other. Its answers follow from the key alone, so it honours keys
// without remembering them.
type PaperBank struct{}

// Charge implements [Bank].
func (PaperBank) Charge(_ context.Context, key step.Key, _ Bill) (string, error) {
	return "paper-" + key.UUID(), nil
}

// Refund implements [Bank].
func (PaperBank) Refund(context.Context, step.Key, string, string) error { return nil }

// Void implements [Bank].
func (PaperBank) Void(context.Context, step.Key, string, step.Key) error { return nil }
