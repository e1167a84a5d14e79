package order

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// tables are the shop's own, in a form that both databases understand.
var tables = []string{`
	CREATE TABLE IF NOT EXISTS shop_stock (
		sku     TEXT   NOT NULL PRIMARY KEY,
		initial BIGINT NOT NULL,
		free    BIGINT NOT NULL CHECK (free >= 0)
	)`, `
	CREATE TABLE IF NOT EXISTS shop_reservation (
		order_id TEXT   NOT NULL PRIMARY KEY,
		sku      TEXT   NOT NULL,
		quantity BIGINT NOT NULL,
		status   TEXT   NOT NULL CHECK (status IN ('held', 'released'))
	)`, `
	CREATE TABLE IF NOT EXISTS shop_order (
		order_id TEXT   NOT NULL PRIMARY KEY,
		sku      TEXT   NOT NULL,
		quantity BIGINT NOT NULL,
		cents    BIGINT NOT NULL
	)`,
}

// CreateTables creates the shop's tables where they are not there yet.
func CreateTables(ctx context.Context, tx store.Tx) error {
	for _, table := range tables {
		if _, err := tx.Exec(ctx, table); err != nil {
			return fmt.Errorf("create the shop's tables: %w", err)
		}
	}
	return nil
}
