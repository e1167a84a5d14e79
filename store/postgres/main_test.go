package postgres

import (
	"testing"

	"github.com/pawlhq/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
