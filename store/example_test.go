package store_test

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

// A transition whose belief is out of date changes nothing.
func ExampleStore() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()

	me := store.WorkerID{1}
	err = st.Join(ctx, store.Worker{ID: me}, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	_, err = st.Start(ctx, []store.New{{
		ID: "order-1", Owner: me, Definition: store.Def{Name: "order", Version: 1},
		Place: store.Place{Status: store.Pending, State: "paying", Mark: store.Mark{Step: "charge", Group: 1, Attempt: 1}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	done := store.Transition{Guard: store.Guard{ID: "order-1", Revision: 1}, Place: store.Place{Status: store.Completed, State: "paid"}}
	for range 2 {
		verdicts, err := st.Commit(ctx, me, []store.Transition{done})
		fmt.Println(verdicts[0] == store.Applied, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}
