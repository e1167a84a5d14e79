package step_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// A context that no engine has made says so.
func TestInfoOfNoBody(t *testing.T) {
	info, ok := step.InfoFrom(context.Background())
	require.False(t, ok)
	require.Zero(t, info)
	require.Empty(t, step.WorkflowID(context.Background()))
}

func TestInfoIsFound(t *testing.T) {
	want := step.Info{WorkflowID: "w", Step: "s", Group: 2, Attempt: 3, Item: 4, Key: step.NewItemKey("w", "s", 4, 2)}
	ctx := step.WithInfo(context.Background(), want)
	info, ok := step.InfoFrom(ctx)
	require.True(t, ok)
	require.Equal(t, want, info)
	require.Equal(t, "w", step.WorkflowID(ctx))
}
