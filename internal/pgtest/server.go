package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout and stopTimeout bound how long a server may take to start
// (recovery after a crash included) and to stop.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
)

// StopMode says how a server is stopped.
type StopMode int

const (
	// Fast ends all sessions, rolls their transactions back and shuts the server
	// down in order, as `pg_ctl stop` and a restart by an operator do.
	Fast StopMode = iota
	// Immediate ends all processes at once, without a checkpoint: a crash. The
	// next start recovers from the write-ahead log.
	Immediate
)

// signal returns the signal by which the postmaster learns of the mode.
func (m StopMode) signal() syscall.Signal {
	if m == Immediate {
		return syscall.SIGQUIT
	}
	return syscall.SIGINT
}

// Setting changes one parameter of a server's configuration.
type Setting struct {
	Name  string // for example "max_connections"
	Value string // as in postgresql.conf, without quotes
}

// Server is a throw-away PostgreSQL of the caller's own. Its methods may be
// called from several goroutines; each waits for the one before it.
type Server struct {
	bin      Binaries
	owner    account
	settings []Setting
	password string
	base     string // folder of the data, the socket and the log
	port     int    // chosen by the first start, kept by later ones

	mu    sync.Mutex
	proc  *process // nil while stopped
	guard *guard   // ends the server if this process ends first
}

// Start starts a server for one test, which may stop and start it as it likes. It
// is removed when the test ends. It takes about two seconds; a test that
// only needs a database uses [URL].
func Start(t testing.TB, settings ...Setting) *Server {
	t.Helper()
	s, err := Launch(settings...)
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("remove PostgreSQL: %v", err)
		}
	})
	return s
}

// Shared are the settings of the server that many tests share. It does not wait
// for the disk: what it has committed survives the death of any process, its
// own included, and only that of the machine could tell the difference. Servers
// of [Start] and [Launch] are as durable as by default.
var Shared = []Setting{{"fsync", "off"}, {"full_page_writes", "off"}}

// Launch starts a server outside of a test. The caller must Close it.
func Launch(settings ...Setting) (*Server, error) {
	bin, err := findOnce()
	if err != nil {
		return nil, err
	}
	owner, err := serverAccount()
	if err != nil {
		return nil, err
	}
	base, err := owner.tempFolder()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, owner: owner, settings: settings, password: rand.Text(), base: base}
	if s.guard, err = newGuard(base, s.dataDir()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(base))
	}
	if err := s.initialise(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// URL returns the URL of the server's database "postgres", with the password
// of a superuser in it. It stays the same when the server is stopped and started.
func (s *Server) URL() string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", s.password),
		Host:     "127.0.0.1:" + strconv.Itoa(s.port),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}).String()
}

// Version returns the major version of the server, for example 17.
func (s *Server) Version() int {
	return s.bin.Version
}

// Start starts a stopped server on the port it had, and returns when it accepts
// queries. The error, after at most a minute, ends with the server's log. A
// running server is left as it is.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.ended() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	fixed := s.port != 0
	for {
		if !fixed {
			port, err := freePort()
			if err != nil {
				return err
			}
			s.port = port
		}
		err := s.startOnce(ctx)
		if err == nil || !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return err
		}
	}
}

// Stop stops the server and returns when all its processes are gone. Where that
// takes longer than half a minute the server is killed, and an error returned. A
// stopped server is left as it is.
func (s *Server) Stop(mode StopMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	proc := s.proc
	s.proc = nil
	return proc.stop(mode, stopTimeout)
}

// Restart stops the server in the given mode and starts it again.
func (s *Server) Restart(mode StopMode) error {
	if err := s.Stop(mode); err != nil {
		return err
	}
	return s.Start()
}

// Close stops the server if it runs, and removes all that it had. The server
// can't be used any more.
func (s *Server) Close() error {
	// The data is about to go, so that there is nothing to shut down in order.
	err := s.Stop(Immediate)
	s.guard.release()
	return errors.Join(err, os.RemoveAll(s.base))
}

// Log returns the end of the server's log, for a message about a failure.
func (s *Server) Log() string {
	return tailOf(s.logFile())
}

func (s *Server) dataDir() string { return filepath.Join(s.base, "data") }

func (s *Server) logFile() string { return filepath.Join(s.base, "log") }

// initialise creates the server's data folder.
func (s *Server) initialise() error {
	passwordFile := filepath.Join(s.base, "password")
	if err := os.WriteFile(passwordFile, []byte(s.password), 0o600); err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	if s.owner.name != "" {
		if err := os.Chown(passwordFile, int(s.owner.uid), int(s.owner.gid)); err != nil {
			return fmt.Errorf("give password file to %s: %w", s.owner, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// --no-sync concerns these files only: the server itself syncs as usual.
	cmd := s.owner.command(ctx, filepath.Join(s.bin.Dir, "initdb"),
		"--pgdata="+s.dataDir(), "--username=postgres", "--pwfile="+passwordFile,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir = s.base
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb as %s: %w\n%s", s.owner, err, out)
	}
	return nil
}
