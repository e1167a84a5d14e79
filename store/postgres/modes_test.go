package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// TestExecModes shows that the statements work in the modes of the driver that
// poolers ask for, where nothing is prepared.
func TestExecModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe", "describe_exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			url := pgtest.URL(t)
			joint := "?"
			if strings.Contains(url, "?") {
				joint = "&"
			}
			s := openAt(t, url+joint+"default_query_exec_mode="+mode)
			_, err := s.Migrate(ctx)
			require.NoError(t, err)
			w := alive(t, s)
			ts := startBatch(t, s, w, "wf", 2)
			_, err = s.Commit(ctx, w, ts)
			require.NoError(t, err)
			hotPath(ctx, t, s, w)
		})
	}
}
