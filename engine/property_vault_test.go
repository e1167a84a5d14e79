package engine_test

import (
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// closing lets a vault that is sealed come to its end.
var closing = statemachine.Signal[int]{Name: "closing"}

// twice is a policy with room for one failure.
var twice = step.Policy{Attempts: 2, Backoff: step.Constant(1), Timeout: quick.Timeout}

// once has room for none.
var once = step.Policy{Attempts: 1, Timeout: quick.Timeout}

// order is the last ballot that a vault has taken up: what it is to do next.
func (t trip) order() statemachine.State {
	if len(t.Votes) == 0 {
		return "ready"
	}
	switch t.Votes[len(t.Votes)-1] {
	case "pay":
		return "paying"
	case "move":
		return "moving"
	case "split":
		return "splitting"
	case "deal":
		return "dealing"
	case "lend":
		return "lending"
	case "seal":
		return "sealing"
	}
	return "ready"
}

func (t trip) three() []int { return []int{1, 2, 3} }

// vault waits for orders and carries each of them out: a call, money moved in a
// transaction, two calls at once, three items two at a time, a child. "seal" is
// the point of no return; behind it only the signal closing counts.
func (s *site) vault() statemachine.Definition[trip] {
	call := func(name, undo string) step.Step[int, string] {
		return step.Call(name, s.call).With(twice).Undo(step.UndoCall(undo, s.undo).With(once))
	}
	move := step.InTx("move", s.move).With(twice).Undo(step.UndoInTx("move-back", s.moveBack).With(once))
	loan := statemachine.Child(s.loan()).As("child-loan").Undo(step.UndoCall("undo-loan", s.undoTrip).With(once))
	seal := step.Call("seal", s.call).With(twice).Pivot()
	return statemachine.Definition[trip]{
		Name: "vault", Version: 1, Start: "ready", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{
			"ready": statemachine.Await(ballot, (*trip).voted).Then("routing"),
			"routing": statemachine.Switch(trip.order,
				"ready", "paying", "moving", "splitting", "dealing", "lending", "sealing"),
			"paying": statemachine.Do(call("pay", "unpay"), trip.amount, (*trip).got).Then("ready"),
			"moving": statemachine.Do(move, trip.self, (*trip).got).Then("ready"),
			"splitting": statemachine.All(
				statemachine.Do(call("left", "unleft"), trip.amount, (*trip).got),
				statemachine.Do(call("right", "unright"), trip.amount, (*trip).got),
			).Then("ready"),
			"dealing":  statemachine.Each(trip.three, call("deal", "undeal"), (*trip).item).AtMost(2).Then("ready"),
			"lending":  statemachine.Do(loan, trip.bare, (*trip).returned).Then("ready"),
			"sealing":  statemachine.Do(seal, trip.amount, (*trip).got).Then("settling"),
			"settling": statemachine.Await(closing, func(*trip, int) {}).Then("good"),
		},
	}
}

// loan is the child of a vault.
func (s *site) loan() statemachine.Definition[trip] {
	lend := step.Call("lend", s.call).With(twice).Undo(step.UndoCall("unlend", s.undo).With(once))
	return statemachine.Definition[trip]{
		Name: "loan", Version: 1, Start: "lending", Ends: ends, OnFailure: "undone",
		States: statemachine.States[trip]{"lending": statemachine.Do(lend, trip.amount, (*trip).got).Then("good")},
	}
}

// other is a definition that no vault is of.
func (s *site) other() statemachine.Definition[trip] {
	d := s.loan()
	d.Name = "other"
	return d
}
