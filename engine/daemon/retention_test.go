package daemon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a retention costs is computed, by the textbook's own figure.
func TestRetentionPlan(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	require.Equal(t, "1,728,000,000 records, 172.8 GB\n", p.must("retention", "plan", "--rate", "10000", "--window", "48h", "--bytes", "100"))
	require.Equal(t, 2, p.run("retention", "plan", "--rate", "0", "--window", "48h").code)
	p.must("migrate", "up")
	require.Regexp(t, `(?m)^parcel v4     for ever  -          -$`, p.must("retention", "check"))
}
