package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlhq/pawl/store"
)

// checkPath returns the absolute form of path, or says why it cannot be a
// database file. SQLite's own word for all of it is "unable to open".
func checkPath(path string) (string, error) {
	switch {
	case strings.TrimSpace(path) == "":
		return "", badPath(path, "it is empty")
	case strings.ContainsRune(path, 0):
		return "", badPath(path, "it holds a NUL")
	case strings.Contains(path, ":memory:"), strings.Contains(path, "mode=memory"):
		return "", badPath(path, "a database in memory would be gone with the process, and every connection would have its own")
	case strings.HasPrefix(path, "sqlite:"):
		return "", badPath(path, "it is a URL: give the path that follows the scheme")
	case strings.HasPrefix(path, "file:"):
		return "", badPath(path, "it is a URI: give the path of the file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", badPath(path, err.Error())
	}
	if strings.HasSuffix(path, string(filepath.Separator)) || isDir(abs) {
		return "", badPath(path, "it is a directory")
	}
	parent := filepath.Dir(abs)
	switch _, err := os.Stat(parent); {
	case errors.Is(err, fs.ErrNotExist):
		return "", badPath(path, fmt.Sprintf("there is no directory %q", parent))
	case err != nil:
		return "", badPath(path, err.Error())
	case !isDir(parent):
		return "", badPath(path, fmt.Sprintf("%q is not a directory", parent))
	}
	return abs, nil
}

func badPath(path, why string) error {
	return fmt.Errorf("open %q: %w: %s", path, store.ErrBadURL, why)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// dsn returns the driver's name for a connection to path whose transactions
// begin as txlock says.
func dsn(path, txlock string) string {
	q := url.Values{
		"_txlock": {txlock},
		"_pragma": { // in this order
			fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
			"synchronous(FULL)",
			"foreign_keys(OFF)",
		},
	}
	return "file:" + url.PathEscape(filepath.ToSlash(path)) + "?" + q.Encode()
}
