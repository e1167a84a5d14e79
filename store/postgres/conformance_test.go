package postgres

import (
	"testing"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/storetest"
)

// TestConformance runs the suite that every store passes: with one bucket, with
// several, and with a pool of a single connection.
func TestConformance(t *testing.T) {
	for name, opts := range map[string][]Option{
		"one bucket":     {WithPool(8)},
		"four buckets":   {WithPool(8), WithBuckets(4)},
		"one connection": {WithPool(1)},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return openNew(t, opts...) })
		})
	}
}
