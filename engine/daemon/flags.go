package daemon

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// flags are what all commands understand.
type flags struct {
	url        string
	schema     string
	output     string
	timeFormat string
	color      string
	logLevel   string
	logFormat  string
	timeout    time.Duration
	timeoutSet bool

	input     string
	messageID string
	reason    string
	payload   bool
}

func (a *app) globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.flags.url, "database-url", "", urlForm+" (PAWL_DATABASE_URL, DATABASE_URL)")
	f.StringVar(&a.flags.schema, "schema", "", "PostgreSQL schema (default pawl)")
	f.StringVarP(&a.flags.output, "output", "o", "text", "text, json or jsonl")
	f.StringVar(&a.flags.timeFormat, "time-format", "relative", "relative or iso, in text")
	f.StringVar(&a.flags.color, "color", "auto", "auto, always or never")
	f.StringVar(&a.flags.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&a.flags.logFormat, "log-format", "text", "text or json")
}

// clientFlags are for the commands that work as clients.
func (a *app) clientFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().DurationVar(&a.flags.timeout, "timeout", clientTimeout, "how long the command may take, 0 for no limit (none with --wait and --follow)")
}

// settle checks the flags that all commands share.
func (a *app) settle(cmd *cobra.Command, _ []string) error {
	for _, c := range []struct {
		name, value string
		allowed     []string
	}{
		{"output", a.flags.output, []string{"text", "json", "jsonl"}},
		{"time-format", a.flags.timeFormat, []string{"relative", "iso"}},
		{"color", a.flags.color, []string{"auto", "always", "never"}},
		{"log-level", a.flags.logLevel, []string{"debug", "info", "warn", "error"}},
		{"log-format", a.flags.logFormat, []string{"text", "json"}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return usagef("--%s %q: it is one of %s", c.name, c.value, strings.Join(c.allowed, ", "))
		}
	}
	if f := cmd.Flags().Lookup("timeout"); f != nil {
		a.flags.timeoutSet = f.Changed
	}
	if a.flags.timeout < 0 {
		return usagef("--timeout %v: it cannot be negative", a.flags.timeout)
	}
	return nil
}

// databaseURL is the flag's value, or the environment's.
func (a *app) databaseURL() (string, error) {
	for _, url := range []string{a.flags.url, a.getenv("PAWL_DATABASE_URL"), a.getenv("DATABASE_URL")} {
		if url != "" {
			return url, nil
		}
	}
	return "", usagef("no database: pass --database-url or set PAWL_DATABASE_URL to %s", urlForm)
}

// logger writes to the standard error.
func (a *app) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(a.flags.logLevel)) // settle has checked it
	opts := &slog.HandlerOptions{Level: level}
	if a.flags.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.err, opts))
}

// text reports whether the output is for people.
func (a *app) text() bool { return a.flags.output == "text" }

// colored reports whether text may hold colours.
func (a *app) colored() bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(a.out.w)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
