package daemon

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/store"
)

// The shapes of the JSON output are documented in doc.go. A key is never taken
// away and never changes its meaning.

type workflowJSON struct {
	ID         string        `json:"id"`
	Definition string        `json:"definition"`
	Version    int           `json:"version"`
	Status     string        `json:"status"`
	State      string        `json:"state"`
	Cause      *string       `json:"cause"`
	Reason     *string       `json:"reason"`
	Step       *markJSON     `json:"step"`
	Awaits     *string       `json:"awaits"`
	Open       int           `json:"open_branches,omitempty"`
	Queue      *queueRefJSON `json:"queue,omitempty"`
	WakeAt     *time.Time    `json:"wake_at"`
	Owner      *string       `json:"owner"`
	Revision   int64         `json:"revision"`
	CreatedAt  time.Time     `json:"created_at"`
	UpdatedAt  time.Time     `json:"updated_at"`
	EndedAt    *time.Time    `json:"ended_at"`

	Data       json.RawMessage `json:"data,omitempty"`
	DataBase64 []byte          `json:"data_base64,omitempty"`
}

// queueRefJSON is where a workflow stands in line.
type queueRefJSON struct {
	Name     string  `json:"name"`
	Key      *string `json:"key"`
	Priority int     `json:"priority"`
}

// markJSON is the step under way.
type markJSON struct {
	Name     string `json:"name"`
	Group    int    `json:"group"`
	Attempt  int    `json:"attempt"`
	Failures int    `json:"failures"`
	Crashes  int    `json:"crashes"`
	Key      string `json:"key"`
}

func jsonOfWorkflow(w engine.Info, payload bool) workflowJSON {
	j := workflowJSON{
		ID: w.ID, Definition: w.Definition.Name, Version: w.Definition.Version,
		Status: string(w.Status), State: string(w.State),
		Cause: optional(string(w.Cause)), Reason: optional(w.Reason), Awaits: optional(w.Awaits), Open: w.Open,
		WakeAt: moment(w.WakeAt), Revision: w.Revision,
		CreatedAt: w.CreatedAt.UTC(), UpdatedAt: w.UpdatedAt.UTC(), EndedAt: moment(w.EndedAt),
	}
	if w.Mark.Step != "" {
		m := w.Mark
		j.Step = &markJSON{m.Step, m.Group, m.Attempt, m.Failures, m.Crashes, w.Key(m.Step, w.Item, m.Group).String()}
	}
	if w.Queue != "" {
		j.Queue = &queueRefJSON{w.Queue, optional(w.QueueKey), w.Priority}
	}
	if !w.Owner.IsZero() {
		j.Owner = optional(w.Owner.String())
	}
	if payload {
		j.Data, j.DataBase64 = stored(w.Raw)
	}
	return j
}

type stepJSON struct {
	Step        string    `json:"step"`
	Group       int       `json:"group"`
	Item        int       `json:"item,omitempty"`
	Status      string    `json:"status"`
	Attempt     int       `json:"attempt"`
	TookSeconds float64   `json:"took_seconds"`
	Key         string    `json:"key"`
	Branch      string    `json:"branch,omitempty"` // the branch that recorded it; none for the workflow's own
	Error       *string   `json:"error"`
	Revision    int64     `json:"revision"`
	EndedAt     time.Time `json:"ended_at"`

	Input        json.RawMessage `json:"input,omitempty"`
	InputBase64  []byte          `json:"input_base64,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	OutputBase64 []byte          `json:"output_base64,omitempty"`
}

func jsonOfSteps(steps []engine.Step, payload bool) []stepJSON {
	all := make([]stepJSON, len(steps))
	for i, s := range steps {
		j := stepJSON{
			Step: s.Step, Group: s.Group, Item: s.Item, Status: string(s.Status), Attempt: s.Attempt, TookSeconds: s.Took.Seconds(),
			Key: s.Key.String(), Branch: s.Branch, Error: optional(s.Error), Revision: s.Revision, EndedAt: s.EndedAt.UTC(),
		}
		if payload {
			j.Input, j.InputBase64 = stored(s.Input)
			j.Output, j.OutputBase64 = stored(s.Output)
		}
		all[i] = j
	}
	return all
}

type defJSON struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
}

func defsJSON(defs []store.Def) []defJSON {
	all := make([]defJSON, len(defs))
	for i, d := range defs {
		all[i] = defJSON(d)
	}
	return all
}

type workerJSON struct {
	ID          string     `json:"id"`
	Host        string     `json:"host"`
	PID         int        `json:"pid"`
	Definitions []defJSON  `json:"definitions"`
	State       string     `json:"state"`
	StartedAt   time.Time  `json:"started_at"`
	LeaseEndsAt time.Time  `json:"lease_ends_at"`
	DeadAt      *time.Time `json:"dead_at"`
}

// stored returns a payload as it is stored: JSON, or else bytes.
func stored(payload []byte) (json.RawMessage, []byte) {
	switch {
	case len(payload) == 0:
		return json.RawMessage("null"), nil
	case json.Valid(payload) && utf8.Valid(payload):
		return payload, nil
	}
	return nil, payload
}

// optional is nil for "".
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// moment is nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// printJSON prints one object: indented, or on one line for jsonl.
func (a *app) printJSON(v any) {
	if a.flags.output == "jsonl" {
		a.printJSONLine(v)
		return
	}
	a.encode(v, "  ")
}

func (a *app) printJSONLine(v any) { a.encode(v, "") }

// encode writes v as it is: no character is escaped that JSON does not ask for.
// What cannot be written is seen at the end, by way of a.out.
func (a *app) encode(v any, indent string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil && a.out.err == nil {
		a.out.err = err
	}
	_, _ = a.out.Write(b.Bytes())
}

// printList prints the items of a list one a line for jsonl, else whole.
func printList[T any](a *app, items []T, whole any) {
	if a.flags.output != "jsonl" {
		a.encode(whole, "  ")
		return
	}
	for _, item := range items {
		a.printJSONLine(item)
	}
}
