package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/order"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

func TestReserveTakesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		shop := &order.Shop{}
		db.inTx(t, func(tx store.Tx) { require.NoError(t, order.Stock(t.Context(), tx, "lamp", 3)) })
		db.inTx(t, func(tx store.Tx) {
			got, err := shop.Reserve(t.Context(), tx, order.StockRequest{OrderID: "a", SKU: "lamp", Quantity: 2})
			require.NoError(t, err)
			require.Equal(t, order.Reservation{SKU: "lamp", Quantity: 2}, got)
		})
		db.inTx(t, func(tx store.Tx) {
			_, err := shop.Reserve(t.Context(), tx, order.StockRequest{OrderID: "b", SKU: "lamp", Quantity: 2})
			require.ErrorIs(t, err, order.ErrOutOfStock)
			require.True(t, step.IsRejected(err), "asking again cannot help")
		})
		require.Equal(t, 1, db.number(t, `SELECT free FROM shop_stock WHERE sku = 'lamp'`))
		require.Equal(t, 1, db.number(t, `SELECT count(*) FROM shop_reservation`))
	})
}

func TestReserveRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		db.inTx(t, func(tx store.Tx) { require.NoError(t, order.Stock(t.Context(), tx, "lamp", 3)) })
		for _, in := range []order.StockRequest{
			{OrderID: "", SKU: "lamp", Quantity: 1},
			{OrderID: "a", SKU: "lamp", Quantity: 0},
			{OrderID: "a", SKU: "lamp", Quantity: -1},
		} {
			db.inTx(t, func(tx store.Tx) {
				_, err := new(order.Shop).Reserve(t.Context(), tx, in)
				require.ErrorIs(t, err, order.ErrBadOrder)
				require.True(t, step.IsRejected(err))
			})
		}
		require.Equal(t, 3, db.number(t, `SELECT free FROM shop_stock WHERE sku = 'lamp'`))
	})
}

func TestReleaseTwiceGivesBackOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		shop := &order.Shop{}
		in := order.StockRequest{OrderID: "a", SKU: "lamp", Quantity: 2}
		db.inTx(t, func(tx store.Tx) {
			require.NoError(t, order.Stock(t.Context(), tx, "lamp", 3))
			_, err := shop.Reserve(t.Context(), tx, in)
			require.NoError(t, err)
		})
		for range 2 {
			db.inTx(t, func(tx store.Tx) {
				require.NoError(t, shop.Release(t.Context(), tx, step.Done[order.StockRequest, order.Reservation]{In: in, Known: true}))
			})
		}
		require.Equal(t, 3, db.number(t, `SELECT free FROM shop_stock WHERE sku = 'lamp'`))
	})
}

func TestReleaseOfWhatWasNeverReservedDoesNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		db.inTx(t, func(tx store.Tx) {
			require.NoError(t, order.Stock(t.Context(), tx, "lamp", 3))
			d := step.Done[order.StockRequest, order.Reservation]{In: order.StockRequest{OrderID: "a", SKU: "lamp", Quantity: 2}}
			require.NoError(t, new(order.Shop).Release(t.Context(), tx, d))
		})
		require.Equal(t, 3, db.number(t, `SELECT free FROM shop_stock WHERE sku = 'lamp'`))
	})
}

func TestStockLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		db.inTx(t, func(tx store.Tx) {
			require.NoError(t, order.Stock(t.Context(), tx, "lamp", 3))
			require.NoError(t, order.Stock(t.Context(), tx, "lamp", 1000))
		})
		require.Equal(t, 3, db.number(t, `SELECT initial FROM shop_stock WHERE sku = 'lamp'`))
	})
}

func TestShelveStocksOnceAndRefusesNonsense(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, db shopDB) {
		shop := &order.Shop{}
		db.inTx(t, func(tx store.Tx) {
			for range 2 {
				_, err := shop.Shelve(t.Context(), tx, order.Delivery{SKU: "lamp", Quantity: 3})
				require.NoError(t, err)
			}
			for _, d := range []order.Delivery{{SKU: "", Quantity: 1}, {SKU: "rug", Quantity: 0}} {
				_, err := shop.Shelve(t.Context(), tx, d)
				require.ErrorIs(t, err, order.ErrBadOrder)
				require.True(t, step.IsRejected(err))
			}
		})
		require.Equal(t, 3, db.number(t, `SELECT sum(free) FROM shop_stock`))
	})
}
