package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong, or the audit found a wrong figure
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errUsage marks errors in how the program was called.
var errUsage = errors.New("usage")

// run is the program, as far as a test can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errAudit): // its findings are printed already
		return exitFailed
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "order-saga: %v (see --help)\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "order-saga: %v\n", err)
		return exitFailed
	}
}
