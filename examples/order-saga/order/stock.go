package order

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// Reserve takes stock, in the transaction that records the reservation. The
// condition is part of the update, so two orders cannot both get the last one.
func (s *Shop) Reserve(ctx context.Context, tx store.Tx, in StockRequest) (Reservation, error) {
	if in.OrderID == "" || in.Quantity < 1 {
		return Reservation{}, step.Reject(fmt.Errorf("reserve %d of %q for order %q: %w", in.Quantity, in.SKU, in.OrderID, ErrBadOrder))
	}
	taken, err := tx.Exec(ctx, `
		UPDATE shop_stock SET free = free - $2
		WHERE sku = $1 AND free >= $2`, in.SKU, in.Quantity)
	if err != nil {
		return Reservation{}, fmt.Errorf("take stock of %q: %w", in.SKU, err)
	}
	if taken == 0 {
		return Reservation{}, step.Reject(fmt.Errorf("take %d of %q: %w", in.Quantity, in.SKU, ErrOutOfStock))
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO shop_reservation (order_id, sku, quantity, status)
		VALUES ($1, $2, $3, 'held')`, in.OrderID, in.SKU, in.Quantity)
	if err != nil {
		return Reservation{}, fmt.Errorf("reserve for order %q: %w", in.OrderID, err)
	}
	return Reservation{in.SKU, in.Quantity}, nil
}

// Release gives the stock back. It is guarded by the reservation's own status,
// so it would be harmless to call it twice, whoever called it.
func (s *Shop) Release(ctx context.Context, tx store.Tx, d step.Done[StockRequest, Reservation]) error {
	released, err := tx.Exec(ctx, `
		UPDATE shop_reservation SET status = 'released'
		WHERE order_id = $1 AND status = 'held'`, d.In.OrderID)
	if err != nil {
		return fmt.Errorf("release order %q: %w", d.In.OrderID, err)
	}
	if released == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, `
		UPDATE shop_stock SET free = free + $2
		WHERE sku = $1`, d.In.SKU, d.In.Quantity)
	if err != nil {
		return fmt.Errorf("give back stock of %q: %w", d.In.SKU, err)
	}
	return nil
}

// Stock puts a new SKU on the shelf. One that is there already stays as it is.
func Stock(ctx context.Context, tx store.Tx, sku string, quantity int) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO shop_stock (sku, initial, free)
		VALUES ($1, $2, $2)
		ON CONFLICT (sku) DO NOTHING`, sku, quantity)
	if err != nil {
		return fmt.Errorf("stock %q: %w", sku, err)
	}
	return nil
}
