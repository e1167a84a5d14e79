package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"unicode"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// The exit codes. A process that leaves at once after a second signal exits
// with 128 and the signal's number, as a shell has it: 130 or 143.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2 // refused as it stands, nothing was done
	ExitNotFound = 3
	ExitConflict = 4
	ExitTimeout  = 5
)

// usageError is a refusal of flags or arguments.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// signalError says that a signal ended the command before it was done.
type signalError struct {
	sig   os.Signal
	owned bool // it may have owned workflows
}

func (e *signalError) Error() string {
	if e.owned {
		return fmt.Sprintf("left at once (%v); what it owned is taken over when its lease ends", e.sig)
	}
	return fmt.Sprintf("stopped before it began (%v)", e.sig)
}

func (e *signalError) code() int {
	if n, ok := e.sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return ExitFailed
}

// outcomeError is the end of a workflow that was waited for and did not end
// COMPLETED. The output has told of it.
type outcomeError struct {
	id     string
	status store.Status
}

func (e *outcomeError) Error() string {
	if e.status == store.Held {
		return fmt.Sprintf("workflow %q is HELD", e.id)
	}
	return fmt.Sprintf("workflow %q ended %s", e.id, e.status)
}

// remedy is what an error means to whoever typed the command.
type remedy struct {
	is    error
	code  int
	next  func(*app) string // what to do next; nil if the error says it
	brief bool              // the sentinel says enough
}

// remedies are looked through in this order.
var remedies = []remedy{
	{store.ErrSchemaMissing, ExitFailed, try("create it", "migrate up"), true},
	{store.ErrSchemaBehind, ExitFailed, try("bring it up to date", "migrate up"), true},
	{store.ErrSchemaAhead, ExitFailed, say("run a newer version of this program"), false},
	{store.ErrBadURL, ExitUsage, say("the form is " + urlForm + ", with special characters percent-encoded"), false},
	{store.ErrBadSchemaName, ExitUsage, say("a schema is named by 1 to 48 of a-z, 0-9 and _, beginning with a letter"), false},
	{engine.ErrBadID, ExitUsage, say("an id is 1 to 200 bytes of UTF-8 without control characters or outer space"), false},
	{engine.ErrBadInput, ExitUsage, say("pass JSON that fits as --input"), false},
	{engine.ErrTooLarge, ExitUsage, nil, false},
	{engine.ErrUnknownDefinition, ExitUsage, (*app).tellKnown, false},
	{engine.ErrUnknownSignal, ExitUsage, tryID("see what it waits for", "workflow why"), false},
	{statemachine.ErrInvalid, ExitUsage, say("mend the definition"), false},
	{engine.ErrCodec, ExitFailed, say("run a program that is configured with that codec and key"), false},
	{engine.ErrDuplicateDefinition, ExitUsage, say("register each version once"), false},
	{engine.ErrWrongTx, ExitUsage, say("let the step ask for store.Tx, or use the other store"), false},
	{store.ErrGraphChanged, ExitConflict, say("give the changed graph a new version"), false},
	{engine.ErrBadSchedule, ExitUsage, try("see what there is to say", "schedule create --help"), false},
	{engine.ErrQueueNotFound, ExitNotFound, try("list what is there", "queue list"), false},
	{engine.ErrScheduleNotFound, ExitNotFound, try("list what is there", "schedule list"), false},
	{engine.ErrScheduleExists, ExitConflict, tryID("see it", "schedule show"), false},
	{store.ErrNotFound, ExitNotFound, try("list what is there", "workflow list"), false},
	{engine.ErrConflict, ExitConflict, tryID("see it", "workflow show"), false},
	{engine.ErrExpired, ExitConflict, say("its id stays taken: another intent needs another id"), false},
	{engine.ErrEnded, ExitConflict, tryID("see how", "workflow show"), false},
	{engine.ErrPastPivot, ExitConflict, tryID("it can only go forward; see where it is", "workflow why"), false},
	{engine.ErrBadQuery, ExitUsage, nil, false},
	{engine.ErrRefused, ExitConflict, tryID("see how it stands", "workflow why"), false},
	{context.DeadlineExceeded, ExitTimeout, say("is the database reachable? --timeout gives it longer"), false},
	{store.ErrUnsure, ExitFailed, say("look at what has become of it before you repeat it"), false},
	{store.ErrFull, ExitFailed, say("make room and try again"), false},
	{store.ErrBusy, ExitFailed, say("somebody else holds the database; try again"), false},
	{store.ErrRetry, ExitFailed, say("is the database reachable? Try again"), false},
}

func say(text string) func(*app) string { return func(*app) string { return text } }

func try(why, command string) func(*app) string {
	return func(a *app) string { return why + ": " + a.command(command) }
}

func tryID(why, command string) func(*app) string {
	return func(a *app) string { return why + ": " + a.command(command+" "+shellWord(a.id)) }
}

func (a *app) tellKnown() string {
	if len(a.known) == 0 {
		return "this program registers none"
	}
	return "this program knows " + strings.Join(a.known, ", ")
}

// finish turns the error of a command into a line and an exit code.
func (a *app) finish(err error) int {
	if err == nil && a.out.err != nil {
		err = fmt.Errorf("write output: %w", a.out.err)
	}
	if err == nil {
		return ExitOK
	}
	code, text, next := a.judge(err)
	if next != "" {
		text += "; " + next
	}
	fmt.Fprintf(a.err, "%s: %s\n", a.name, line(conceal(text)))
	return code
}

// judge returns the exit code of an error, its text, and what to do next.
func (a *app) judge(err error) (code int, text, next string) {
	text = err.Error()
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage, text, ""
	}
	if e, ok := errors.AsType[*signalError](err); ok {
		return e.code(), text, ""
	}
	if _, ok := errors.AsType[*noFileError](err); ok {
		return ExitFailed, text, try("create it", "migrate up")(a)
	}
	if _, ok := errors.AsType[*outcomeError](err); ok {
		return ExitFailed, text, tryID("see why", "workflow why")(a)
	}
	for _, r := range remedies {
		if !errors.Is(err, r.is) {
			continue
		}
		if r.next != nil {
			next = r.next(a)
		}
		if r.brief {
			text = r.is.Error()
		}
		return r.code, text, next
	}
	return ExitFailed, text, ""
}

// command is how to type a command on the same database. A URL that may hold a
// password is left out.
func (a *app) command(words string) string {
	text := a.name + " " + words
	switch {
	case a.flags.url == "":
	case strings.HasPrefix(a.flags.url, "sqlite:"):
		text += " --database-url " + shellWord(a.flags.url)
	default:
		text += " --database-url …"
	}
	if a.flags.schema != "" {
		text += " --schema " + shellWord(a.flags.schema)
	}
	return text
}

// urlForm is how a database URL is written.
const urlForm = "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE"

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var (
	urlSecret   = regexp.MustCompile(`(?s)://.*@`)
	paramSecret = regexp.MustCompile(`(?i)(password\s*=\s*)('[^']*'|[^\s&;"']+)`)
)

// conceal takes out of a text what looks like a password, whoever wrote it.
// The form that pawl's own messages show is left.
func conceal(text string) string {
	parts := strings.Split(text, urlForm)
	for i, part := range parts {
		part = urlSecret.ReplaceAllString(part, "://…@")
		parts[i] = paramSecret.ReplaceAllString(part, "${1}…")
	}
	return strings.Join(parts, urlForm)
}

// unquoteURL takes out of a text everything behind the scheme of a URL in it:
// for arguments that were given in the wrong place.
func unquoteURL(text string) string {
	before, _, found := strings.Cut(text, "://")
	if !found {
		return text
	}
	return before + "://…"
}

// lineBytes bounds an error's line.
const lineBytes = 4 << 10

// line makes one printable line of a text.
func line(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var parts []string
	for part := range strings.SplitSeq(text, "\n") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	text = printable(strings.Join(parts, "; "))
	if len(text) > lineBytes {
		text = strings.ToValidUTF8(text[:lineBytes], "") + " …"
	}
	return text
}

// printable replaces what a terminal could take for a command.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '\uFFFD'
	}, text)
}
