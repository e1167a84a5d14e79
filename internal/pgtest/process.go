package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// errPortTaken means that another program listens on the server's port.
var errPortTaken = errors.New("the port is taken")

// process is a running postmaster.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; set before done is closed
}

// ended reports whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop ends the process. How a process ends that was told to is no error.
func (p *process) stop(mode StopMode, within time.Duration) error {
	if err := p.cmd.Process.Signal(mode.signal()); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal PostgreSQL: %w", err)
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		// Its children notice that the postmaster is gone, and end.
		err := p.cmd.Process.Kill()
		<-p.done
		return errors.Join(fmt.Errorf("PostgreSQL did not stop within %v, and was killed", within), err)
	}
}

// startOnce starts the postmaster on s.port and waits until it answers.
func (s *Server) startOnce(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()

	// The process must outlive ctx, which bounds the start only.
	cmd := s.owner.command(context.WithoutCancel(ctx), filepath.Join(s.bin.Dir, "postgres"), s.arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.base, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start postgres as %s: %w", s.owner, err)
	}
	proc := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		proc.err = cmd.Wait()
		close(proc.done)
	}()
	if err := s.awaitReady(ctx, proc); err != nil {
		return errors.Join(err, proc.stop(Immediate, stopTimeout))
	}
	s.proc = proc
	return nil
}

// arguments returns the command line of the postmaster. A test's settings come
// last, and so win.
func (s *Server) arguments() []string {
	args := []string{"-D", s.dataDir(), "-p", strconv.Itoa(s.port)}
	for _, setting := range append([]Setting{
		{"listen_addresses", "127.0.0.1"},
		{"unix_socket_directories", s.base},
		{"max_connections", "300"},
		{"shared_buffers", "256MB"},
	}, s.settings...) {
		args = append(args, "-c", setting.Name+"="+setting.Value)
	}
	return args
}

// awaitReady returns when the server answers. It asks through the socket in
// the server's own folder: behind the port there could be another server.
func (s *Server) awaitReady(ctx context.Context, proc *process) error {
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		return fmt.Errorf("parse the server's own URL: %w", err)
	}
	config.Host, config.Fallbacks = s.base, nil
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-proc.done:
			return s.startFailure(fmt.Errorf("PostgreSQL ended while starting: %w", proc.err))
		case <-ctx.Done():
			return s.startFailure(fmt.Errorf("PostgreSQL did not answer in time: %w", err))
		case <-poll.C:
		}
	}
}

// startFailure adds the end of the log to an error, and recognises a taken port.
func (s *Server) startFailure(err error) error {
	log := s.Log()
	if strings.Contains(log, "Address already in use") {
		err = errors.Join(errPortTaken, err)
	}
	return fmt.Errorf("%w\n%s", err, log)
}

// freePort returns a port of 127.0.0.1 on which nobody listens. It lies below
// the range from which systems take the ports of outgoing connections, so that
// it is still free when a stopped server starts again.
func freePort() (int, error) {
	const low, high = 15000, 32000
	for range 200 {
		port := low + rand.IntN(high-low)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("close listener: %w", err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port found between %d and %d", low, high)
}

// tailOf returns the end of a text file, or why it can't be read.
func tailOf(path string) string {
	const most = 4 << 10
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// guardScript waits for the end of its input, then stops the server whose
// data is in folder $2, if one runs, and removes folder $1. Unless the input says
// that all is over, it looks again for a while: the process that has been killed may
// have left an initdb or a postgres behind that was about to begin.
const guardScript = `
stop() {
	pid=$(head -n 1 "$2/postmaster.pid" 2>/dev/null)
	if [ -n "$pid" ]; then
		kill -QUIT "$pid" 2>/dev/null
		n=0
		while kill -0 "$pid" 2>/dev/null && [ "$n" -lt 300 ]; do
			n=$((n + 1))
			sleep 0.1
		done
		kill -KILL "$pid" 2>/dev/null
	fi
	rm -rf "$1"
}
said=$(cat)
stop "$1" "$2"
[ "$said" = over ] && exit
for again in 1 2 3 4 5 6 7 8 9 10; do
	sleep 1
	[ -e "$1" ] && stop "$1" "$2"
done
`

// guard is the process that ends a server when this process is gone.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// newGuard starts the guard of a server. Only this process holds the pipe's
// writing end: Go opens it so that no child inherits it.
func newGuard(base, data string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "pgtest-guard", base, data)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe to guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// release lets the guard do its work now, and returns when it is done.
func (g *guard) release() {
	_, _ = io.WriteString(g.pipe, "over")
	_ = g.pipe.Close()
	// It removes what the caller removes too, so that its failure is no matter.
	_ = g.cmd.Wait()
}
