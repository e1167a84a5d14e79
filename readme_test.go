package pawl_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/order-saga/order"
)

// block returns the first fenced block of the README that begins with opening.
func block(t *testing.T, readme, opening string) string {
	t.Helper()
	_, rest, found := strings.Cut(readme, "```"+opening)
	require.True(t, found, "the README has no block that begins with %q", opening)
	text, _, found := strings.Cut(rest, "\n```")
	require.True(t, found)
	return opening[strings.Index(opening, "\n")+1:] + text + "\n"
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// The program in the README compiles, runs, and prints what the README says;
// run again it finds what it has done.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	text := readme(t)
	program := block(t, text, "go\npackage main")
	want := block(t, text, "\norder-4990/PAY COMPLETED")

	dir, err := os.MkdirTemp(".", "_readme") // inside the module, out of sight of ./...
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	exe := filepath.Join(t.TempDir(), "readme")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "./"+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)

	work := t.TempDir()
	require.Equal(t, want, run(t, exe, work))
	again := run(t, exe, work)
	require.NotContains(t, again, "refunded")
	require.Contains(t, again, "order-990/PAY COMPENSATED")
}

// run runs a program and returns its standard output.
func run(t *testing.T, exe, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Dir = dir
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// The diagram in the README is the one that the definition draws.
func TestReadmeDiagram(t *testing.T) {
	t.Parallel()
	drawn := new(order.Shop).Workflow().Mermaid()
	require.Equal(t, strings.TrimSpace(drawn), strings.TrimSpace(block(t, readme(t), "mermaid\nstateDiagram")))
}

// Every file that the README or a page of the documentation links to exists.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, target := range links(string(text)) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), target))
			require.NoError(t, err, "%s links to %s", page, target)
		}
	}
}

// links returns the relative targets of a page's links.
func links(text string) []string {
	var targets []string
	for _, part := range strings.Split(text, "](")[1:] {
		target, _, _ := strings.Cut(part, ")")
		target, _, _ = strings.Cut(target, "#")
		if target != "" && !strings.Contains(target, "://") {
			targets = append(targets, target)
		}
	}
	return targets
}
