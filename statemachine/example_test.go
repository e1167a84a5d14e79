package statemachine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// transfer is the durable data of one workflow.
type transfer struct {
	From, To string
	Cents    int
	Receipt  string
}

func (t transfer) out() move           { return move{t.From, t.Cents} }
func (t transfer) in() move            { return move{t.To, t.Cents} }
func (t *transfer) receipt(got string) { t.Receipt = got }

type move struct {
	Account string
	Cents   int
}

// A bank is what the steps talk to. This one refuses to deposit.
type bank struct{}

func (bank) withdraw(ctx context.Context, key step.Key, m move) (string, error) {
	return fmt.Sprintf("%d from %s", m.Cents, m.Account), nil
}

func (bank) giveBack(ctx context.Context, key step.Key, d step.Done[move, string]) error {
	fmt.Println("      given back:", d.Out)
	return nil
}

func (bank) deposit(ctx context.Context, key step.Key, m move) (string, error) {
	return "", step.Reject(errors.New("account closed"))
}

func (b bank) workflow() statemachine.Definition[transfer] {
	withdraw := step.Call("withdraw", b.withdraw).Undo(step.UndoCall("give-back", b.giveBack))
	deposit := step.Call("deposit", b.deposit).Pivot()
	return statemachine.Definition[transfer]{
		Name:    "transfer",
		Version: 1,
		Start:   "withdrawing",
		States: statemachine.States[transfer]{
			"withdrawing": statemachine.Do(withdraw, transfer.out, nil).Then("depositing"),
			"depositing":  statemachine.Do(deposit, transfer.in, (*transfer).receipt).Then("moved"),
		},
		Ends:      statemachine.Ends{"moved": statemachine.Completed, "returned": statemachine.RolledBack},
		OnFailure: "returned",
	}
}

// What an engine does, without one: ask the machine, carry out its commands,
// tell it what happened. A real one makes each cursor durable in between.
func Example() {
	machine, err := bank{}.workflow().Compile()
	if err != nil {
		panic(err)
	}
	cursor := statemachine.Cursor{ID: "t-42", Data: []byte(`{"From":"ann","To":"bob","Cents":500}`), PastKnown: true}
	var event statemachine.Event = statemachine.Started{}
	for event != nil {
		var commands []statemachine.Command
		if cursor, commands, err = machine.Next(cursor, event); err != nil {
			panic(err)
		}
		fmt.Printf("%v, %v\n", cursor.State, cursor.Phase)
		event = carryOut(commands)
	}
	fmt.Println("because", cursor.Reason)

	// Output:
	// withdrawing, running
	//   run withdraw with key t-42/withdraw/1
	// depositing, running
	//   run deposit with key t-42/deposit/1
	// depositing, rolling back
	//   run give-back with key t-42/give-back/1
	//       given back: 500 from ann
	// returned, ended
	// because step deposit was refused: account closed
}

// carryOut runs the step that is to be run and returns what came of it, or nil
// if there is none.
func carryOut(commands []statemachine.Command) statemachine.Event {
	for _, command := range commands {
		run, ok := command.(statemachine.RunStep)
		if !ok {
			continue // records: an engine writes them down
		}
		fmt.Printf("  run %s with key %s\n", run.Spec.Name, run.Key)
		out, err := run.Spec.Run(context.Background(), step.Env{Key: run.Key, Undoes: run.Undoes}, run.In)
		if err != nil {
			return statemachine.StepFailed{Error: err.Error(), Rejected: step.IsRejected(err)}
		}
		return statemachine.StepDone{Out: out}
	}
	return nil
}
