package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// defaultDatabase is where orders are kept unless --database-url says
// otherwise.
const defaultDatabase = "sqlite:./order-saga.db"

// databaseEnv is the environment variable that stands in for --database-url.
// This program tells its children by it, since everybody can see a flag.
const databaseEnv = "ORDER_SAGA_DATABASE_URL"

// settings are the flags that more than one command has.
type settings struct {
	databaseURL string
	bankFile    string
}

// stage returns where everything is.
func (s *settings) stage() stage {
	return stage{databaseURL: s.databaseURL, bankFile: s.bankPath()}
}

// sqlitePath is the path of the orders' SQLite file; "" if they are elsewhere.
func (s *settings) sqlitePath() string {
	path, ok := strings.CutPrefix(s.databaseURL, "sqlite:")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(path, "//")
}

// bankPath is the bank's file: unless it is named, it lies beside the SQLite
// file of the orders, or in the current directory.
func (s *settings) bankPath() string {
	switch path := s.sqlitePath(); {
	case s.bankFile != "":
		return s.bankFile
	case path == "":
		return "order-saga-bank.db"
	default:
		return strings.TrimSuffix(path, ".db") + "-bank.db"
	}
}

// exists returns an error if the orders would be in a file that is not there.
func (s *settings) exists() error {
	path := s.sqlitePath()
	if path == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database file %q: run the program without an argument first", path)
	}
	return nil
}

func rootCommand() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:           "order-saga",
		Short:         "Orders that survive kill -9: without an argument, a tour of three",
		Args:          usageArgs(cobra.NoArgs),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTour(cmd.Context(), s.stage(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	root.PersistentFlags().StringVar(&s.databaseURL, "database-url", cmp.Or(os.Getenv(databaseEnv), defaultDatabase), "sqlite:PATH or postgres://…; also "+databaseEnv)
	root.PersistentFlags().Lookup("database-url").DefValue = defaultDatabase // the environment's may hold a password
	root.PersistentFlags().StringVar(&s.bankFile, "bank-file", "", "the bank's own file (default: beside the SQLite file)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(bankCommand(s), workerCommand(s), orderCommand(s), auditCommand(s), chaosCommand(s))
	return root
}

// usageArgs makes the errors of a check of arguments errors of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		return nil
	}
}

func auditCommand(s *settings) *cobra.Command {
	var sc scope
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Count orders, stock and money, and say whether they agree",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.exists(); err != nil {
				return err
			}
			c, err := newClient(cmd.Context(), s.databaseURL, nil)
			if err != nil {
				return err
			}
			defer c.close()
			a, err := takeAudit(cmd.Context(), c.db, s.bankPath(), sc)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&sc.run, "run", "", "only the orders of one tour or chaos, by the middle part of their ids")
	return cmd
}

func chaosCommand(s *settings) *cobra.Command {
	var cfg chaosConfig
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Kill workers with SIGKILL while orders are under way, then audit",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.stage = s.stage()
			return runChaos(cmd.Context(), cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.orders, "orders", 300, "place at least so many orders")
	f.IntVar(&cfg.workers, "workers", 3, "worker processes at once")
	f.IntVar(&cfg.kills, "kills", 20, "go on until at least so many workers were killed")
	f.DurationVar(&cfg.killEvery, "kill-every", 400*time.Millisecond, "kill a worker about this often")
	f.Uint64Var(&cfg.seed, "seed", 0, "decides the orders, the delays and the kills (default: chosen and printed)")
	f.BoolVar(&cfg.noIdempotency, "no-idempotency", false, "make the bank ignore idempotency keys: the audit must then fail")
	return cmd
}

// childFlag adds the flag by which this program tells its own children to talk
// to it instead of to a person, and to end when it does.
func childFlag(cmd *cobra.Command, child *bool) {
	cmd.Flags().BoolVar(child, "child", false, "")
	_ = cmd.Flags().MarkHidden("child") // the flag is there: it was made in the line before
}

// childContext is the context of a command that may be a child.
func childContext(cmd *cobra.Command, child bool) (context.Context, context.CancelFunc) {
	if child {
		return underParent(cmd.Context(), cmd.InOrStdin())
	}
	return context.WithCancel(cmd.Context())
}
