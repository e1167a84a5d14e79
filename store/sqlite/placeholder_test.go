package sqlite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out string
		highest int
	}{
		{"", "", 0},
		{"SELECT 1", "SELECT 1", 0},
		{"a = $1", "a = ?1", 1},
		{"($2,$1,$12)", "(?2,?1,?12)", 12},
		{"$1$2", "$1$2", 0},
		{"a$1 = $1", "a$1 = ?1", 1},
		{"$name = $1", "$name = ?1", 1},
		{"$1a, $0, $01, $, $-", "$1a, $0, $01, $, $-", 0},
		{"$99999, $100000", "?99999, $100000", 99999},
		{"'$1', $2", "'$1', ?2", 2},
		{"'it''s $1', $2", "'it''s $1', ?2", 2},
		{`"$1", $2`, `"$1", ?2`, 2},
		{`"a""$1", $2`, `"a""$1", ?2`, 2},
		{"`$1`, $2", "`$1`, ?2", 2},
		{"[$1], $2", "[$1], ?2", 2},
		{"-- $1\n$2", "-- $1\n?2", 2},
		{"-- $1", "-- $1", 0},
		{"/* $1 -- */ $2", "/* $1 -- */ ?2", 2},
		{"/* $1", "/* $1", 0},
		{"/*/ $1 */ $2", "/*/ $1 */ ?2", 2},
		{"5-$1", "5-?1", 1},
		{"5/$1*$2", "5/?1*?2", 2},
		{"'$1", "'$1", 0},
		{"é$1, $2", "é$1, ?2", 2},
		{"?1, $2", "?1, ?2", 2},
	} {
		out, highest := numbered(c.in)
		require.Equal(t, c.out, out, c.in)
		require.Equal(t, c.highest, highest, c.in)
	}
}

func TestBindableCountsArguments(t *testing.T) {
	t.Parallel()
	_, err := bindable("$1, $2", 2)
	require.NoError(t, err)
	for _, n := range []int{0, 1, 3} {
		_, err := bindable("$1, $2", n)
		require.Error(t, err, "%d arguments", n)
	}
	_, err = bindable("?, ?", 2)
	require.NoError(t, err, "SQLite's own placeholders are its business")
}

// FuzzNumbered: whatever the statement, only a '$' before a digit becomes '?',
// nothing in a string changes, and a second pass changes nothing.
func FuzzNumbered(f *testing.F) {
	for _, s := range []string{"a = $1", "'$1' \"$2\" [$3] `$4` $5", "--$1\n$2/*$3*/$4", "'it''s $1", "$1$2 a$3 $x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, highest := numbered(in)
		require.Len(t, out, len(in))
		changed := 0
		for i := range len(in) {
			if in[i] != out[i] {
				changed++
				require.Equal(t, "$?", string([]byte{in[i], out[i]}))
				require.True(t, i+1 < len(in) && '1' <= in[i+1] && in[i+1] <= '9')
			}
		}
		require.Equal(t, changed > 0, highest > 0)
		again, more := numbered(out)
		require.Equal(t, out, again)
		require.Zero(t, more)

		quoted := "'" + strings.ReplaceAll(in, "'", "''") + "'"
		same, none := numbered(quoted)
		require.Equal(t, quoted, same)
		require.Zero(t, none)
		prefixed, _ := numbered(quoted + " $7")
		require.Equal(t, quoted+" ?7", prefixed)
	})
}
