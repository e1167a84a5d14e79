package postgres

import (
	"testing"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

// TestConformance runs the suite that every store passes: as it is by default,
// and at both extremes, dealt into buckets and with a pool of one connection.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{
		"one bucket":                   {WithPool(8)},
		"four buckets, one connection": {WithPool(1), WithBuckets(4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store { return openNew(t, opts...) })
		})
	}
}
