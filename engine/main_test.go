package engine_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

// atOnce is how many tests run at the same time: most of them wait for a lease
// to run out or for another process, so there may be more than processors.
const atOnce = 4

// TestMain runs the tests or, in a process that a test has started, what that
// test wants of it.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(childMain(config))
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(atOnce)); err != nil {
			panic(err)
		}
	}
	pgtest.Main(m)
}
