package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// Exit codes of pgrun's own.
const (
	exitUsage    = 2
	exitNoServer = 125
	exitNoStart  = 127
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run runs the command in args, and returns the exit code.
func run(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: pgrun [--] command [argument ...]")
		return exitUsage
	}
	// From here on a signal must not end this process before the server.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	environment := os.Environ()
	if os.Getenv(pgtest.EnvURL) == "" {
		server, err := pgtest.Launch(pgtest.Shared...)
		if err != nil {
			fmt.Fprintln(os.Stderr, "pgrun: start PostgreSQL:", err)
			return exitNoServer
		}
		defer func() {
			if err := server.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "pgrun: remove PostgreSQL:", err)
			}
		}()
		environment = append(environment, pgtest.EnvURL+"="+server.URL())
	}
	return runCommand(args, environment, signals)
}

// runCommand runs the command in a process group of its own, to which it passes
// the signals on.
func runCommand(args, environment []string, signals <-chan os.Signal) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "pgrun:", err)
		return exitNoStart
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for received := 0; ; received++ {
		select {
		case err := <-ended:
			return exitCode(err)
		case got := <-signals:
			number, ok := got.(syscall.Signal)
			if !ok || received > 0 {
				number = syscall.SIGKILL
			}
			// The group may have ended just now.
			_ = syscall.Kill(-cmd.Process.Pid, number)
		}
	}
}

// exitCode translates how a command ended into the code a shell would give.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "pgrun:", err)
		return exitNoStart
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
