// Fan-out thumbnails a thousand pictures, fifty at once, as one workflow. Each
// picture is a step with a key of its own, so a worker that dies in the middle
// repeats what it had under way and nothing else; three pictures are broken, and as
// many may be.
//
//	go run ./examples/fan-out
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store/sqlite"
)

const (
	pictures = 1000
	atOnce   = 50
	mayFail  = 3
)

// Album is the workflow's data.
type Album struct {
	Pictures int
	Bytes    int
	Done     int
}

func (a Album) numbers() []int {
	all := make([]int, a.Pictures)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

func (a *Album) thumbnailed(_, _, size int) { a.Done++; a.Bytes += size }

// studio makes thumbnails, and remembers for which key.
type studio struct {
	mu   sync.Mutex
	keys map[string]int
}

func (s *studio) thumbnail(_ context.Context, key step.Key, picture int) (int, error) {
	s.mu.Lock()
	s.keys[key.String()]++
	n := len(s.keys)
	s.mu.Unlock()
	if n%200 == 0 {
		fmt.Printf("%4d of %d\n", n, pictures)
	}
	if picture%333 == 0 {
		return 0, step.Reject(fmt.Errorf("picture %d is broken", picture))
	}
	return 100 + picture%7, nil
}

func (s *studio) album() statemachine.Definition[Album] {
	shrink := step.Call("thumbnail", s.thumbnail).NoUndo("a thumbnail harms nobody")
	return statemachine.Definition[Album]{
		Name: "album", Version: 1, Start: "shrinking",
		States: statemachine.States[Album]{
			"shrinking": statemachine.Each(Album.numbers, shrink, (*Album).thumbnailed).AtMost(atOnce).Tolerate(mayFail).Then("shown"),
		},
		Ends:      statemachine.Ends{"shown": statemachine.Completed, "dropped": statemachine.Failed},
		OnFailure: "dropped",
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "pawl-fan-out")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	st, err := sqlite.Open(ctx, filepath.Join(dir, "albums.db"))
	if err != nil {
		return err
	}
	defer st.Close() //nolint:errcheck // nothing is kept
	eng, err := engine.New(st, engine.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s := &studio{keys: map[string]int{}}
	albums, err := engine.Register(eng, s.album())
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	worked := make(chan error, 1)
	go func() { worked <- eng.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-worked)
	}()

	if _, err := albums.Start(ctx, "summer", Album{Pictures: pictures}); err != nil {
		return err
	}
	end, err := albums.Wait(ctx, "summer")
	if err != nil {
		return err
	}
	keys, once := s.called()
	fmt.Printf("%s: %d thumbnails of %d bytes, %d keys, each called once: %v\n", end.Status, end.Data.Done, end.Data.Bytes, keys, once)
	fmt.Println("the last key: ", step.NewItemKey("summer", "thumbnail", pictures, 1))
	return nil
}

// called returns how many keys were seen, and whether each was once.
func (s *studio) called() (keys int, once bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.keys {
		if n != 1 {
			return len(s.keys), false
		}
	}
	return len(s.keys), true
}
