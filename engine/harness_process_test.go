package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// childEnv makes a process of this test binary a child of a test: it holds what
// the child is to do.
const childEnv = "PAWL_ENGINE_TEST_CHILD"

const sigterm = syscall.SIGTERM

// job is what a child process does.
type job struct {
	Do          string // a name in childJobs
	URL         string // of the database
	Ledger      string
	Lease, Poll time.Duration
	Drain       time.Duration
	Concurrency int
	Only        []string // the definitions that it knows

	// StopAfterCommitTx has the process visit the hook "committed" of the
	// workflow whenever a CommitTx has succeeded, before its worker hears of it.
	StopAfterCommitTx bool

	Starts int // for "starts": how many goroutines start the same workflow
	Rounds int // for jobs that are done several times
}

// childJobs are what child processes can be asked to do. Each returns when ctx
// is done, which a SIGTERM does, or when it has finished.
var childJobs = map[string]func(c *child, ctx context.Context, j job) error{
	"work":   (*child).work,
	"starts": (*child).starts,
	"lock":   (*child).lock,
}

// child is a process as it sees itself.
type child struct {
	site *site
	in   *bufio.Reader // lines from the test
	out  *os.File      // JSON lines to the test
}

// childMain is the whole life of a child process. It ends when its input does:
// no child outlives its test.
func childMain(config string) (code int) {
	var j job
	if err := json.Unmarshal([]byte(config), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lines, pipe := io.Pipe()
	go func() {
		_, _ = io.Copy(pipe, os.Stdin)
		os.Exit(3)
	}()
	c := &child{site: newSite(j.Ledger), in: bufio.NewReader(lines), out: os.Stdout}
	if err := childJobs[j.Do](c, ctx, j); err != nil {
		c.say("failed", "error", err.Error())
		return 1
	}
	return 0
}

// say sends a line to the test, which is a line of the log as well.
func (c *child) say(msg string, args ...any) {
	slog.New(slog.NewJSONHandler(c.out, nil)).Info(msg, args...)
}

// hear waits for a line from the test.
func (c *child) hear() error {
	_, err := c.in.ReadString('\n')
	return err
}

// engine opens the database and registers the definitions.
func (c *child) engine(ctx context.Context, j job) (*engine.Engine, flows, store.Store, error) {
	st, err := openStore(ctx, j.URL)
	if err != nil {
		return nil, nil, nil, err
	}
	if j.StopAfterCommitTx {
		st = c.stopsAfterCommitTx(st)
	}
	e, err := engine.New(st, engine.Config{
		Logger: slog.New(slog.NewJSONHandler(c.out, nil)), Lease: j.Lease, Poll: j.Poll,
		Concurrency: j.Concurrency, DrainTimeout: j.Drain, CutTimeout: time.Second,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	known, err := c.site.register(e, j.Only...)
	return e, known, st, err
}

func (c *child) stopsAfterCommitTx(st store.Store) store.Store {
	f := &faulty{Store: st}
	f.commitTx = func(ctx context.Context, w store.WorkerID, g store.Guard, limit time.Duration, body txBody) (store.Verdict, error) {
		v, err := st.CommitTx(ctx, w, g, limit, body)
		if err == nil {
			_, err = c.site.ask(ctx, "/visit", request{Workflow: g.ID, Step: "committed"})
		}
		return v, err
	}
	return f
}

// work is a worker.
func (c *child) work(ctx context.Context, j job) error {
	e, _, st, err := c.engine(ctx, j)
	if err != nil {
		return err
	}
	return errors.Join(e.Run(ctx), st.Close())
}

// starts is a worker whose goroutines all start the same workflow at once, and
// wait for its end.
func (c *child) starts(ctx context.Context, j job) error {
	e, known, st, err := c.engine(ctx, j)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	c.say("ready")
	if err := c.hear(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range j.Starts {
		wg.Go(func() {
			started, err := known["single"].Start(ctx, "w", trip{Amount: 7})
			c.say("started", "created", started.Created, "error", fmt.Sprint(err))
			final, err := known["single"].Wait(ctx, "w")
			c.say("finished", "result", string(final.Raw), "error", fmt.Sprint(err))
		})
	}
	wg.Wait()
	stop()
	return errors.Join(<-ran, st.Close())
}

// process is a child process as its test sees it.
type process struct {
	w     *world
	cmd   *exec.Cmd
	in    io.WriteCloser
	log   *logs
	ended chan struct{} // closed when it is gone
}

// process starts a child process, which is gone when the test is over.
func (w *world) process(j job) *process {
	w.Helper()
	if j.Do == "" {
		j.Do = "work"
	}
	if j.URL == "" {
		j.URL = w.url
	}
	if j.Lease == 0 {
		j.Lease, j.Poll = w.lease, w.poll
	}
	if j.Only == nil {
		j.Only = w.only
	}
	if j.Concurrency == 0 {
		j.Concurrency = 16
	}
	if j.Drain == 0 {
		j.Drain = 5 * time.Second
	}
	j.Ledger = w.ledger.server.URL
	config, err := json.Marshal(j)
	require.NoError(w, err)
	self, err := os.Executable()
	require.NoError(w, err)

	p := &process{w: w, cmd: exec.Command(self), log: newLogs(), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.in, err = p.cmd.StdinPipe()
	require.NoError(w, err)
	require.NoError(w, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is what code says
	}()
	w.Cleanup(p.kill)
	return p
}

// joined waits until the process works.
func (p *process) joined() *process {
	p.w.Helper()
	p.log.await(p.w, 1, "worker joined")
	return p
}

// send sends it a line.
func (p *process) send(line string) {
	p.w.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.w, err)
}

func (p *process) signal(s os.Signal) {
	p.w.Helper()
	require.NoError(p.w, p.cmd.Process.Signal(s))
}

// kill ends it at once, as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
}

// dies is kill, and its lease is over at once: so the test need not wait for
// that, and no worker needs a lease so short that a busy machine loses it.
func (p *process) dies() {
	p.w.Helper()
	p.kill()
	p.w.leaseOver(p.log.worker(p.w))
}

// freeze stops it from running, as if the machine had paused it.
func (p *process) freeze() { p.w.Helper(); p.signal(syscall.SIGSTOP) }

// thaw lets it go on.
func (p *process) thaw() { p.w.Helper(); p.signal(syscall.SIGCONT) }

// code waits for its end and returns its exit code.
func (p *process) code() int {
	p.w.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.w.Fatalf("a process does not end:\n%s", p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}
