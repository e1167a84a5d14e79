package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// SCENARIO 24: 1,500 transfers, of which one in ten is refused after the money has
// moved and one in twenty loses a reply. Meanwhile PostgreSQL is stopped and started
// again and again; on SQLite, which has no server, a worker is killed instead. In the
// end every transfer is over, and the sums are what the completed ones make them.
func TestTransfersThroughOutages(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(w *world) {
		transfers(w, func(stop <-chan struct{}) {
			for open(stop, 1200*time.Millisecond) {
				p := w.process(job{Only: []string{"moving"}}).joined()
				if open(stop, 600*time.Millisecond) {
					p.dies()
				}
			}
		})
	})
	onOwnPostgres(t, func(w *world, server *pgtest.Server) {
		transfers(w, func(stop <-chan struct{}) {
			for open(stop, 4*time.Second) {
				require.NoError(w, server.Stop(pgtest.Immediate))
				require.NoError(w, server.Start())
			}
		})
	})
}

// open waits for d, and reports whether stop was not closed meanwhile.
func open(stop <-chan struct{}, d time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-time.After(d):
		return true
	}
}

// transfers makes them while outages happen, until the last has ended.
func transfers(w *world, outages func(stop <-chan struct{})) {
	w.Helper()
	w.knows("moving")
	w.accounts()
	w.exec(`UPDATE account SET balance = 1000000`)
	many := 1500
	if raced || testing.Short() {
		many = 120
	}
	n := w.worker()
	stop, over := make(chan struct{}), make(chan struct{})
	went := 0
	go func() {
		defer close(over)
		outages(stop)
	}()
	var all sync.WaitGroup
	for lane := range 8 {
		all.Go(func() {
			for i := lane; i < many; i += 8 {
				id := fmt.Sprintf("w%04d", i)
				switch {
				case i%10 == 3:
					w.ledger.next(id, "notify", refused, refused, refused, refused, refused, refused) // however often it is begun anew
				case i%20 == 5:
					w.ledger.next(id, "notify", replyLost)
				}
				if _, err := n.flows["moving"].Start(w.ctx(), id, trip{ID: id, Amount: 1 + i%7}); err != nil {
					w.Errorf("start %s: %v", id, err)
				}
			}
		})
	}
	all.Wait()
	want := 0
	for i := range many {
		status := store.Completed
		if i%10 == 3 {
			status = store.Compensated
		} else {
			want += 1 + i%7
			went++
		}
		n.ends(fmt.Sprintf("w%04d", i), status)
	}
	close(stop)
	<-over
	a, b := w.balances()
	require.Equal(w, [2]int{1000000 - want, 1000000 + want}, [2]int{a, b})
	w.Logf("transfers=%d completed=%d compensated=%d", many, went, many-went)
	for i := range 20 { // the others answer the same
		w.remember("moving", fmt.Sprintf("w%04d", i), trip{ID: fmt.Sprintf("w%04d", i), Amount: 1 + i%7})
	}
}
