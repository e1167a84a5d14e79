package bank

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelaysStayWithinBoundsAndFollowTheSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (all []time.Duration) {
		b, err := Open(t.Context(), Config{
			File: filepath.Join(t.TempDir(), "bank.db"), Seed: seed, MinDelay: 20 * time.Millisecond, MaxDelay: 200 * time.Millisecond,
		})
		require.NoError(t, err)
		defer b.Close()
		for range 200 {
			before, after := b.delays()
			require.GreaterOrEqual(t, before+after, 20*time.Millisecond)
			require.LessOrEqual(t, before+after, 200*time.Millisecond)
			require.GreaterOrEqual(t, min(before, after), time.Duration(0))
			all = append(all, before, after)
		}
		return all
	}
	require.Equal(t, draw(1), draw(1))
	require.NotEqual(t, draw(1), draw(2))
}
