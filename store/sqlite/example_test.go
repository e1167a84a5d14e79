package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/store"
	"github.com/pawlhq/pawl/store/sqlite"
)

// A workflow is started together with the row that it is about: in one
// transaction of the program's, in the same file.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()

	tx, err := st.DB().BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER)"); err != nil {
		log.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES ('order-42', 4990)"); err != nil {
		log.Fatal(err)
	}
	started, err := st.StartTx(ctx, sqlite.Tx(tx), store.New{
		ID:         "order-42",
		Definition: store.Def{Name: "order", Version: 1},
		Place:      store.Place{Status: store.Pending, State: "Reserving", Wake: store.Wake{Kind: store.WakeAfter}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", started.Created)

	w, err := st.Get(ctx, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.ID, w.Status, w.State)
	// Output:
	// created: true
	// order-42 PENDING Reserving
}

// The body of a step that writes the user's own table: its write and the
// transition are one transaction.
func ExampleStore_CommitTx() {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	if _, err := st.DB().ExecContext(ctx, "CREATE TABLE stock (sku TEXT PRIMARY KEY, free INTEGER); INSERT INTO stock VALUES ('shoe', 3)"); err != nil {
		log.Fatal(err)
	}

	worker := store.WorkerID{1}
	start := store.New{ID: "order-42", Owner: worker, Place: store.Place{Status: store.Pending, State: "Reserving"}}
	if _, err := st.Start(ctx, []store.New{start}); err != nil {
		log.Fatal(err)
	}
	reserve := func(ctx context.Context, tx store.Tx) (store.Transition, error) {
		if _, err := tx.Exec(ctx, "UPDATE stock SET free = free - 1 WHERE sku = $1", "shoe"); err != nil {
			return store.Transition{}, err
		}
		return store.Transition{Place: store.Place{Status: store.Completed, State: "Reserved"}}, nil
	}
	for range 2 { // the second time the workflow has moved on: the body does not run
		verdict, err := st.CommitTx(ctx, worker, store.Guard{ID: "order-42", Revision: 1}, time.Second, reserve)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("applied:", verdict == store.Applied)
	}
	var free int
	if err := st.DB().QueryRowContext(ctx, "SELECT free FROM stock").Scan(&free); err != nil {
		log.Fatal(err)
	}
	fmt.Println("free:", free)
	// Output:
	// applied: true
	// applied: false
	// free: 2
}
