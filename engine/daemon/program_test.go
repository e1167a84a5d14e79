package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// parcel is the data of the workflow that the tests run: it is packed, needs a
// nod if it is heavy, and is sent. Fail says what fails.
type parcel struct {
	To    string `json:"to"`
	Grams int64  `json:"grams,omitempty"`
	Fail  string `json:"fail,omitempty"`  // "pack", "send" or "unpack"
	Stall string `json:"stall,omitempty"` // the path of a file: pack makes it, then blocks until it is gone
	Label string `json:"label,omitempty"`
}

func (p parcel) itself() parcel        { return p }
func (p *parcel) labelled(text string) { p.Label = text }
func (p parcel) heavy() bool           { return p.Grams > 1000 }

var nod = statemachine.Signal[bool]{Name: "nod"}

var retries = step.Policy{Attempts: 3, Backoff: step.Constant(time.Hour), Timeout: time.Minute}

func parcels() statemachine.Definition[parcel] {
	packed := step.Call("pack", pack).With(retries).Undo(step.UndoCall("unpack", unpack).With(retries))
	sent := step.Call("send", send).Pivot()
	return statemachine.Definition[parcel]{
		Name: "parcel", Version: 4, Start: "packing",
		States: statemachine.States[parcel]{
			"packing":  statemachine.Do(packed, parcel.itself, (*parcel).labelled).Then("weighing"),
			"weighing": statemachine.If(parcel.heavy, "nodding", "sending"),
			"nodding":  statemachine.Await(nod, func(*parcel, bool) {}).Within(47*time.Hour, "returned").Then("sending"),
			"sending":  statemachine.Do(sent, parcel.itself, nil).Then("delivered"),
		},
		Ends:      statemachine.Ends{"delivered": statemachine.Completed, "returned": statemachine.RolledBack},
		OnFailure: "returned",
	}
}

func pack(_ context.Context, key step.Key, p parcel) (string, error) {
	if p.Fail == "pack" {
		return "", errors.New("no more boxes")
	}
	if p.Stall != "" {
		if err := os.WriteFile(p.Stall, nil, 0o600); err != nil {
			return "", err
		}
		for {
			if _, err := os.Stat(p.Stall); err != nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return "label of " + key.String(), nil
}

func unpack(_ context.Context, _ step.Key, d step.Done[parcel, string]) error {
	if d.In.Fail == "unpack" {
		return step.Reject(errors.New("it is glued"))
	}
	return nil
}

func send(_ context.Context, _ step.Key, p parcel) (step.None, error) {
	if p.Fail == "send" || p.Fail == "unpack" {
		return step.None{}, step.Reject(fmt.Errorf("nobody goes to %s", p.To))
	}
	return step.None{}, nil
}

func register(e *engine.Engine) error {
	_, err := engine.Register(e, parcels())
	return err
}
