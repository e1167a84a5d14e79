package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// startTimeout bounds how long a child may take until it is ready.
	startTimeout = 20 * time.Second

	// stopTimeout bounds how long a child may take to end in good order.
	stopTimeout = 8 * time.Second
)

// child is a process that runs another command of this program. It lives no
// longer than this process: it ends when its standard input does, and that is
// a pipe whose other end only this process has.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	first chan ready    // gets the child's first word
	done  chan struct{} // closed when the process has ended and all it said was heard
}

// childConfig is what a child is given beside its arguments.
type childConfig struct {
	env    []string // beside this process's own
	stderr io.Writer
	hear   func(message) // gets what the child says after its first word, one message at a time
}

// startChild starts a child and returns once it says that it is ready.
func startChild(ctx context.Context, name string, cfg childConfig, args ...string) (*child, ready, error) {
	c := &child{name: name, first: make(chan ready, 1), done: make(chan struct{})}
	if err := c.start(cfg, args); err != nil {
		return nil, ready{}, fmt.Errorf("start %s: %w", name, err)
	}
	r, err := c.awaitReady(ctx)
	if err != nil {
		c.kill()
		return nil, ready{}, fmt.Errorf("start %s: %w", name, err)
	}
	return c, r, nil
}

func (c *child) start(cfg childConfig, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c.cmd = exec.Command(self, append(args, "--child")...) // ends by its standard input, not by a context
	c.cmd.Env = append(os.Environ(), cfg.env...)
	c.cmd.Stderr = cfg.stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	go c.listen(stdout, cfg.hear)
	return nil
}

// listen hears the child out, then waits for its end.
func (c *child) listen(stdout io.Reader, hear func(message)) {
	defer close(c.done)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		var m message
		// What a killed process left half said is no message.
		if err == nil && json.Unmarshal(line, &m) == nil {
			if m.Ready != nil {
				c.first <- *m.Ready
			} else {
				hear(m)
			}
		}
		if err != nil {
			_ = c.cmd.Wait() // how it ended is known to whoever ended it
			return
		}
	}
}

func (c *child) awaitReady(ctx context.Context) (ready, error) {
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case r := <-c.first:
		return r, nil
	case <-c.done:
		return ready{}, errors.New("it ended at once")
	case <-timeout.C:
		return ready{}, fmt.Errorf("not ready after %v", startTimeout)
	case <-ctx.Done():
		return ready{}, ctx.Err()
	}
}

// kill ends the child with SIGKILL and returns when it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error says that it is gone already
	<-c.done
}

// stop lets the child end in good order, and kills it if it takes too long.
func (c *child) stop() {
	_ = c.stdin.Close()
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		c.kill()
	}
}

// pid is the process's id.
func (c *child) pid() int { return c.cmd.Process.Pid }

// underParent returns a context that ends when the parent does, or lets go of
// the child's standard input.
func underParent(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // whatever ends it, the parent is gone
		cancel()
	}()
	return ctx, cancel
}
