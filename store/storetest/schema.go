package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/store"
)

var schemaTests = []test{
	{"MigrateAgainIsNothing", migrateAgain},
	{"MigrateAtOnce", migrateAtOnce},
	{"MigrationsAreApplied", migrationsApplied},
	{"Check", schemaCheck},
	{"PutDefinition", putDefinition},
	{"PutDefinitionAtOnce", putDefinitionAtOnce},
}

func migrateAgain(e *env) {
	e.start("a", waiting(never))
	applied, err := e.st.Migrate(e.ctx)
	require.NoError(e, err)
	require.Empty(e, applied)
	e.get("a")
}

func migrateAtOnce(e *env) {
	together(8, func(int) {
		if applied, err := e.st.Migrate(e.ctx); err != nil || len(applied) > 0 {
			e.Errorf("applied %v: %v", applied, err)
		}
	})
}

func migrationsApplied(e *env) {
	ms, err := e.st.Migrations(e.ctx)
	require.NoError(e, err)
	require.NotEmpty(e, ms)
	for i, m := range ms {
		require.Equal(e, i+1, m.Version)
		require.NotEmpty(e, m.Name)
		require.False(e, m.AppliedAt.IsZero())
	}
}

func schemaCheck(e *env) { require.NoError(e, e.st.Check(e.ctx)) }

func definition(version int, fingerprint string) store.Definition {
	return store.Definition{Def: store.Def{Name: "order", Version: version}, Fingerprint: fingerprint, Graph: []byte(`{"a":1}`)}
}

func putDefinition(e *env) {
	require.NoError(e, e.st.PutDefinition(e.ctx, definition(1, "f1")))
	require.NoError(e, e.st.PutDefinition(e.ctx, definition(1, "f1")))
	err := e.st.PutDefinition(e.ctx, definition(1, "f2"))
	require.ErrorIs(e, err, store.ErrGraphChanged)
	require.ErrorContains(e, err, "order")
	require.NoError(e, e.st.PutDefinition(e.ctx, definition(2, "f2")))
	require.NoError(e, e.st.PutDefinition(e.ctx, definition(1, "f1")), "the first one stays")
}

func putDefinitionAtOnce(e *env) {
	errs := make([]error, 16)
	together(len(errs), func(i int) {
		errs[i] = e.st.PutDefinition(e.ctx, definition(1, []string{"even", "odd"}[i%2]))
	})
	failed := [2]int{}
	for i, err := range errs {
		if err != nil {
			require.ErrorIs(e, err, store.ErrGraphChanged)
			failed[i%2]++
		}
	}
	require.ElementsMatch(e, []int{0, 8}, failed[:], "all of one graph are in, all of the other are refused")
}
