package order

// Order is the durable data of one workflow: what was asked for, and what each
// step found out.
type Order struct {
	ID       string `json:"id"` // also the workflow's id
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int64  `json:"cents"` // to charge in all
	Card     string `json:"card"`
	Address  string `json:"address"`

	Reservation Reservation `json:"reservation,omitzero"`
	Payment     Payment     `json:"payment,omitzero"`
	Decision    Decision    `json:"decision,omitzero"`
	Label       Label       `json:"label,omitzero"`
	Invoice     string      `json:"invoice,omitempty"` // its number
}

// Invoice is the durable data of the workflow that files an order's invoice.
type Invoice struct {
	OrderID string `json:"order"`
	Cents   int64  `json:"cents"`
	Number  string `json:"number,omitempty"`
}

// What the steps are asked and what they answer.
type (
	// StockRequest is what Reserve needs to know.
	StockRequest struct {
		OrderID  string `json:"order"`
		SKU      string `json:"sku"`
		Quantity int    `json:"quantity"`
	}

	// Reservation says what was taken from the stock.
	Reservation struct {
		SKU      string `json:"sku"`
		Quantity int    `json:"quantity"`
	}

	// Bill is what Charge needs to know.
	Bill struct {
		OrderID string `json:"order"`
		Card    string `json:"card"`
		Cents   int64  `json:"cents"`
	}

	// Payment names the charge, so that it can be refunded.
	Payment struct {
		Charge string `json:"charge"`
	}

	// Decision is a clerk's answer to an order that needs approval.
	Decision struct {
		Approved bool   `json:"approved"`
		By       string `json:"by"`
	}

	// Parcel is what PrintLabel needs to know.
	Parcel struct {
		OrderID string `json:"order"`
		Address string `json:"address"`
	}

	// Label is the courier's.
	Label struct {
		Tracking string `json:"tracking"`
	}

	// Letter is what MailReceipt needs to know.
	Letter struct {
		OrderID string `json:"order"`
		Charge  string `json:"charge"`
		Cents   int64  `json:"cents"`
	}
)

// NeedsApprovalAbove is the amount in cents above which a clerk is asked.
const NeedsApprovalAbove = 100_000

// How the workflow reads the data and writes it.

func (o Order) stock() StockRequest     { return StockRequest{o.ID, o.SKU, o.Quantity} }
func (o *Order) reserved(r Reservation) { o.Reservation = r }
func (o Order) bill() Bill              { return Bill{o.ID, o.Card, o.Cents} }
func (o *Order) charged(p Payment)      { o.Payment = p }
func (o Order) needsApproval() bool     { return o.Cents > NeedsApprovalAbove }
func (o *Order) decided(d Decision)     { o.Decision = d }
func (o Order) approved() bool          { return o.Decision.Approved }
func (o Order) parcel() Parcel          { return Parcel{o.ID, o.Address} }
func (o *Order) labelled(l Label)       { o.Label = l }
func (o Order) invoice() Invoice        { return Invoice{OrderID: o.ID, Cents: o.Cents} }
func (o *Order) invoiced(i Invoice)     { o.Invoice = i.Number }
func (i Invoice) filing() Invoice       { return i }
func (i *Invoice) filed(number string)  { i.Number = number }
func (o Order) letter() Letter          { return Letter{o.ID, o.Payment.Charge, o.Cents} }
