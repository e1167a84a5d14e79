package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlhq/pawl/engine"
)

// logs keeps the log of one worker, in this process or another, line by line.
type logs struct {
	mu      sync.Mutex
	rest    []byte
	lines   []string
	changed chan struct{}
}

func newLogs() *logs { return &logs{changed: make(chan struct{})} }

// handler writes to the logs as a worker process does.
func (l *logs) handler() slog.Handler { return slog.NewJSONHandler(l, nil) }

// Write implements io.Writer. A line may come in parts.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.lines = append(l.lines, string(line))
		l.rest = append([]byte(nil), rest...)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return len(p), nil
}

// count returns how many lines hold all of the texts.
func (l *logs) count(texts ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if holdsAll(line, texts) {
			n++
		}
	}
	return n
}

func holdsAll(line string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(line, text) {
			return false
		}
	}
	return true
}

// await waits for n lines that hold all of the texts.
func (l *logs) await(t testing.TB, n int, texts ...string) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if l.count(texts...) >= n {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("never logged %q %d times:\n%s", texts, n, l)
		}
	}
}

// String implements fmt.Stringer.
func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// worker returns the id of the worker that joined last.
func (l *logs) worker(t testing.TB) string {
	t.Helper()
	l.await(t, 1, "worker joined")
	l.mu.Lock()
	defer l.mu.Unlock()
	var id string
	for _, line := range l.lines {
		var rec struct{ Msg, Worker string }
		if json.Unmarshal([]byte(line), &rec) == nil && rec.Msg == "worker joined" {
			id = rec.Worker
		}
	}
	return id
}

// stepLog keeps what OnStep was told.
type stepLog struct {
	mu     sync.Mutex
	events []engine.StepEvent
}

func (s *stepLog) add(e engine.StepEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// of returns what was told of a workflow's step.
func (s *stepLog) of(workflow, step string) []engine.StepEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []engine.StepEvent
	for _, e := range s.events {
		if e.WorkflowID == workflow && e.Step == step {
			found = append(found, e)
		}
	}
	return found
}

// outcomes returns what was told of a workflow as "step:outcome".
func (s *stepLog) outcomes(workflow string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, e := range s.events {
		if e.WorkflowID == workflow {
			list = append(list, fmt.Sprintf("%s:%s", e.Step, e.Outcome))
		}
	}
	return list
}
