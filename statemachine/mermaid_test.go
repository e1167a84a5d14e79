package statemachine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

func TestMermaidOfTheOrderSaga(t *testing.T) {
	t.Parallel()
	require.Equal(t, `stateDiagram-v2
    [*] --> reserving
    reserving: reserving / reserve-stock (in-tx, undo release-stock)
    reserving --> charging
    charging: charging / charge-card (call, undo refund-card)
    charging --> reviewing
    reviewing: reviewing / choice
    reviewing --> approving: yes
    reviewing --> shipping: no
    approving: approving / await approval
    approving --> weighing: approval
    approving --> cancelled: after 48h
    shipping: shipping / print-label (call, pivot)
    shipping --> mailing
    weighing: weighing / choice
    weighing --> shipping: yes
    weighing --> cancelled: no
    cancelled: cancelled (rolled back, also on failure)
    cancelled --> [*]
    mailing: mailing / mail-receipt (call)
    mailing --> delivered
    delivered: delivered (completed)
    delivered --> [*]
`, orderSaga().Mermaid())
}

// TestMermaidShowsWhereFailureLeads, even if no edge does.
func TestMermaidShowsWhereFailureLeads(t *testing.T) {
	t.Parallel()
	d := Definition[trip]{
		Name: "trip", Version: 1, Start: "go", OnFailure: "lost",
		States: States[trip]{"go": Do(step.Func("go", fn[int, int]), trip.times, nil).Then("there")},
		Ends:   Ends{"there": Completed, "lost": Failed},
	}
	require.NoError(t, d.Validate())
	require.Equal(t, `stateDiagram-v2
    [*] --> go
    go: go / go (func)
    go --> there
    there: there (completed)
    there --> [*]
    lost: lost (failed, also on failure)
    lost --> [*]
`, d.Mermaid())
}

func TestMermaidWithoutOnFailure(t *testing.T) {
	t.Parallel()
	d := orderSaga()
	whole := d.Mermaid()
	d.OnFailure = ""
	require.Equal(t, strings.ReplaceAll(whole, ", also on failure", ""), d.Mermaid())
}

// TestMermaidIdentifiers: Mermaid would not parse the names as they are.
func TestMermaidIdentifiers(t *testing.T) {
	t.Parallel()
	for name, want := range map[State]string{
		"cooling-off": "cooling_off", "a--b-": "a__b_", "7th": "7th", "note": "note_S", "notes": "notes", "state": "state_S", "state-": "state_",
	} {
		require.Equal(t, want, drawn(name))
	}
}

func TestBriefDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		48 * time.Hour: "48h", time.Hour + time.Minute: "1h1m", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m",
		90 * time.Second: "1m30s", 20 * time.Second: "20s", 10 * time.Hour: "10h", 0: "0s", 300 * time.Millisecond: "300ms",
	} {
		require.Equal(t, want, brief(d))
	}
}
