package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pawlhq/pawl/internal/pgtest"
)

func main() {
	if os.Getenv(pgtest.EnvURL) != "" {
		fmt.Printf("PostgreSQL: the server in %s\n", pgtest.EnvURL)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	found, err := pgtest.Install(ctx, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pginstall:", err)
		os.Exit(1)
	}
	fmt.Printf("PostgreSQL %d: %s\n", found.Version, found.Dir)
}
