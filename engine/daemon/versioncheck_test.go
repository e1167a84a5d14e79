package daemon_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store/sqlite"
)

// sql changes the program's database behind its back.
func (p *program) sql(text string) {
	p.t.Helper()
	st, err := sqlite.Open(p.t.Context(), strings.TrimPrefix(p.env["PAWL_DATABASE_URL"], "sqlite:"))
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, st.Close()) }()
	_, err = st.DB().ExecContext(p.t.Context(), text)
	require.NoError(p.t, err)
}

// Before a program is deployed it says whether what is open could go on with it, and
// records nothing; a graph can be drawn when its code is gone.
func TestVersionCheck(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	p.must("workflow", "start", "parcel", "p-1", "--input", `{"to":"Rome"}`)
	require.Equal(t, "all open workflows can go on with this program\n", p.must("version-check"))
	require.Equal(t, "parcel v4, compared with v4: the same\npawl-bulk v1, compared with v1: the same\n", p.must("version-check", "--diff"))
	require.Regexp(t, `(?m)^parcel v4     [0-9a-f]{12}$`, p.must("definition", "list"))
	require.Contains(t, p.must("definition", "show", "parcel", "4"), "packing: packing / pack (call, undo unpack)\n")
	require.Equal(t, 3, p.run("definition", "show", "parcel", "3").code)
	require.Equal(t, 2, p.run("definition", "show", "parcel", "x").code)

	p.sql(`UPDATE workflow SET version = 3`)
	r := p.run("version-check")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `(?m)^parcel v3   packing  pack  1      p-1      this version is not registered$`, r.out)
	p.sql(`UPDATE workflow SET version = 4, state = 'wrapping'`)
	require.Regexp(t, `its graph has no such place`, p.run("version-check").out)
}
