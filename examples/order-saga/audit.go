package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawlhq/pawl/store"
)

// errAudit says that the audit found something wrong.
var errAudit = errors.New("the audit failed")

// maxFindings bounds how many wrong things are printed.
const maxFindings = 25

// scope says which rows an audit looks at: those of one run of the tour or the
// chaos, or all there are. A run's name is part of its orders', SKUs' and
// workers' names.
type scope struct{ run string }

func (s scope) orders() string  { return s.like("order") }
func (s scope) skus() string    { return s.like("sku") }
func (s scope) workers() string { return s.like("worker") }

// like is the pattern of the names of one kind.
func (s scope) like(kind string) string {
	if s.run == "" {
		return "%"
	}
	return s.name(kind, "%")
}

// name names one thing of a run.
func (s scope) name(kind string, which any) string {
	return fmt.Sprintf("%s-%s-%v", kind, s.run, which)
}

// has reports whether an order belongs to the run.
func (s scope) has(orderID string) bool { return strings.HasPrefix(orderID, s.name("order", "")) }

// newScope returns the scope of a run that begins now.
func newScope() scope { return scope{strings.ToLower(rand.Text()[:5])} }

// audit is what the databases hold: of the orders, and of the money.
type audit struct {
	orders, completed, compensated         int
	kills, takeovers                       int
	bankRequests, charges                  int
	doubleCharges, lostOrders, stockErrors int

	// caught is how many orders a worker owned, when it was killed, for which
	// the bank had done what the worker had not recorded.
	caught int

	findings []string // one for each wrong thing
}

// takeAudit reads the order database and the bank's file.
func takeAudit(ctx context.Context, db *database, bankFile string, s scope) (*audit, error) {
	books, err := readBooks(ctx, bankFile)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	a := &audit{}
	err = db.view(ctx, func(tx store.Tx) error {
		orders, err := readOrders(ctx, tx, db.schema, s)
		if err != nil {
			return err
		}
		for _, o := range orders {
			a.judgeOrder(o, books[o.id])
		}
		stock, err := readStock(ctx, tx, db.schema, s)
		if err != nil {
			return err
		}
		for _, sku := range stock {
			a.judgeStock(sku)
		}
		return a.countKills(ctx, tx, db.schema, s, books)
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return a, nil
}

// judgeOrder says what is wrong with one order and the money it moved.
func (a *audit) judgeOrder(o orderRow, m account) {
	a.orders++
	a.bankRequests += m.requests
	a.charges += m.charges
	if extra := m.charges - 1; extra > 0 {
		a.doubleCharges += extra
		a.find("%s: charged %d times", o.id, m.charges)
	}
	var due int64
	switch store.Status(o.status) {
	case "":
		a.lose("%s: accepted, but there is no workflow", o.id)
		return
	case store.Completed:
		a.completed++
		due = o.cents
	case store.Compensated:
		a.compensated++
	default:
		a.lose("%s: accepted, but %s in state %s%s", o.id, o.status, o.state, because(o.why))
		return
	}
	if kept := m.charged - m.refunded; kept != due {
		a.lose("%s: %s, but the bank kept %s and not %s", o.id, o.status, money(kept), money(due))
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func (a *audit) judgeStock(s stockRow) {
	if s.taken == s.sold {
		return
	}
	a.stockErrors++
	a.find("%s: %d are gone, but completed orders took %d", s.sku, s.taken, s.sold)
}

func (a *audit) lose(format string, args ...any) {
	a.lostOrders++
	a.find(format, args...)
}

func (a *audit) find(format string, args ...any) {
	a.findings = append(a.findings, fmt.Sprintf(format, args...))
}

// print prints what is wrong, then the figures in one line. It returns errAudit
// if anything is wrong.
func (a *audit) print(w io.Writer) error {
	for i, f := range a.findings {
		if i == maxFindings {
			fmt.Fprintf(w, "wrong: %d more\n", len(a.findings)-i)
			break
		}
		fmt.Fprintf(w, "wrong: %s\n", f)
	}
	verdict, err := "OK", error(nil)
	if len(a.findings) > 0 {
		verdict, err = "FAILED", errAudit
	}
	fmt.Fprintf(w, "AUDIT orders=%d completed=%d compensated=%d kills=%d takeovers=%d bank_requests=%d charges=%d double_charges=%d lost_orders=%d stock_errors=%d %s\n",
		a.orders, a.completed, a.compensated, a.kills, a.takeovers, a.bankRequests, a.charges,
		a.doubleCharges, a.lostOrders, a.stockErrors, verdict)
	return err
}

// expect adds a finding unless ok.
func (a *audit) expect(ok bool, format string, args ...any) {
	if !ok {
		a.find(format, args...)
	}
}
