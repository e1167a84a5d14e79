package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoSlotIsLostAndNoneRunsTwice(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, 300*time.Millisecond))
	require.Regexp(t, `^every 300 milliseconds: report\n`, out.String())
	require.Regexp(t, `(?m)^\S+Z  FIRED   report/\S+Z$`, out.String())
	require.Regexp(t, `\nslots=\d\d fired=\d\d runs=\d\d OK\n$`, out.String())
}
