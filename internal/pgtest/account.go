package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the operating system's user that runs a server. The zero value
// is the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount returns the user that servers of this process run as: the same
// user, unless that is root, which PostgreSQL refuses.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody: run the tests as another user")
}

// String returns the user's name as messages show it.
func (a account) String() string {
	if a.name == "" {
		return "this user"
	}
	return a.name
}

// command prepares a program to be run by the account, in a session of its own,
// so that a Ctrl-C at the terminal doesn't reach it. PG* variables and the
// locale of the caller are left out, since they would change what it does.
func (a account) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.name != "" {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// tempFolder creates a folder that belongs to the account and that it can reach:
// in the usual folder for temporary files, or in /tmp where that one is closed
// to others or its name is too long for the path of a socket.
func (a account) tempFolder() (string, error) {
	parent := os.TempDir()
	if len(parent) > 60 || (a.name != "" && !openToAll(parent)) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "pawl-pg-")
	if err != nil {
		return "", fmt.Errorf("create folder for PostgreSQL: %w", err)
	}
	if a.name != "" {
		if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
			return "", errors.Join(fmt.Errorf("give folder to %s: %w", a, err), os.Remove(dir))
		}
	}
	return dir, nil
}

// openToAll reports whether every user may pass through the folder and all
// above it.
func openToAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}
