package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// memory is a Beater that remembers.
type memory struct {
	last []byte
	err  error
}

func (m *memory) Beat(_ context.Context, p []byte) error { m.last = p; return m.err }

func (m *memory) Last(context.Context) ([]byte, error) { return m.last, m.err }

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	m := &memory{}
	ctx := step.WithBeater(t.Context(), m)
	var n int
	ok, err := step.Progress(ctx, &n)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, step.Heartbeat(ctx, 7))
	ok, err = step.Progress(ctx, &n)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 7, n)

	var text []string
	_, err = step.Progress(ctx, &text)
	require.ErrorIs(t, err, step.ErrDecode)
	require.ErrorIs(t, step.Heartbeat(ctx, func() {}), step.ErrEncode)
	require.ErrorIs(t, step.Heartbeat(ctx, strings.Repeat("x", step.MaxProgress)), step.ErrProgressTooLarge)
	require.Equal(t, "7", string(m.last), "what is refused is not written")

	m.err = errors.New("gone")
	require.ErrorIs(t, step.Heartbeat(ctx, 8), m.err)
	_, err = step.Progress(ctx, &n)
	require.ErrorIs(t, err, m.err)

	m.last, m.err = nil, nil
	cut, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("cut off"))
	require.ErrorContains(t, step.Heartbeat(cut, 9), "cut off")
	require.Nil(t, m.last, "an attempt that is over leaves nothing")
	require.ErrorIs(t, step.Heartbeat(t.Context(), 1), step.ErrNoHeartbeat)
	_, err = step.Progress(t.Context(), &n)
	require.ErrorIs(t, err, step.ErrNoHeartbeat)
}
