package archtest_test

import (
	"fmt"

	"github.com/pawlhq/pawl/internal/archtest"
)

// A leaf reaches up to the engine, and says nothing about it.
func ExampleCheck() {
	step, err := archtest.Parse("step", map[string]string{
		"doc.go": `
			// Package step holds steps.
			package step`,
		"run.go": `
			package step
			import "github.com/pawlhq/pawl/engine"
			func Run(*engine.Engine) {}`,
		"step_test.go": `
			package step_test
			func Example() {
				// Output:
			}`,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range archtest.Check(archtest.Design(), []archtest.Package{step}) {
		fmt.Println(line)
	}
	// Output:
	// step/run.go: imports github.com/pawlhq/pawl/engine: against the direction of the layers
	// step/run.go: Run has no comment
}
