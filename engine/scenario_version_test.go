package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store"
)

// edition is a version of a definition that waits and then does work of its own.
func (s *site) edition(version int, work string) statemachine.Definition[trip] {
	act := step.Call(work, s.call).With(quick).NoUndo("it stays")
	return statemachine.Definition[trip]{
		Name: "edition", Version: version, Start: "waiting", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"waiting": statemachine.Await(ballot, (*trip).voted).Then("working"),
			"working": statemachine.Do(act, trip.amount, (*trip).got).Then("good"),
		},
	}
}

// Two versions side by side: each workflow goes on with the one that it was started
// with, and new ones begin with the newest.
func TestVersionsSideBySide(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		old := w.client()
		one, err := engine.Register(old.Engine, w.site.edition(1, "print"))
		require.NoError(w, err)
		_, err = one.Start(w.ctx(), "first", trip{Amount: 1})
		require.NoError(w, err)

		both := w.client()
		_, err = engine.Register(both.Engine, w.site.edition(1, "print"))
		require.NoError(w, err)
		two, err := engine.Register(both.Engine, w.site.edition(2, "engrave"))
		require.NoError(w, err)
		both.run()
		_, err = both.StartJSON(w.ctx(), "edition", "second", []byte(`{"Amount":1}`))
		require.NoError(w, err)
		again, err := two.Start(w.ctx(), "first", trip{Amount: 1})
		require.NoError(w, err)
		require.False(w, again.Created, "it is there, as version 1")
		stranded, err := both.VersionCheck(w.ctx())
		require.NoError(w, err)
		require.Empty(w, stranded)
		stranded, err = old.VersionCheck(w.ctx())
		require.NoError(w, err)
		require.Len(w, stranded, 1)
		require.Equal(w, store.Standing{Def: store.Def{Name: "edition", Version: 2}, State: "waiting", Count: 1, ID: "second"}, stranded[0].Standing)

		for _, id := range []string{"first", "second"} {
			require.NoError(w, engine.Signal(w.ctx(), both.Engine, id, ballot, "go"))
			info, err := both.Wait(w.ctx(), id)
			require.NoError(w, err)
			require.Equal(w, store.Completed, info.Status)
		}
		require.Equal(w, []string{"print"}, w.ledger.effects("first"))
		require.Equal(w, []string{"engrave"}, w.ledger.effects("second"))
		changed := w.client()
		_, err = engine.Register(changed.Engine, w.site.edition(2, "carve"))
		require.ErrorIs(w, err, engine.ErrGraphChanged)
		require.ErrorContains(w, err, `state "working": no longer has step engrave (call), and 1 more`)
	})
}

// A renamed state goes on under both names: a program of the old name and one of the
// new one work side by side, on the same version.
func TestARenamedState(t *testing.T) {
	eachStore(t, func(w *world) {
		w.knows("nap")
		old := w.client()
		one, err := engine.Register(old.Engine, w.site.edition(1, "print"))
		require.NoError(w, err)
		old.run()
		_, err = one.Start(w.ctx(), "e", trip{Amount: 1})
		require.NoError(w, err)
		old.becomes("e", "it waits", func(s engine.Snapshot[trip]) bool { return s.Status == store.Waiting })

		d := w.site.edition(1, "print")
		d.Start = "listening"
		d.States["listening"] = statemachine.Await(ballot, (*trip).voted).Then("printing")
		d.States["printing"] = d.States["working"]
		delete(d.States, "waiting")
		delete(d.States, "working")
		fresh := w.client()
		_, err = engine.Register(fresh.Engine, d)
		require.ErrorIs(w, err, engine.ErrGraphChanged)
		d.Renamed = map[statemachine.State]statemachine.State{"listening": "waiting", "printing": "working"}
		two, err := engine.Register(fresh.Engine, d)
		require.NoError(w, err)
		stranded, err := fresh.VersionCheck(w.ctx())
		require.NoError(w, err)
		require.Empty(w, stranded)
		old.stop()
		fresh.run()
		s, err := two.Get(w.ctx(), "e")
		require.NoError(w, err)
		require.Equal(w, statemachine.State("listening"), s.State, "a handle tells the name of its code")
		require.Equal(w, statemachine.State("waiting"), fresh.get("e").State, "the row the first one")
		require.NoError(w, engine.Signal(w.ctx(), fresh.Engine, "e", ballot, "go"))
		final, err := two.Wait(w.ctx(), "e")
		require.NoError(w, err)
		require.Equal(w, store.Completed, final.Status)
		require.Equal(w, []string{"print"}, w.ledger.effects("e"))
	})
}
