package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var commitTxTests = []test{
	{"WritesBothOrNeither", txBoth},
	{"BodysErrorRollsBack", txBodyError},
	{"PanicRollsBack", txPanic},
	{"GoexitRollsBack", txGoexit},
	{"RefusedStepRollsBack", txRefused},
	{"FailedStatementRollsBack", txFailedStatement},
	{"OverdueIsRolledBack", txOverdue},
	{"OverdueBodyKeepsNobodyWaiting", txOverstays},
	{"CancelledIsRolledBack", txCancelled},
	{"WritesEveryField", txFields},
	{"ConsumesMessages", txConsumes},
	{"TheGuardIsTheCallers", txGuard},
}

// bodyFunc is the body of a CommitTx.
type bodyFunc = func(context.Context, store.Tx) (store.Transition, error)

// commitTx commits a transition of wf, owned by w, with body.
func (e *env) commitTx(w store.WorkerID, wf store.Workflow, body bodyFunc) (store.Verdict, error) {
	return e.st.CommitTx(e.ctx, w, guard(wf), patience, body)
}

// tryInTx runs f in a transaction of its own, that of a workflow that exists
// only for it. The error of f's rolls it back.
func (e *env) tryInTx(f func(store.Tx) error) error {
	id := "storetest/" + freshID().String()
	w := freshID()
	rs, err := e.st.Start(e.ctx, []store.New{{ID: id, Definition: store.Def{Name: "storetest", Version: 1}, Owner: w, Place: pending(charge, never)}})
	require.NoError(e, err)
	require.True(e, rs[0].Created)
	v, err := e.st.CommitTx(e.ctx, w, store.Guard{ID: id, Revision: 1}, patience, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		return store.Transition{Place: completed}, f(tx)
	})
	if err == nil {
		require.Equal(e, store.Applied, v)
	}
	return err
}

// inTx runs f in a transaction that is committed.
func (e *env) inTx(f func(store.Tx)) {
	require.NoError(e, e.tryInTx(func(tx store.Tx) error { f(tx); return nil }))
}

// ledger is a table of the user's: the effects of step bodies.
type ledger struct {
	e    *env
	name string
}

// newLedger makes a table that is dropped at the end of the test.
func newLedger(e *env) ledger {
	l := ledger{e: e, name: "ledger_" + freshID().String()[24:]}
	e.inTx(func(tx store.Tx) {
		_, err := tx.Exec(e.ctx, "CREATE TABLE "+l.name+" (id TEXT PRIMARY KEY, amount BIGINT NOT NULL)")
		require.NoError(e, err)
	})
	e.Cleanup(func() {
		e.inTx(func(tx store.Tx) {
			_, err := tx.Exec(e.ctx, "DROP TABLE "+l.name)
			require.NoError(e, err)
		})
	})
	return l
}

// add writes one row in tx.
func (l ledger) add(tx store.Tx, id string, amount int64) error {
	n, err := tx.Exec(l.e.ctx, "INSERT INTO "+l.name+" (id, amount) VALUES ($1, $2)", id, amount)
	if err == nil && n != 1 {
		return errors.New("the insert changed no row")
	}
	return err
}

// increase adds 1 to a row in tx, and makes it if need be.
func (l ledger) increase(tx store.Tx, id string) error {
	_, err := tx.Exec(l.e.ctx, "INSERT INTO "+l.name+" (id, amount) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET amount = "+l.name+".amount + 1", id)
	return err
}

// sum returns how many rows are committed and the sum of their amounts.
func (l ledger) sum() (rows, amount int64) {
	l.e.inTx(func(tx store.Tx) {
		row := tx.QueryRow(l.e.ctx, "SELECT count(*), CAST(coalesce(sum(amount), 0) AS BIGINT) FROM "+l.name)
		require.NoError(l.e, row.Scan(&rows, &amount))
	})
	return rows, amount
}

func (l ledger) requireRows(want int64) {
	l.e.Helper()
	rows, _ := l.sum()
	require.Equal(l.e, want, rows, "rows of the user's table")
}

func txBoth(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	v, err := e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		var amount int64
		require.NoError(e, tx.QueryRow(e.ctx, "SELECT amount FROM "+l.name+" WHERE id = $1", "a").Scan(&amount))
		require.EqualValues(e, 5, amount, "the body sees what it wrote")
		return store.Transition{Place: completed, Steps: []store.StepRecord{done("charge", 1)}}, nil
	})
	require.NoError(e, err)
	require.Equal(e, store.Applied, v)
	l.requireRows(1)
	require.Equal(e, store.Completed, e.get("a").Status)
	require.EqualValues(e, 2, e.get("a").Revision)
	require.Len(e, e.history("a"), 1)
	require.EqualValues(e, 2, e.history("a")[0].Revision)
}

// untouched asserts that neither the body's write nor the transition is there
// and that the workflow can go on.
func (l ledger) untouched(w store.WorkerID, wf store.Workflow) {
	e := l.e
	e.Helper()
	l.requireRows(0)
	require.Equal(e, wf, e.get(wf.ID))
	require.Empty(e, e.history(wf.ID))
	e.apply(w, wf, completed)
}

func txBodyError(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	own := errors.New("out of stock")
	v, err := e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		return everything(guard(wf)), own
	})
	require.Equal(e, store.Lost, v)
	require.Same(e, own, err, "it is returned as it is")
	l.untouched(w, wf)
}

// txPanic: the transaction is rolled back and the panic goes on to the caller,
// who knows what to make of it.
func txPanic(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	require.PanicsWithValue(e, "boom", func() {
		e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) { //nolint:errcheck // it panics
			require.NoError(e, l.add(tx, "a", 5))
			panic("boom")
		})
	})
	l.untouched(w, wf)
}

func txGoexit(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	together(1, func(int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) { //nolint:errcheck // it does not return
				if err := l.add(tx, "a", 5); err != nil {
					e.Error(err)
				}
				goexit()
				return store.Transition{Place: completed}, nil
			})
		}()
		<-done
	})
	l.untouched(w, wf)
}

// txRefused: a transition that the database refuses takes the body's writes
// with it.
func txRefused(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	_, err := e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		return store.Transition{Place: completed, Steps: []store.StepRecord{done("charge", 1), done("charge", 1)}}, nil
	})
	require.Error(e, err)
	require.NotErrorIs(e, err, store.ErrRetry)
	l.untouched(w, wf)
}

// txFailedStatement: a statement that fails spoils the transaction, whether
// the body tells or not.
func txFailedStatement(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	_, err := e.commitTx(w, wf, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		require.Error(e, l.add(tx, "a", 6), "the key is taken")
		require.Error(e, l.add(tx, "b", 7), "the transaction has failed")
		return store.Transition{Place: completed}, nil
	})
	require.Error(e, err)
	l.untouched(w, wf)
}

// txOverdue: a body that heeds its context ends when the limit has passed; it
// is told so, not asked to try again.
func txOverdue(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	v, err := e.st.CommitTx(e.ctx, w, guard(wf), 100*time.Millisecond, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		<-ctx.Done()
		return store.Transition{Place: completed}, nil
	})
	require.Equal(e, store.Lost, v)
	require.ErrorIs(e, err, context.DeadlineExceeded)
	require.NotErrorIs(e, err, store.ErrRetry)
	require.NotErrorIs(e, err, store.ErrUnsure)
	l.untouched(w, wf)
}

// txOverstays: a body that does not heed its context, like a process that is
// paused, does not keep the row from others longer than its limit.
func txOverstays(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	begun, resume, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	goOn := sync.OnceFunc(func() { close(resume) })
	defer goOn()
	go func() {
		_, err := e.st.CommitTx(e.ctx, w, guard(wf), 300*time.Millisecond, func(_ context.Context, tx store.Tx) (store.Transition, error) {
			err := l.add(tx, "a", 5)
			close(begun)
			<-resume
			return store.Transition{Place: completed}, err
		})
		ended <- err
	}()
	e.await(begun)
	vs := e.retry(func() ([]store.Verdict, error) {
		return e.st.Commit(e.ctx, w, []store.Transition{{Guard: guard(wf), Place: waiting(never)}})
	})
	require.Equal(e, []store.Verdict{store.Applied}, vs)
	goOn()
	require.Error(e, <-ended)
	l.requireRows(0)
	require.Equal(e, store.Waiting, e.get("a").Status)
}

// await waits for c to be closed.
func (e *env) await(c <-chan struct{}) {
	select {
	case <-c:
	case <-e.ctx.Done():
		require.FailNow(e, "it did not happen in time")
	}
}

// retry calls f until it does not ask to be tried again.
func (e *env) retry(f func() ([]store.Verdict, error)) []store.Verdict {
	for {
		vs, err := f()
		if errors.Is(err, store.ErrRetry) && e.ctx.Err() == nil {
			continue
		}
		require.NoError(e, err)
		return vs
	}
}

func txCancelled(e *env) {
	l := newLedger(e)
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	ctx, cancel := context.WithCancel(e.ctx)
	_, err := e.st.CommitTx(ctx, w, guard(wf), patience, func(_ context.Context, tx store.Tx) (store.Transition, error) {
		require.NoError(e, l.add(tx, "a", 5))
		cancel()
		return store.Transition{Place: completed}, nil
	})
	require.ErrorIs(e, err, context.Canceled)
	require.NotErrorIs(e, err, store.ErrUnsure)
	l.untouched(w, wf)
}

func txFields(e *env) {
	w := e.worker()
	p := pending(charge, in(time.Hour))
	p.Data = []byte("data")
	wf := e.startAs(w, "a", p)
	to := waiting(keep)
	to.Cursor, to.Error, to.Pivoted = []byte("cursor"), "declined", true
	to.Mark = store.Mark{Step: "refund", Group: 2, Attempt: 3, Failures: 4, Crashes: 5}
	_, err := e.commitTx(w, wf, func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Place: to, Release: true}, nil
	})
	require.NoError(e, err)
	got := e.get("a")
	want := wf
	want.Place, want.Owner, want.Revision, want.UpdatedAt = to, store.WorkerID{}, 2, got.UpdatedAt
	want.Wake, want.Data = store.Wake{}, []byte("data")
	require.Equal(e, want, got)
}

func txConsumes(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", waiting(never))
	e.send("a", "m1")
	e.send("a", "m2")
	_, err := e.commitTx(w, wf, func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Place: waiting(never), Consumed: []store.Consumed{{MessageID: "m1"}}, Seen: []string{"m2"}}, nil
	})
	require.NoError(e, err)
	require.Equal(e, []string{"m2"}, e.inbox("a"))
	require.Empty(e, e.mail(w))
}

// txGuard: what counts is the guard that was checked, whatever the body says.
func txGuard(e *env) {
	w := e.worker()
	wf := e.startAs(w, "a", pending(charge, never))
	other := e.startAs(w, "b", pending(charge, never))
	v, err := e.commitTx(w, wf, func(context.Context, store.Tx) (store.Transition, error) {
		return store.Transition{Guard: guard(other), Place: completed}, nil
	})
	require.NoError(e, err)
	require.Equal(e, store.Applied, v)
	require.Equal(e, store.Completed, e.get("a").Status)
	require.Equal(e, other, e.get("b"))
}
