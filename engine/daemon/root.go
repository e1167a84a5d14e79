package daemon

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// rootCommand builds the tree of commands.
func (a *app) rootCommand() *cobra.Command {
	root := a.group(a.name, "Durable workflows in your own database",
		a.runCommand(), a.migrateCommand(), a.workflowCommand(), a.scheduleCommand(), a.queueCommand(), a.retentionCommand(), a.workerCommand(), a.definitionCommand(), a.versionCheckCommand(), a.versionCommand())
	root.Long = root.Short + `.

Exit codes: 0 done; 1 failed; 2 refused as it stands (flags, arguments, ids,
input, definition); 3 no such workflow; 4 in conflict with what exists; 5 timed
out; 130 or 143 left at once after a second SIGINT or SIGTERM.`
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.PersistentPreRunE = a.settle
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see: %s --help", flagText(err), cmd.CommandPath())
	})
	a.globalFlags(root)
	return root
}

// group is a command that only holds others.
func (a *app) group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

// word is what may be a mistyped command.
var word = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// flagText is what is wrong with a flag, without the value that it was given:
// a single dash before a long flag makes the whole argument part of the text.
func flagText(err error) string {
	text, _, _ := strings.Cut(err.Error(), " in -")
	return unquoteURL(text)
}

func unknownCommand(cmd *cobra.Command, arg string) error {
	cmd.SuggestionsMinimumDistance = 2
	if !word.MatchString(arg) { // a URL that lacks its flag, perhaps, with a password in it
		return usagef("%s has no command like that; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	msg := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), arg)
	if near := cmd.SuggestionsFor(arg); len(near) > 0 {
		return usagef("%s; did you mean: %s %s", msg, cmd.CommandPath(), strings.Join(near, ", "))
	}
	return usagef("%s; see: %s --help", msg, cmd.CommandPath())
}

// takes makes a command take exactly the named arguments.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usagef("%s takes %s, not %d arguments; see: %s --help",
			cmd.CommandPath(), listed(names), len(args), cmd.CommandPath())
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " and ")
}
