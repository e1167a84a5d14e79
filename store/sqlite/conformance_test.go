package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
	"github.com/pawlhq/pawl/store/storetest"
)

// TestConformance holds the store to the contract.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
}

// open opens a store on a new file and closes it at the end of the test.
func open(t testing.TB, opts ...sqlite.Option) *sqlite.Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "test.db"), opts...)
}
