package enginetest

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// updateEnv, set to anything, makes Diagram write its files.
const updateEnv = "PAWL_UPDATE"

// Diagram compares a drawing, such as statemachine.Definition.Mermaid gives, with
// the file that is checked in. PAWL_UPDATE=1 writes the file instead.
func Diagram(t testing.TB, drawing, file string) {
	t.Helper()
	if os.Getenv(updateEnv) != "" {
		if err := os.WriteFile(file, []byte(drawing), 0o600); err != nil {
			t.Fatalf("write the diagram: %v", err)
		}
		return
	}
	want, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Fatalf("there is no %s: run the test with %s=1 to write it", file, updateEnv)
	case err != nil:
		t.Fatalf("read the diagram: %v", err)
	case string(want) != drawing:
		t.Errorf("the graph is not that of %s (%s=1 writes it anew):\n%s", file, updateEnv, drawing)
	}
}
