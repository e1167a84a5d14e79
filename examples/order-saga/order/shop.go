package order

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlhq/pawl/step"
)

// Shop holds what the steps need.
type Shop struct {
	Bank Bank
}

// Bank is the payment provider. Its methods may be called any number of times
// with the same key and must have their effect once. An error that says that
// nothing happened, and never will, is a [step.Reject].
type Bank interface {
	// Charge takes money and returns the charge's id.
	Charge(ctx context.Context, key step.Key, b Bill) (charge string, err error)

	// Refund gives back a charge.
	Refund(ctx context.Context, key step.Key, orderID, charge string) error

	// Void gives back whatever was charged under another key, and sees to it
	// that nothing is charged under it later on.
	Void(ctx context.Context, key step.Key, orderID string, charged step.Key) error
}

// Why a step is refused.
var (
	// ErrBadOrder says that an order makes no sense.
	ErrBadOrder = errors.New("bad order")

	// ErrOutOfStock says that there is less in stock than was asked for.
	ErrOutOfStock = errors.New("out of stock")

	// ErrUndeliverable says that no courier goes there.
	ErrUndeliverable = errors.New("no courier goes there")
)

// Charge takes the money. However often it is called for one order, the bank
// sees one key, and so charges once.
func (s *Shop) Charge(ctx context.Context, key step.Key, b Bill) (Payment, error) {
	charge, err := s.Bank.Charge(ctx, key, b)
	return Payment{charge}, err
}

// Refund gives the money back. If it was never learnt whether the charge
// arrived, the bank is told to void its key: that undoes a charge that did
// arrive, and stops one that is still on its way.
func (s *Shop) Refund(ctx context.Context, key step.Key, d step.Done[Bill, Payment]) error {
	if d.Known {
		return s.Bank.Refund(ctx, key, d.In.OrderID, d.Out.Charge)
	}
	return s.Bank.Void(ctx, key, d.In.OrderID, d.Key)
}

// Nowhere is the address that no courier goes to.
const Nowhere = "nowhere"

// PrintLabel orders the parcel's way at the courier, who gives one tracking
// number for one key.
func (s *Shop) PrintLabel(_ context.Context, key step.Key, p Parcel) (Label, error) {
	if p.Address == Nowhere {
		return Label{}, step.Reject(fmt.Errorf("ship to %q: %w", p.Address, ErrUndeliverable))
	}
	return Label{Tracking: key.UUID()}, nil
}

// MailReceipt sends the receipt. The post office drops a letter whose key it
// has seen.
func (s *Shop) MailReceipt(context.Context, step.Key, Letter) (step.None, error) {
	return step.None{}, nil
}

// FileInvoice hands an invoice in at the tax office, which gives one number for one
// key.
func (s *Shop) FileInvoice(_ context.Context, key step.Key, i Invoice) (string, error) {
	return "INV-" + key.UUID()[:8], nil
}
