package order

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Delivery is the data of a workflow of [Shop.Stocking].
type Delivery struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

func (d Delivery) itself() Delivery { return d }

// Stocking puts the first delivery of a SKU on the shelf, and builds the shelf
// before where there is none: one step, in the workflow's own transaction. With
// it a worker alone is enough to open a shop.
func (s *Shop) Stocking() statemachine.Definition[Delivery] {
	shelve := step.InTx("shelve", s.Shelve).With(patient).NoUndo("goods on the shelf harm nobody")
	return statemachine.Definition[Delivery]{
		Name:    "stocking",
		Version: 1,
		Start:   "shelving",
		States: statemachine.States[Delivery]{
			"shelving": statemachine.Do(shelve, Delivery.itself, nil).Then("shelved"),
		},
		Ends:      statemachine.Ends{"shelved": statemachine.Completed, "sent-back": statemachine.RolledBack},
		OnFailure: "sent-back",
	}
}

// Shelve creates the shop's tables where they are not there yet, and stocks the
// SKU. One that is there already stays as it is.
func (s *Shop) Shelve(ctx context.Context, tx store.Tx, d Delivery) (step.None, error) {
	if d.SKU == "" || d.Quantity < 1 {
		return step.None{}, step.Reject(fmt.Errorf("shelve %d of %q: %w", d.Quantity, d.SKU, ErrBadOrder))
	}
	if err := CreateTables(ctx, tx); err != nil {
		return step.None{}, err
	}
	return step.None{}, Stock(ctx, tx, d.SKU, d.Quantity)
}
