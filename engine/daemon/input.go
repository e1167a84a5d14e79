package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/engine"
)

func (a *app) inputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.flags.input, "input", "", "a JSON value, @FILE, or - for the standard input")
}

// input returns the value of --input, which must be one JSON value.
func (a *app) input() ([]byte, error) {
	value, err := a.readInput()
	if err != nil {
		return nil, err
	}
	if len(value) > engine.HardMaxPayload {
		return nil, fmt.Errorf("--input: %w: at most %d bytes", engine.ErrTooLarge, engine.HardMaxPayload)
	}
	if json.Valid(value) {
		return value, nil
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("--input: %w: %w", engine.ErrBadInput, err)
	}
	return nil, fmt.Errorf("--input: %w: it is not JSON", engine.ErrBadInput)
}

func (a *app) readInput() ([]byte, error) {
	text := a.flags.input
	switch path, isFile := strings.CutPrefix(text, "@"); {
	case text == "":
		return nil, usagef("no input: pass --input with a JSON value, @FILE, or - for the standard input")
	case text == "-":
		return readAll("the standard input", a.in)
	case isFile:
		f, err := os.Open(path)
		if err != nil {
			return nil, usagef("--input: %v", err)
		}
		defer f.Close()
		return readAll(path, f)
	}
	return []byte(text), nil
}

// readAll reads no more than is needed to see that it is too much.
func readAll(name string, r io.Reader) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(r, engine.HardMaxPayload+1))
	if err != nil {
		return nil, usagef("--input: read %s: %v", name, err)
	}
	return value, nil
}
