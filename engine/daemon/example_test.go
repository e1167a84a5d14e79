package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

type greeting struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func greetings() statemachine.Definition[greeting] {
	return statemachine.Definition[greeting]{
		Name: "greeting", Version: 1, Start: "greeting",
		States: statemachine.States[greeting]{
			"greeting": statemachine.Do(step.Func("hello", hello),
				func(g greeting) string { return g.Name }, func(g *greeting, text string) { g.Text = text }).Then("greeted"),
		},
		Ends:      statemachine.Ends{"greeted": statemachine.Completed, "silent": statemachine.RolledBack},
		OnFailure: "silent",
	}
}

// A program's main function is one call of Main. Run does the same for one
// command, and returns its exit code.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "greetings")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	register := func(e *engine.Engine) error {
		_, err := engine.Register(e, greetings())
		return err
	}
	run := func(args string) {
		words := append(strings.Fields(args), "--database-url", "sqlite:"+filepath.Join(dir, "greetings.db"))
		code := daemon.Run(context.Background(), words, os.Stdin, os.Stdout, os.Stdout, register, daemon.WithName("greeter"))
		fmt.Println("exit code", code)
	}

	run(`workflow start greeting bob --input {"name":"bob"} -o jsonl`)
	run(`workflow start greeting bob --input {"name":"bob"} -o jsonl`)
	run(`workflow why bob`)
	// Output:
	// {"id":"bob","created":true,"status":"PENDING","workflow":null}
	// exit code 0
	// {"id":"bob","created":false,"status":"PENDING","workflow":null}
	// exit code 0
	// no live worker knows greeting v1: no worker is alive
	// exit code 0
}
