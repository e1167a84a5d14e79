package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/enginetest"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
	"github.com/pawlhq/pawl/store/sqlite"
)

// invite is the data of a workflow that waits for two days.
type invite struct {
	Guest string
	Came  bool
}

func (i invite) guest() string      { return i.Guest }
func (i *invite) answered(yes bool) { i.Came = yes }

var answer = statemachine.Signal[bool]{Name: "answer"}

func mail(context.Context, step.Key, string) (step.None, error) {
	return step.None{}, errors.New("tests send no mail")
}

func invitation() statemachine.Definition[invite] {
	send := step.Call("send-mail", mail).NoUndo("a mail cannot be unsent")
	remind := step.Call("remind", mail).NoUndo("a mail cannot be unsent")
	return statemachine.Definition[invite]{
		Name: "invitation", Version: 1, Start: "inviting",
		States: statemachine.States[invite]{
			"inviting":  statemachine.Do(send, invite.guest, nil).Then("waiting"),
			"waiting":   statemachine.Await(answer, (*invite).answered).Within(48*time.Hour, "reminding").Then("answered"),
			"reminding": statemachine.Do(remind, invite.guest, nil).Then("silent"),
		},
		Ends:      statemachine.Ends{"answered": statemachine.Completed, "silent": statemachine.Completed, "failed": statemachine.Failed},
		OnFailure: "failed",
	}
}

// A wait of two days, and a mail server that fails twice, without either.
func Example() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	dir, err := os.MkdirTemp("", "enginetest")
	check(err)
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder

	clock := enginetest.NewClock()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "test.db"), sqlite.WithClock(clock.Now))
	check(err)
	defer st.Close() //nolint:errcheck // nothing is kept

	var bodies enginetest.Bodies
	bodies.Return("send-mail", step.None{})
	bodies.Return("remind", step.None{})
	bodies.Fail("send-mail", errors.New("busy"), errors.New("busy"))
	eng, err := engine.New(st, engine.Config{
		Around: bodies.Around, Lease: enginetest.LongLease, Poll: 5 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	check(err)
	invitations, err := engine.Register(eng, invitation())
	check(err)
	running, halt := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- eng.Run(running) }()

	began := clock.Now()
	_, err = invitations.Start(ctx, "anna", invite{Guest: "anna@example.org"})
	check(err)
	end, err := clock.Finish(ctx, eng, st, "anna")
	check(err)
	halt()
	check(<-ran)
	fmt.Println(end.Status, "in state", end.State, "after", clock.Now().Sub(began).Round(time.Hour))
	fmt.Println(len(bodies.Calls("send-mail")), "attempts with the key", bodies.Calls("send-mail")[2].Key)
	fmt.Printf("reminded: %s\n", bodies.Calls("remind")[0].In)
	// Output:
	// COMPLETED in state silent after 48h0m0s
	// 3 attempts with the key anna/send-mail/1
	// reminded: "anna@example.org"
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
