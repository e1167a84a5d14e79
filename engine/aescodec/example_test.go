package aescodec_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/aescodec"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store/sqlite"
)

type patient struct {
	Name string
	Room int
}

func (p patient) name() string     { return p.Name }
func (p *patient) admitted(at int) { p.Room = at }
func randomKey(seed string) []byte { return []byte(fmt.Sprintf("%-32s", seed)) } // yours comes out of a vault
func failIf(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A workflow whose data is in the clear for the program, and for nobody who reads the
// database's file.
func Example() {
	codec, err := aescodec.New(aescodec.Keys{
		Write:       "2026-12",
		ByID:        map[string][]byte{"2026-12": randomKey("new"), "2026-06": randomKey("old")},
		Fingerprint: randomKey("fingerprint"),
	})
	failIf(err)

	dir, err := os.MkdirTemp("", "aescodec")
	failIf(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "clinic.db")
	st, err := sqlite.Open(context.Background(), path)
	failIf(err)
	eng, err := engine.New(st, engine.Config{Codec: codec})
	failIf(err)

	admit := step.Call("admit", func(context.Context, step.Key, string) (int, error) { return 12, nil }).NoUndo("a room is free again by itself")
	admissions, err := engine.Register(eng, statemachine.Definition[patient]{
		Name: "admission", Version: 1, Start: "admitting",
		States:    statemachine.States[patient]{"admitting": statemachine.Do(admit, patient.name, (*patient).admitted).Then("admitted")},
		Ends:      statemachine.Ends{"admitted": statemachine.Completed, "refused": statemachine.RolledBack},
		OnFailure: "refused",
	})
	failIf(err)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- eng.Run(ctx) }()
	_, err = admissions.Start(ctx, "case-1", patient{Name: "Jane Doe"})
	failIf(err)
	done, err := admissions.Wait(ctx, "case-1")
	failIf(err)
	fmt.Println(done.Status, done.Data.Name, done.Data.Room)
	stop()
	failIf(<-ended)
	failIf(st.Close())

	files, err := filepath.Glob(path + "*") // with the write-ahead log, if it is still there
	failIf(err)
	var file []byte
	for _, name := range files {
		part, err := os.ReadFile(name)
		failIf(err)
		file = append(file, part...)
	}
	fmt.Println(bytes.Contains(file, []byte("Jane Doe")), bytes.Contains(file, []byte("case-1")))
	// Output:
	// COMPLETED Jane Doe 12
	// false true
}
