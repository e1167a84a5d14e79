package postgres

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// inBody runs body with the driver's transaction, between fence and commit.
func inBody(t *testing.T, body func(context.Context, pgx.Tx) error) error {
	s := open1(t)
	w := alive(t, s)
	_, err := direct(t, s).Exec(t.Context(), "CREATE TABLE public.ledger (n int PRIMARY KEY)")
	require.NoError(t, err)
	tr := startBatch(t, s, w, "wf", 1)[0]
	_, err = s.CommitTx(t.Context(), w, tr.Guard, 20*time.Second, func(ctx context.Context, tx store.Tx) (store.Transition, error) {
		return tr, body(ctx, tx.Unwrap().(pgx.Tx))
	})
	return err
}

// TestBodyMayUseAllOfPgx goes through what the driver's transaction offers.
func TestBodyMayUseAllOfPgx(t *testing.T) {
	t.Parallel()
	err := inBody(t, func(ctx context.Context, tx pgx.Tx) error {
		n, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "ledger"}, []string{"n"}, pgx.CopyFromRows([][]any{{1}, {2}}))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)

		inner, err := tx.Begin(ctx)
		require.NoError(t, err)
		_, err = inner.Exec(ctx, "INSERT INTO public.ledger VALUES (1)")
		require.ErrorContains(t, err, "duplicate key")
		require.NoError(t, inner.Rollback(ctx))
		require.ErrorIs(t, inner.Rollback(ctx), pgx.ErrTxClosed)
		require.NoError(t, pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO public.ledger VALUES (3)")
			return err
		}))

		batch := &pgx.Batch{}
		batch.Queue("INSERT INTO public.ledger VALUES (4)")
		require.NoError(t, tx.SendBatch(ctx, batch).Close())
		_, err = tx.Prepare(ctx, "all of it", "SELECT n FROM public.ledger ORDER BY n")
		require.NoError(t, err)
		rows, err := tx.Query(ctx, "all of it")
		require.NoError(t, err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, []int{1, 2, 3, 4}, all)

		objects := tx.LargeObjects()
		id, err := objects.Create(ctx, 0)
		require.NoError(t, err)
		object, err := objects.Open(ctx, id, pgx.LargeObjectModeWrite)
		require.NoError(t, err)
		_, err = io.WriteString(object, "large")
		require.NoError(t, err)
		require.False(t, tx.Conn().IsClosed())
		return nil
	})
	require.NoError(t, err)
}

// TestBodyMayNotEndItsTransaction shows what is made of a body that tries to,
// or that leaves the transaction unfit.
func TestBodyMayNotEndItsTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body func(context.Context, pgx.Tx) error
		want string
	}{
		"commit":   {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, "ended by the store"},
		"rollback": {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, "ended by the store"},
		"by hand":  {func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "COMMIT"); return err }, "ended the transaction itself"},
		"failed":   {func(ctx context.Context, tx pgx.Tx) error { tx.Exec(ctx, "nonsense"); return nil }, "went on after an error"}, //nolint:errcheck // on purpose
		"rows": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "SELECT 1") //nolint:sqlclosecheck // on purpose
			return err
		}, "left rows open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := inBody(t, c.body)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, store.ErrRetry)
			require.NotErrorIs(t, err, store.ErrUnsure)
		})
	}
}

// TestSerializationFailureInBody shows that a body whom the database asks to
// try again is run again, even if it says something else.
func TestSerializationFailureInBody(t *testing.T) {
	t.Parallel()
	const fail = `DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`
	err := inBody(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fail)
		return err
	})
	require.ErrorIs(t, err, store.ErrRetry)
	err = inBody(t, func(ctx context.Context, tx pgx.Tx) error {
		tx.Exec(ctx, fail) //nolint:errcheck // on purpose
		return pgx.ErrTooManyRows
	})
	require.ErrorIs(t, err, store.ErrRetry)
	require.ErrorIs(t, err, pgx.ErrTooManyRows)
}

// TestStartTx shows that the workflow is there if, and only if, the
// application's transaction commits, at any isolation level.
func TestStartTx(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open1(t)
	conn := direct(t, s)
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		n := store.New{ID: "order-" + string(level), Definition: store.Def{Name: "order", Version: 1}, Owner: store.WorkerID{1}}
		for _, end := range []func(pgx.Tx) error{
			func(tx pgx.Tx) error { return tx.Rollback(ctx) },
			func(tx pgx.Tx) error { return tx.Commit(ctx) },
		} {
			_, err := s.Get(ctx, n.ID)
			require.ErrorIs(t, err, store.ErrNotFound)
			tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			require.NoError(t, err)
			started, err := s.StartTx(ctx, Tx(tx), n)
			require.NoError(t, err)
			require.True(t, started.Created)
			started, err = s.StartTx(ctx, Tx(tx), n)
			require.NoError(t, err)
			require.False(t, started.Created)
			require.NoError(t, end(tx))
		}
		found, err := s.Get(ctx, n.ID)
		require.NoError(t, err)
		require.True(t, found.Owner.IsZero())
	}
}
