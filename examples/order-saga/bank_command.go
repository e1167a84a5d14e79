package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/examples/order-saga/bank"
)

func bankCommand(s *settings) *cobra.Command {
	var cfg bank.Config
	var child bool
	cmd := &cobra.Command{
		Use:   "bank",
		Short: "Run the bank: HTTP on a free port of the loopback interface",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := childContext(cmd, child)
			defer cancel()
			cfg.File = s.bankPath()
			if !child {
				defer os.Remove(urlFile(cfg.File)) //nolint:errcheck // a stale one is found out by whoever uses it
				return runBank(ctx, cfg, func(url string) error {
					fmt.Fprintf(cmd.OutOrStdout(), "bank on %s, file %s\n", url, cfg.File)
					return announce(cfg.File, url)
				})
			}
			t := newTeller(cmd.OutOrStdout())
			cfg.OnEffect = func(e bank.Effect) { t.tell(message{Effect: &e}) }
			return runBank(ctx, cfg, func(url string) error {
				t.tell(message{Ready: &ready{URL: url}})
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&cfg.MinDelay, "min-delay", 0, "the least time that a request takes")
	f.DurationVar(&cfg.MaxDelay, "max-delay", 0, "the most time that a request takes")
	f.Uint64Var(&cfg.Seed, "seed", 1, "decides the delays")
	f.BoolVar(&cfg.IgnoreKeys, "no-idempotency", false, "charge whenever asked to, whatever the key")
	childFlag(cmd, &child)
	return cmd
}

// runBank serves until ctx is done. It calls ready once it can be called.
func runBank(ctx context.Context, cfg bank.Config, ready func(url string) error) error {
	b, err := bank.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // what was answered is on the disk
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("run bank: %w", err)
	}
	if err := ready("http://" + listener.Addr().String()); err != nil {
		return errors.Join(fmt.Errorf("run bank: %w", err), listener.Close())
	}
	return serve(ctx, listener, b)
}

func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("run bank: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return server.Close()
	}
	return nil
}

// urlFile is where a bank leaves its URL.
func urlFile(bankFile string) string { return bankFile + ".url" }

// announce leaves the bank's URL beside its file, where workers find it.
func announce(bankFile, url string) error {
	f, err := os.CreateTemp(filepath.Dir(bankFile), filepath.Base(bankFile)+".url-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(url + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), urlFile(bankFile))
}

// findBank reads the URL that a bank has left.
func findBank(bankFile string) (string, error) {
	text, err := os.ReadFile(urlFile(bankFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no bank is running on %s: start one with the command bank, or say --bank-url", bankFile)
	}
	return strings.TrimSpace(string(text)), err
}
