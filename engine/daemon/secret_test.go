package daemon_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine/daemon"
	"github.com/pawlhq/pawl/store"
)

const secret = "hunter2"

// malformed are URLs that somebody has typed, pasted or half escaped.
var malformed = []string{
	"postgres://ann:" + secret + "@localhost:1/orders",
	"postgres://ann:" + secret + "@localhost:1/orders?sslmode=bogus",
	"postgres://ann:" + secret + "@localhost:1/orders?connect_timeout=x",
	"postgres://ann:" + secret + "@localhost:port/orders",
	"postgres://ann:" + secret + "@[::1/orders",
	"postgres://ann:" + secret + "%@localhost:1/orders",
	"postgres://ann:" + secret + "%zz@localhost:1/orders",
	"postgres://ann:" + secret + "/1@localhost:1/orders",
	"postgres://ann:" + secret + "?1@localhost:1/orders",
	"postgres://ann:" + secret + "#1@localhost:1/orders",
	"postgres://ann:1#" + secret + "@localhost:1/orders",
	"postgres://ann:1/" + secret + "@localhost:1/orders",
	"postgres://ann:1?" + secret + "@localhost:1/orders",
	"postgres://ann:" + secret + " 1@localhost:1/orders",
	"postgres://ann:" + secret + "@1@localhost:1/orders",
	"postgres://ann:" + secret + "\x7f@localhost:1/orders",
	"postgres://ann:" + secret + "\n@localhost:1/orders",
	"postgres://ann:" + secret,
	"postgres://:" + secret + "@localhost:1",
	"postgres://localhost:1/orders?password=" + secret + "&sslmode=bogus",
	"postgres://localhost:1/orders?sslpassword=" + secret + "&sslmode=bogus",
	"postgres:ann:" + secret + "@localhost:1/orders",
	"postgres:/ann:" + secret + "@localhost:1/orders",
	"postgresql://ann:" + secret + "@localhost:1/orders?schema=Bad-Name",
	"Postgres://ann:" + secret + "@localhost:1/orders",
	"mysql://ann:" + secret + "@localhost:1/orders",
	"ann:" + secret + "@localhost:1/orders",
	"host=localhost port=1 password=" + secret,
	"host=localhost port=1 password='" + secret + " 1'",
	"sqlite://ann:" + secret + "@localhost:1/orders",
	"sqlite:ann:" + secret + "@localhost:1/orders",
	"sqlite:/:" + secret + "@localhost:1/orders",
	"sqlite://ann:1/" + secret + "@localhost:1/orders",
	"jdbc:postgresql://ann:" + secret + "@localhost:1/orders",
	" postgres://ann:" + secret + "@localhost:1/orders",
	"\"postgres://ann:" + secret + "@localhost:1/orders\"",
}

// No command prints the password of a database URL, wherever the URL was given.
func TestPasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	for _, url := range malformed {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			p := programOn(t, url)
			for _, args := range [][]string{
				{"workflow", "list"},
				{"run"},
				{"migrate", "up"},
				{"migrate", "status", "-o", "json", "--log-level", "debug"},
				{"workflow", "start", "parcel", "x", "--input", "{}", "--database-url", url},
				{"workflow", "list", "--database-url=" + url, "--schema", "Bad"},
				{"workflow", "list", "-database-url=" + url},
				{"workflow", "list", url},
				{"workflow", url},
				{url},
			} {
				r := p.run(args...)
				require.NotZero(t, r.code, "%q %s", args, r.out)
				require.NotContains(t, r.out+r.err, secret, "%q", args)
				require.Equal(t, 1, strings.Count(r.err, "\n"), "one line: %q", r.err)
			}
		})
	}
}

func TestOpenStoreSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]error{
		"":                             store.ErrBadURL,
		"orders.db":                    store.ErrBadURL,
		"sqlite:":                      store.ErrBadURL,
		"sqlite://":                    store.ErrBadURL,
		"sqlite:a?mode=ro":             store.ErrBadURL,
		"sqlite:/":                     store.ErrBadURL,
		"mysql://h/db":                 store.ErrBadURL,
		"postgres://[::1/db":           store.ErrBadURL,
		"postgres://h/db#frag":         store.ErrBadURL,
		"postgres://h/db?user=@":       store.ErrBadURL,
		"postgres://h/db?port=-1":      store.ErrBadURL,
		"postgres://h:1/db?schema=Bad": store.ErrBadSchemaName,
	} {
		_, err := daemon.OpenStore(t.Context(), url, "")
		require.ErrorIs(t, err, want, url)
	}
	_, err := daemon.OpenStore(t.Context(), "sqlite:x.db", "shop")
	require.ErrorIs(t, err, store.ErrBadSchemaName)
	_, err = daemon.OpenStore(t.Context(), "postgres://h:1/db", "Bad")
	require.ErrorIs(t, err, store.ErrBadSchemaName)
}

func TestShownURLKeepsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"sqlite:orders.db":                                 "sqlite:orders.db",
		"sqlite:///var/orders.db":                          "sqlite:/var/orders.db",
		"postgres://ann:hunter2@db.example:5432/orders":    "postgres://ann@db.example:5432/orders",
		"postgres://ann:h%40nter@db/orders?sslmode=verify": "postgres://ann@db/orders",
		"postgresql://db/orders?password=hunter2":          "postgresql://db/orders",
		"postgres://ann%3Ahunter2@db/orders":               "postgres://db/orders",
	} {
		got, err := daemon.ShownURL(url, "")
		require.NoError(t, err, url)
		require.Equal(t, want, got)
	}
}

// Whatever else fails, what looks like a password does not reach the terminal.
func TestConceal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"dial postgres://ann:a@b@db:1/x: no":                              "dial postgres://…@db:1/x: no",
		"dsn host=x password=hunter2 port=1":                              "dsn host=x password=… port=1",
		"dsn Password = 'hun ter2' port=1":                                "dsn Password = … port=1",
		"postgres://db/x?password=hunter2&sslmode=a":                      "postgres://db/x?password=…&sslmode=a",
		"see https://example.org/x":                                       "see https://example.org/x",
		"form sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE": "form sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE",
	} {
		require.Equal(t, want, daemon.Conceal(text))
	}
	require.Equal(t, "-d=postgres://…", daemon.UnquoteURL("-d=postgres://ann:hunter2"))
}

func TestLineIsPrintable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a; b \uFFFD[31m \uFFFD", daemon.Line("a\n\n\tb \x1b[31m \xff"))
	require.LessOrEqual(t, len(daemon.Line(strings.Repeat("é", 5000))), 5000)
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"a/b-1": "a/b-1", "it's": `'it'\''s'`, "": "''", "a b": "'a b'", "é": "'é'", "$x": "'$x'"} {
		require.Equal(t, want, daemon.ShellWord(word))
	}
}

// FuzzOpenStore looks for a URL whose password shows in the error, or in what is
// shown of a good one.
func FuzzOpenStore(f *testing.F) {
	for _, url := range malformed {
		before, after, _ := strings.Cut(url, secret)
		f.Add(before, after)
	}
	const password = "hunter2-Zq8x"
	f.Fuzz(func(t *testing.T, before, after string) {
		if !strings.HasSuffix(before, ":") && !strings.HasSuffix(before, "assword=") {
			before += ":"
		}
		if before == "sqlite:" {
			t.Skip("what follows is a path")
		}
		if strings.HasSuffix(before, ":") && !strings.Contains(after, "@") {
			after += "@h/db" // else it is no password
		}
		url := before + password + after
		if shown, err := daemon.ShownURL(url, ""); err == nil {
			require.NotContains(t, shown, password, url)
		} else {
			require.NotContains(t, err.Error(), password, url)
		}
		if strings.HasPrefix(url, "sqlite:") {
			return // would make a file
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := daemon.OpenStore(ctx, url, "")
		if err == nil {
			t.Fatal(errors.New("opened"))
		}
		require.NotContains(t, err.Error(), password, url)
	})
}
