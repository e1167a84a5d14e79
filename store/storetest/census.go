package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var censusTests = []test{
	{"Definitions", recordedDefinitions},
	{"Open", openStandings},
}

func recordedDefinitions(e *env) {
	var want []store.Definition
	for _, d := range []store.Def{{Name: "a", Version: 1}, {Name: "a", Version: 2}, {Name: "b", Version: 1}} {
		def := store.Definition{Def: d, Fingerprint: "f" + d.Name, Graph: []byte(`{"name":"` + d.Name + `"}`)}
		require.NoError(e, e.st.PutDefinition(e.ctx, def))
		want = append(want, def)
	}
	got, err := e.st.Definitions(e.ctx)
	require.NoError(e, err)
	require.Equal(e, want, got)
}

func openStandings(e *env) {
	none, err := e.st.Open(e.ctx)
	require.NoError(e, err)
	require.Empty(e, none)
	e.endedOnes("over")
	for _, id := range []string{"a", "b"} {
		e.start(id, pending(charge, now))
	}
	e.start("c", waiting(never))
	_, err = e.st.Start(e.ctx, []store.New{branch("c", "x/1/y")})
	require.NoError(e, err)
	got, err := e.st.Open(e.ctx)
	require.NoError(e, err)
	require.Equal(e, []store.Standing{
		{Def: order, State: "Approving", Count: 1, ID: "c"},
		{Def: order, State: "Charging", Step: "charge", Count: 3, ID: "a"},
	}, got)
}
