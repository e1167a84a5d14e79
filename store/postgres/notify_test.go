package postgres

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

// TestListenReconnects shows that a listener whose connection is killed hears
// again, by itself.
func TestListenReconnects(t *testing.T) {
	t.Parallel()
	s := open1(t)
	conn := direct(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard, ended := make(chan store.Topic, 1000), make(chan error, 1)
	go func() { ended <- s.Listen(ctx, func(topic store.Topic) { heard <- topic }) }()
	require.Equal(t, store.TopicReady, <-heard, "after each connect there may be something")
	require.Equal(t, store.TopicEnded, <-heard)

	require.NoError(t, s.Notify(ctx, store.TopicEnded))
	require.Equal(t, store.TopicEnded, <-heard)

	var pid int
	require.NoError(t, conn.QueryRow(ctx, `
		SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`).Scan(&pid))
	kill(t, conn, pid)
	require.Equal(t, store.TopicReady, <-heard)
	require.Equal(t, store.TopicEnded, <-heard)
	require.NoError(t, s.Notify(ctx, store.TopicReady))
	require.Equal(t, store.TopicReady, <-heard)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
