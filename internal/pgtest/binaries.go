package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// MinVersion is the oldest major version of PostgreSQL that pawl works with.
const MinVersion = 14

// ErrNoPostgres is returned when the machine has no PostgreSQL that tests could
// start.
var ErrNoPostgres = errors.New("no PostgreSQL found")

// Binaries is an installed PostgreSQL.
type Binaries struct {
	Dir     string // the folder that holds initdb and postgres
	Version int    // major version, for example 17
}

// Find returns the PostgreSQL that tests start: the one in PATH, or else the
// newest in the folders where distributions, Homebrew and [Install] put it. One
// that is older than [MinVersion], or that the user it must run as can't
// execute, is passed over. The error is [ErrNoPostgres], and says what to do.
func Find() (Binaries, error) {
	owner, err := serverAccount()
	if err != nil {
		return Binaries{}, err
	}
	return findIn(append(inPath(), usualFolders()...), owner)
}

// findOnce is Find for the servers of one test process, which don't look for
// PostgreSQL more than once.
var findOnce = sync.OnceValues(Find)

// findIn returns the first of the folders whose PostgreSQL can be used.
func findIn(folders []string, owner account) (Binaries, error) {
	var passedOver []error
	for _, dir := range folders {
		version, err := versionOf(dir, owner)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			passedOver = append(passedOver, err)
		case version < MinVersion:
			passedOver = append(passedOver, fmt.Errorf("%s has version %d, and pawl needs %d or newer", dir, version, MinVersion))
		default:
			return Binaries{Dir: dir, Version: version}, nil
		}
	}
	return Binaries{}, errors.Join(append([]error{fmt.Errorf(
		"%w: set PAWL_TEST_DATABASE_URL, or put PostgreSQL %d or newer in PATH, or install it with: go run ./internal/pgtest/cmd/pginstall",
		ErrNoPostgres, MinVersion)}, passedOver...)...)
}

// inPath returns the folder of the postgres in PATH. It follows links, because
// distributions link single programs, and initdb must be beside.
func inPath() []string {
	program, err := exec.LookPath("postgres")
	if err != nil {
		return nil
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil
	}
	return []string{filepath.Dir(program)}
}

// usualFolders returns the folders that exist where PostgreSQL is usually
// installed, newest version first within each pattern.
func usualFolders() []string {
	var folders []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // Red Hat
		"/usr/local/pgsql/bin",                               // built from source
		"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on Apple silicon
		"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
		"/opt/local/lib/postgresql*/bin",                     // MacPorts
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		installedIn(cacheFolder()),
		installedIn(rootCacheFolder),
	} {
		// The only error is a bad pattern.
		matches, _ := filepath.Glob(pattern)
		slices.SortStableFunc(matches, newestFirst)
		folders = append(folders, matches...)
	}
	return folders
}

// newestFirst orders folders by the versions in their names.
func newestFirst(a, b string) int {
	return firstNumber(b) - firstNumber(a)
}

var digits = regexp.MustCompile(`\d+`)

// firstNumber returns the first number in a text, or 0 if there is none.
func firstNumber(text string) int {
	n, err := strconv.Atoi(digits.FindString(text))
	if err != nil {
		return 0
	}
	return n
}

// versionOf asks a folder's postgres for its major version, as the user that
// will run it. The error is os.ErrNotExist if the folder has no server in it.
func versionOf(dir string, owner account) (int, error) {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := owner.command(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("run %s as %s: %w", cmd.Path, owner, err)
	}
	version := firstNumber(string(out))
	if version == 0 {
		return 0, fmt.Errorf("run %s: %q names no version", cmd.Path, out)
	}
	return version, nil
}
