package order

import (
	"time"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/step"
)

// The states of an order. They are what the database says, so they are never
// renamed lightly.
const (
	Reserving  statemachine.State = "reserving"
	Charging   statemachine.State = "charging"
	Reviewing  statemachine.State = "reviewing"
	Approving  statemachine.State = "approving"
	Weighing   statemachine.State = "weighing"
	Shipping   statemachine.State = "shipping"
	Fulfilling statemachine.State = "fulfilling"
	Delivered  statemachine.State = "delivered"
	Cancelled  statemachine.State = "cancelled"
)

// Approval is a clerk's answer to an order that needs one.
var Approval = statemachine.Signal[Decision]{Name: "approval"}

// Workflow is the life of an order: stock and money are taken, then given
// back, newest first, if it ends Cancelled.
func (s *Shop) Workflow() statemachine.Definition[Order] {
	var (
		reserve = step.InTx("reserve-stock", s.Reserve).With(patient).
			Undo(step.UndoInTx("release-stock", s.Release).With(stubborn))
		charge = step.Call("charge-card", s.Charge).With(patient).
			Undo(step.UndoCall("refund-card", s.Refund).With(stubborn))
		label   = step.Call("print-label", s.PrintLabel).With(stubborn).Pivot()
		receipt = step.Call("mail-receipt", s.MailReceipt).With(stubborn).NoUndo("a mail cannot be unsent")
		invoice = statemachine.Child(s.Invoicing()).NoUndo("an invoice that was filed stays")
	)
	return statemachine.Definition[Order]{
		Name:    "order",
		Version: 1,
		Start:   Reserving,
		States: statemachine.States[Order]{
			Reserving: statemachine.Do(reserve, Order.stock, (*Order).reserved).Then(Charging),
			Charging:  statemachine.Do(charge, Order.bill, (*Order).charged).Then(Reviewing),
			Reviewing: statemachine.If(Order.needsApproval, Approving, Shipping),
			Approving: statemachine.Await(Approval, (*Order).decided).Within(48*time.Hour, Cancelled).Then(Weighing),
			Weighing:  statemachine.If(Order.approved, Shipping, Cancelled),
			Shipping:  statemachine.Do(label, Order.parcel, (*Order).labelled).Then(Fulfilling),
			Fulfilling: statemachine.All(
				statemachine.Do(receipt, Order.letter, nil),
				statemachine.Do(invoice, Order.invoice, (*Order).invoiced),
			).Then(Delivered),
		},
		Ends:      statemachine.Ends{Delivered: statemachine.Completed, Cancelled: statemachine.RolledBack},
		OnFailure: Cancelled,
	}
}

// Invoicing is the life of an invoice: the child of an order, and a workflow that
// can be looked at, signalled and drawn like any other.
func (s *Shop) Invoicing() statemachine.Definition[Invoice] {
	file := step.Call("file-invoice", s.FileInvoice).With(stubborn).NoUndo("the tax office forgets nothing")
	return statemachine.Definition[Invoice]{
		Name:      "invoicing",
		Version:   1,
		Start:     "filing",
		States:    statemachine.States[Invoice]{"filing": statemachine.Do(file, Invoice.filing, (*Invoice).filed).Then("filed")},
		Ends:      statemachine.Ends{"filed": statemachine.Completed, "given-up": statemachine.Failed},
		OnFailure: "given-up",
	}
}

// How long the steps go on trying. The pauses are short, as suits an example:
// with a real provider they would begin at seconds and end at minutes.
var (
	// patient gives up after a while: what was done is undone then.
	patient = step.Policy{Attempts: 6, Backoff: step.Exponential(50*time.Millisecond, time.Second), Timeout: 5 * time.Second}

	// stubborn never gives up. It is for whatever must not be left half done:
	// undos, and all that comes after the point of no return.
	stubborn = step.Policy{Attempts: step.Forever, Backoff: step.Exponential(50*time.Millisecond, 2*time.Second), Timeout: 5 * time.Second}
)
