package pgtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeInstallation makes a folder whose postgres prints a text.
func fakeInstallation(t *testing.T, says string) string {
	t.Helper()
	owner, err := serverAccount()
	require.NoError(t, err)
	// The server's user must reach it, which it can't in a test's own folder.
	dir, err := owner.tempFolder()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, program := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+says+"\n"), 0o755))
	}
	return dir
}

// The first folder that holds a usable PostgreSQL wins; the others are passed
// over, and named if there is none.
func TestFindIn(t *testing.T) {
	t.Parallel()
	owner, err := serverAccount()
	require.NoError(t, err)
	var (
		absent = filepath.Join(t.TempDir(), "absent")
		old    = fakeInstallation(t, "echo 'postgres (PostgreSQL) 13.9'")
		broken = fakeInstallation(t, "exit 3")
		mute   = fakeInstallation(t, ":")
		good   = fakeInstallation(t, "echo 'postgres (PostgreSQL) 14.1 (Debian 14.1-1)'")
		newer  = fakeInstallation(t, "echo 'postgres (PostgreSQL) 19devel'")
	)
	found, err := findIn([]string{absent, old, broken, mute, good, newer}, owner)
	require.NoError(t, err)
	require.Equal(t, Binaries{Dir: good, Version: 14}, found)

	_, err = findIn([]string{absent, old, broken, mute}, owner)
	require.ErrorIs(t, err, ErrNoPostgres)
	require.ErrorContains(t, err, "go run ./internal/pgtest/cmd/pginstall")
	require.ErrorContains(t, err, old+" has version 13, and pawl needs 14 or newer")
	require.ErrorContains(t, err, broken)
	require.ErrorContains(t, err, mute)
	require.NotContains(t, err.Error(), absent)
}

func TestNewestFirst(t *testing.T) {
	t.Parallel()
	folders := []string{"/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/14/bin"}
	slices.SortStableFunc(folders, newestFirst)
	require.Equal(t, []string{"/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/14/bin", "/usr/lib/postgresql/9.6/bin"}, folders)
}

func TestOpenToAll(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	inside := filepath.Join(closed, "inside")
	require.NoError(t, os.MkdirAll(inside, 0o755))
	require.NoError(t, os.Chmod(closed, 0o750))
	require.True(t, openToAll("/tmp"))
	require.False(t, openToAll(inside), "the folder above is closed")
	require.False(t, openToAll(filepath.Join(closed, "absent")))
}
