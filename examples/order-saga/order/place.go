package order

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// Place accepts an order: its row in the shop's own table and its workflow come
// to exist together, when tx commits, or not at all. Placing the same order
// again changes nothing; another order of the same id is an
// engine.ErrConflict.
func Place(ctx context.Context, tx store.Tx, orders *engine.Workflow[Order], o Order) (engine.Started, error) {
	_, err := tx.Exec(ctx, `
		INSERT INTO shop_order (order_id, sku, quantity, cents)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (order_id) DO NOTHING`, o.ID, o.SKU, o.Quantity, o.Cents)
	if err != nil {
		return engine.Started{}, fmt.Errorf("accept order %q: %w", o.ID, err)
	}
	return orders.StartTx(ctx, tx, o.ID, o)
}
