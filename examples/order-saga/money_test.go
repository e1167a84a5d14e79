package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMoneyIsReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"49.90": 4990, "49.9": 4990, "49": 4900, "0.01": 1, "0.29": 29, "1.10": 110, "92233720368547758.07": 1<<63 - 1} {
		got, err := parseMoney(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1.234", "1,50", "0", "0.00", " 1", "1e3", "x", "92233720368547758.08"} {
		_, err := parseMoney(text)
		require.ErrorIs(t, err, errUsage, "%q", text)
	}
}

func TestMoneyIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{0: "0.00", 1: "0.01", 4990: "49.90", -105: "-1.05"} {
		require.Equal(t, want, money(cents))
	}
}
