package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/store"
)

// alive lets a worker join whose lease outlives the test.
func alive(t testing.TB, s *Store) store.WorkerID {
	w := store.WorkerID{0: 1, 15: 9}
	require.NoError(t, s.Join(context.Background(), store.Worker{ID: w, Host: "host"}, time.Hour))
	return w
}

// waitingForLock waits until a backend of the database waits for a lock, and
// returns its process id.
func waitingForLock(t testing.TB, conn *pgx.Conn) (pid int) {
	require.Eventually(t, func() bool {
		err := conn.QueryRow(context.Background(), `
			SELECT pid FROM pg_stat_activity
			WHERE  datname = current_database() AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`).Scan(&pid)
		return err == nil
	}, 20*time.Second, time.Millisecond)
	return pid
}

// lockRow locks a workflow's row by a transaction of somebody else's.
func lockRow(t testing.TB, s *Store, id string) pgx.Tx {
	tx, err := direct(t, s).Begin(context.Background())
	require.NoError(t, err)
	_, err = tx.Exec(context.Background(), "SELECT 1 FROM pawl.workflow WHERE id = $1 FOR UPDATE", id)
	require.NoError(t, err)
	return tx
}

// TestLockedRowIsBusy shows that a batch whose row somebody else keeps locked
// is rolled back as a whole, soon, and goes through once the row is free.
func TestLockedRowIsBusy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open1(t)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 3)
	tx := lockRow(t, s, ts[1].ID)

	short, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err := s.Commit(short, w, ts)
	require.ErrorIs(t, err, store.ErrBusy)
	require.ErrorIs(t, err, store.ErrRetry)
	require.NotErrorIs(t, err, store.ErrUnsure)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, "the driver's error stays reachable")
	history, err := s.History(ctx, ts[0].ID)
	require.NoError(t, err)
	require.Empty(t, history, "its neighbours were not written either")

	_, err = s.CommitTx(ctx, w, ts[1].Guard, time.Minute, nil)
	require.ErrorIs(t, err, store.ErrBusy, "and the body was not run")

	require.NoError(t, tx.Rollback(ctx))
	verdicts, err := s.Commit(ctx, w, ts)
	require.NoError(t, err)
	require.Equal(t, []store.Verdict{store.Applied, store.Applied, store.Applied}, verdicts)
}

// TestKilledBeforeCommit shows that a backend that is killed while a batch
// waits for a lock leaves no doubt: its COMMIT was never reached.
func TestKilledBeforeCommit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open1(t)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 2)
	lockRow(t, s, ts[1].ID)
	answer := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, w, ts)
		answer <- err
	}()
	conn := direct(t, s)
	kill(t, conn, waitingForLock(t, conn))
	err := <-answer
	require.ErrorIs(t, err, store.ErrRetry)
	require.NotErrorIs(t, err, store.ErrUnsure)
	require.NotErrorIs(t, err, store.ErrBusy)
}

// kill ends a backend.
func kill(t testing.TB, conn *pgx.Conn, pid int) {
	var done bool
	require.NoError(t, conn.QueryRow(context.Background(), "SELECT pg_terminate_backend($1)", pid).Scan(&done))
	require.True(t, done)
}

// holdCommits makes COMMIT of a change to the workflow's row wait: a deferred
// trigger, the test's own, waits there for a lock that somebody else has.
const holdCommits = `
CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL lock_timeout = 0;
    PERFORM pg_advisory_xact_lock(4711);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON pawl.workflow
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.hold()`

// TestKilledAtCommit shows that a backend that is killed while COMMIT is under
// way leaves the outcome unknown, through both doors.
func TestKilledAtCommit(t *testing.T) {
	t.Parallel()
	doors := map[string]func(*Store, store.WorkerID, store.Transition) error{
		"Commit": func(s *Store, w store.WorkerID, tr store.Transition) error {
			_, err := s.Commit(context.Background(), w, []store.Transition{tr})
			return err
		},
		"CommitTx": func(s *Store, w store.WorkerID, tr store.Transition) error {
			_, err := s.CommitTx(context.Background(), w, tr.Guard, time.Minute,
				func(context.Context, store.Tx) (store.Transition, error) { return tr, nil })
			return err
		},
	}
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := open1(t)
			w := alive(t, s)
			tr := startBatch(t, s, w, "wf", 1)[0]
			conn := direct(t, s)
			_, err := conn.Exec(ctx, holdCommits)
			require.NoError(t, err)
			_, err = conn.Exec(ctx, "SELECT pg_advisory_lock(4711)")
			require.NoError(t, err)
			answer := make(chan error, 1)
			go func() { answer <- door(s, w, tr) }()
			kill(t, conn, waitingForLock(t, conn))
			err = <-answer
			require.ErrorIs(t, err, store.ErrUnsure)
			require.NotErrorIs(t, err, store.ErrRetry)
			positions, err := s.ReadBack(ctx, []string{tr.ID})
			require.NoError(t, err)
			require.Equal(t, []store.Position{{ID: tr.ID, Revision: 1, Owner: w}}, positions)
		})
	}
}

// TestCancelledCommitIsUnsure shows that a caller who goes away while its
// commit is under way is not told that nothing was written.
func TestCancelledCommitIsUnsure(t *testing.T) {
	t.Parallel()
	s := open1(t)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 1)
	lockRow(t, s, ts[0].ID)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, w, ts)
		answer <- err
	}()
	waitingForLock(t, direct(t, s))
	cancel()
	err := <-answer
	require.ErrorIs(t, err, store.ErrUnsure)
	require.ErrorIs(t, err, context.Canceled)

	_, err = s.Commit(ctx, w, ts)
	require.ErrorIs(t, err, store.ErrRetry, "nothing was sent")
	require.ErrorIs(t, err, context.Canceled)
}

// TestBackendKilledInBody shows that a body whose connection breaks is to be
// run again, whatever it makes of the error.
func TestBackendKilledInBody(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open1(t)
	w := alive(t, s)
	tr := startBatch(t, s, w, "wf", 1)[0]
	conn := direct(t, s)
	for name, end := range map[string]func(error) error{
		"returned":  func(err error) error { return err },
		"rewritten": func(error) error { return errors.New("could not reserve") },
		"ignored":   func(error) error { return nil },
	} {
		_, err := s.CommitTx(ctx, w, tr.Guard, time.Minute, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
			var pid int
			require.NoError(t, tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid))
			kill(t, conn, pid)
			_, err := tx.Exec(ctx, "SELECT 1")
			require.Error(t, err)
			return tr, end(err)
		})
		require.ErrorIs(t, err, store.ErrRetry, name)
		require.NotErrorIs(t, err, store.ErrUnsure, name)
	}
}

// TestBodyThatOverstays shows that a body that does not heed its context
// keeps neither the row nor the only connection of the pool.
func TestBodyThatOverstays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openNew(t, WithPool(1))
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 1)
	begun, resume, answer := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := s.CommitTx(ctx, w, ts[0].Guard, 200*time.Millisecond,
			func(context.Context, store.Tx) (store.Transition, error) {
				close(begun)
				<-resume
				return ts[0], nil
			})
		answer <- err
	}()
	<-begun
	require.Eventually(t, func() bool {
		verdicts, err := s.Commit(ctx, w, ts)
		return err == nil && verdicts[0] == store.Applied
	}, 30*time.Second, time.Millisecond)
	close(resume)
	err := <-answer
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, store.ErrUnsure)
}

// TestServerKnowsTheLimit shows that the server is told the limit of a body:
// it is what bounds the statement of a process that is paused meanwhile. What
// the role has chosen for locks is left to the body.
func TestServerKnowsTheLimit(t *testing.T) {
	t.Parallel()
	s := open1(t)
	w := alive(t, s)
	tr := startBatch(t, s, w, "wf", 1)[0]
	settings := map[string]string{
		"statement_timeout": "7s", "idle_in_transaction_session_timeout": "7s", "lock_timeout": "0",
	}
	if s.version >= transactionTimeoutServer {
		settings["transaction_timeout"] = "7s"
	}
	_, err := s.CommitTx(t.Context(), w, tr.Guard, 7*time.Second,
		func(ctx context.Context, tx store.Tx) (store.Transition, error) {
			for name, want := range settings {
				var got string
				require.NoError(t, tx.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got))
				require.Equal(t, want, got, name)
			}
			return tr, nil
		})
	require.NoError(t, err)
}

// TestServerBoundsStatementOfBody shows that one long statement of a body ends
// with the limit, as a failure of the body's and not as a wish to try again.
func TestServerBoundsStatementOfBody(t *testing.T) {
	t.Parallel()
	s := open1(t)
	w := alive(t, s)
	tr := startBatch(t, s, w, "wf", 1)[0]
	_, err := s.CommitTx(t.Context(), w, tr.Guard, 100*time.Millisecond,
		func(_ context.Context, tx store.Tx) (store.Transition, error) {
			_, err := tx.Exec(context.Background(), "SELECT pg_sleep(60)")
			return tr, err
		})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, store.ErrRetry)
}

// TestOutcome pins what each answer of the server's, or none, means.
func TestOutcome(t *testing.T) {
	t.Parallel()
	answer := func(severity, code string) error { return &pgconn.PgError{SeverityUnlocalized: severity, Code: code} }
	lost := errors.New("unexpected EOF")
	for _, c := range []struct {
		err  error
		at   stage
		want error
	}{
		{answer("ERROR", "40001"), sent, store.ErrRetry},
		{answer("ERROR", "40001"), committing, store.ErrRetry},
		{answer("ERROR", "40P01"), sent, store.ErrRetry},
		{answer("FATAL", "57P03"), reading, store.ErrRetry},
		{answer("FATAL", "53300"), reading, store.ErrRetry},
		{answer("ERROR", "25006"), sent, store.ErrRetry},
		{answer("ERROR", "55P03"), sent, store.ErrBusy},
		{answer("ERROR", "53100"), sent, store.ErrFull},
		{answer("ERROR", "42P01"), sent, store.ErrSchemaMissing},
		{answer("ERROR", "3F000"), sent, store.ErrSchemaMissing},
		{answer("ERROR", "23505"), sent, nil},
		{answer("ERROR", "23505"), committing, nil},
		{answer("FATAL", "57P01"), sent, store.ErrRetry},
		{answer("FATAL", "57P01"), committing, store.ErrUnsure},
		{answer("FATAL", "57P01"), reading, store.ErrRetry},
		{answer("FATAL", "08P01"), sent, store.ErrUnsure}, // a pooler that lost its server
		{answer("FATAL", "08P01"), reading, store.ErrRetry},
		{lost, sent, store.ErrUnsure},
		{lost, committing, store.ErrUnsure},
		{lost, reading, store.ErrRetry},
		{lost, unsent, store.ErrRetry},
		{&unsentError{lost}, sent, store.ErrRetry},
		{context.DeadlineExceeded, sent, store.ErrUnsure},
		{answer("FATAL", "28P01"), unsent, store.ErrRetry}, // a password that is being changed
	} {
		require.Equal(t, c.want, outcome(c.err, c.at), "%v at %d", c.err, c.at)
	}
}

// TestServerAway shows what calls say while the server is down, and that they
// work again, by themselves, once it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := pgtest.Start(t)
	s := openAt(t, server.URL(), WithPool(2))
	_, err := s.Migrate(ctx)
	require.NoError(t, err)
	w := alive(t, s)
	ts := startBatch(t, s, w, "wf", 1)
	_, err = s.Renew(ctx, w, time.Hour)
	require.NoError(t, err)

	require.NoError(t, server.Stop(pgtest.Immediate))
	_, err = s.Commit(ctx, w, ts)
	require.Error(t, err)
	require.True(t, errors.Is(err, store.ErrRetry) || errors.Is(err, store.ErrUnsure), err)
	_, err = s.Renew(ctx, w, time.Hour)
	require.Error(t, err)
	_, err = s.Get(ctx, ts[0].ID)
	require.ErrorIs(t, err, store.ErrRetry)
	_, err = Open(ctx, server.URL())
	require.ErrorIs(t, err, store.ErrRetry)

	require.NoError(t, server.Start())
	require.Eventually(t, func() bool {
		verdicts, err := s.Commit(ctx, w, ts)
		return err == nil && verdicts[0] == store.Applied
	}, 30*time.Second, 10*time.Millisecond)
	still, err := s.Renew(ctx, w, time.Hour)
	require.NoError(t, err)
	require.True(t, still)
}

// TestExhaustedPool shows that a call that finds no connection says so, and
// that the lease is renewed all the same.
func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	s := openNew(t, WithPool(1))
	w := alive(t, s)
	held, err := s.acquire(t.Context())
	require.NoError(t, err)
	defer held.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Workers(ctx)
	require.ErrorIs(t, err, store.ErrRetry)
	still, err := s.Renew(t.Context(), w, time.Hour)
	require.NoError(t, err)
	require.True(t, still)
}
