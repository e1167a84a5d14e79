package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/store"
)

func TestPlaceAcceptsAndStartsTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		eng, err := engine.New(db.Store, engine.Config{})
		require.NoError(t, err)
		orders, err := engine.Register(eng, new(order.Shop).Workflow())
		require.NoError(t, err)
		o := order.Order{ID: "order-1", SKU: "lamp", Quantity: 1, Cents: 4990}

		tx, _, rollback := db.begin(t)
		started, err := order.Place(t.Context(), tx, orders, o)
		require.NoError(t, err)
		require.True(t, started.Created)
		rollback()
		_, err = orders.Get(t.Context(), o.ID)
		require.ErrorIs(t, err, engine.ErrNotFound, "the transaction was rolled back")
		require.Zero(t, db.number(t, `SELECT count(*) FROM shop_order`))

		for i := range 2 {
			db.inTx(t, func(tx store.Tx) {
				started, err := order.Place(t.Context(), tx, orders, o)
				require.NoError(t, err)
				require.Equal(t, i == 0, started.Created, "placing it again changes nothing")
			})
		}
		_, err = orders.Get(t.Context(), o.ID)
		require.NoError(t, err)
		require.Equal(t, 1, db.number(t, `SELECT count(*) FROM shop_order`))

		other := o
		other.Cents++
		tx, _, rollback = db.begin(t)
		_, err = order.Place(t.Context(), tx, orders, other)
		require.ErrorIs(t, err, engine.ErrConflict)
		rollback()
	})
}
