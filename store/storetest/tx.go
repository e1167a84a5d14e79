package storetest

import (
	"reflect"
	"runtime"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

func goexit() { runtime.Goexit() }

var txTests = []test{
	{"CountsChangedRows", txRowsChanged},
	{"NoRows", txNoRows},
	{"ReadsManyRows", txManyRows},
	{"NumbersPlaceholders", txPlaceholders},
	{"LeavesStringsAndComments", txLiterals},
	{"CountsArguments", txArguments},
	{"KeepsValues", txValues},
	{"Null", txNull},
	{"Unwraps", txUnwrap},
}

func txRowsChanged(e *env) {
	l := newLedger(e)
	e.inTx(func(tx store.Tx) {
		for _, id := range []string{"a", "b", "c"} {
			require.NoError(e, l.add(tx, id, 1))
		}
		n, err := tx.Exec(e.ctx, "UPDATE "+l.name+" SET amount = 2 WHERE id > $1", "a")
		require.NoError(e, err)
		require.EqualValues(e, 2, n)
		n, err = tx.Exec(e.ctx, "DELETE FROM "+l.name+" WHERE id = $1", "z")
		require.NoError(e, err)
		require.Zero(e, n)
	})
}

func txNoRows(e *env) {
	l := newLedger(e)
	e.inTx(func(tx store.Tx) {
		var amount int64
		require.ErrorIs(e, tx.QueryRow(e.ctx, "SELECT amount FROM "+l.name+" WHERE id = $1", "a").Scan(&amount), store.ErrNoRows)
		require.NoError(e, l.add(tx, "a", 5), "a query without rows is no failure")
	})
	l.requireRows(1)
}

func txManyRows(e *env) {
	l := newLedger(e)
	e.inTx(func(tx store.Tx) {
		for i, id := range []string{"b", "a", "c"} {
			require.NoError(e, l.add(tx, id, int64(i)))
		}
		rows, err := tx.Query(e.ctx, "SELECT id, amount FROM "+l.name+" WHERE amount >= $1 ORDER BY id", 0)
		require.NoError(e, err)
		got := map[string]int64{}
		for rows.Next() {
			var (
				id     string
				amount int64
			)
			require.NoError(e, rows.Scan(&id, &amount))
			got[id] = amount
		}
		require.NoError(e, rows.Err())
		require.NoError(e, rows.Close())
		require.Equal(e, map[string]int64{"a": 1, "b": 0, "c": 2}, got)

		rows, err = tx.Query(e.ctx, "SELECT id FROM "+l.name)
		require.NoError(e, err)
		require.True(e, rows.Next())
		require.NoError(e, rows.Close(), "rows may be closed before their end")
		require.NoError(e, l.add(tx, "d", 4))
	})
}

// txPlaceholders: a placeholder is known by its number, not by its place.
func txPlaceholders(e *env) {
	l := newLedger(e)
	e.inTx(func(tx store.Tx) {
		_, err := tx.Exec(e.ctx, "INSERT INTO "+l.name+" (amount, id) VALUES ($2, $1)", "a", 5)
		require.NoError(e, err)
		var id string
		require.NoError(e, tx.QueryRow(e.ctx, "SELECT id FROM "+l.name+" WHERE amount = $2 AND id = $1 AND amount = $2", "a", 5).Scan(&id))
		require.Equal(e, "a", id)
	})
}

func txLiterals(e *env) {
	l := newLedger(e)
	e.inTx(func(tx store.Tx) {
		_, err := tx.Exec(e.ctx, `
			INSERT INTO `+l.name+` (id, amount) -- not $3
			VALUES ('it''s $2, "$4"', $1) /* nor $5 */`, 5)
		require.NoError(e, err)
		var id string
		require.NoError(e, tx.QueryRow(e.ctx, `SELECT id AS "$9" FROM `+l.name+` WHERE amount = $1`, 5).Scan(&id))
		require.Equal(e, `it's $2, "$4"`, id)
	})
}

// txArguments: an argument too few is an error, never a NULL.
func txArguments(e *env) {
	l := newLedger(e)
	update := "UPDATE " + l.name + " SET amount = 7 WHERE id = $1 OR id = $2"
	for _, args := range [][]any{{}, {"a"}, {"a", "b", "c"}} {
		require.Error(e, e.tryInTx(func(tx store.Tx) error {
			require.NoError(e, l.add(tx, "a", 5))
			_, err := tx.Exec(e.ctx, update, args...)
			return err
		}), "%d arguments", len(args))
	}
	l.requireRows(0)
}

// txValues: what goes in comes out, in the Go types that step bodies use.
func txValues(e *env) {
	table := "values_" + freshID().String()[24:]
	bytes := []byte{0, 1, 0xff, 0xfe, 0}
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	e.inTx(func(tx store.Tx) {
		_, err := tx.Exec(e.ctx, "CREATE TABLE "+table+" (i BIGINT, s TEXT, b BYTEA, t BOOLEAN, f BOOLEAN, d DOUBLE PRECISION, z TIMESTAMPTZ, e BYTEA)")
		require.NoError(e, err)
		n, err := tx.Exec(e.ctx, "INSERT INTO "+table+" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
			int64(-1)<<63, "ünï'\"\\ 2024-02-29", bytes, true, false, 0.1, at, []byte{})
		require.NoError(e, err)
		require.EqualValues(e, 1, n)
	})
	e.inTx(func(tx store.Tx) {
		var (
			i       int64
			s       string
			b, none []byte
			yes, no bool
			d       float64
			z       time.Time
		)
		require.NoError(e, tx.QueryRow(e.ctx, "SELECT i, s, b, t, f, d, z, e FROM "+table).Scan(&i, &s, &b, &yes, &no, &d, &z, &none))
		require.Equal(e, int64(-1)<<63, i)
		require.Equal(e, "ünï'\"\\ 2024-02-29", s)
		require.Equal(e, bytes, b)
		require.True(e, yes)
		require.False(e, no)
		require.Equal(e, 0.1, d) //nolint:testifylint // bit for bit
		require.True(e, at.Equal(z), "%v is not %v", z, at)
		require.NotNil(e, none)
		require.Empty(e, none)
		_, err := tx.Exec(e.ctx, "DROP TABLE "+table)
		require.NoError(e, err)
	})
}

func txNull(e *env) {
	e.inTx(func(tx store.Tx) {
		i, s, b := new(int64), new(string), []byte("old")
		row := tx.QueryRow(e.ctx, "SELECT CAST(NULL AS BIGINT), CAST(NULL AS TEXT), CAST(NULL AS BYTEA)")
		require.NoError(e, row.Scan(&i, &s, &b))
		require.Nil(e, i)
		require.Nil(e, s)
		require.Nil(e, b)
	})
}

// txUnwrap: the portable transaction gives the store's own, of the type that
// the store says.
func txUnwrap(e *env) {
	e.inTx(func(tx store.Tx) {
		require.NotNil(e, tx.Unwrap())
		require.True(e, reflect.TypeOf(tx.Unwrap()).AssignableTo(e.st.TxType()),
			"%T is not a %v", tx.Unwrap(), e.st.TxType())
	})
}
