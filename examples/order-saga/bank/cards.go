package bank

// The cards that stand for trouble. Any other card is charged without any.
const (
	// FailBefore answers the first request with a 500 and does nothing.
	FailBefore = "fail-before"

	// FailAfter answers the first request with a 500 although it was carried
	// out.
	FailAfter = "fail-after"

	// DropReply carries out the first request and then closes the connection.
	DropReply = "drop-reply"

	// Silent carries out the charge and closes the connection, each time: its
	// outcome can never be learnt by asking again.
	Silent = "silent"

	// Declined is refused with a 402.
	Declined = "declined"
)

// mishap is what goes wrong with one request.
type mishap uint8

const (
	none mishap = iota
	failBefore
	failAfter
	dropReply
)

// mishapOf says what goes wrong with the nth request, counted from 1, that
// carries one key. All but Silent befall a card's refund as they do its charge.
func mishapOf(card, path string, nth int) mishap {
	if card == Silent && path == "/charge" {
		return dropReply
	}
	if nth > 1 {
		return none
	}
	switch card {
	case FailBefore:
		return failBefore
	case FailAfter:
		return failAfter
	case DropReply:
		return dropReply
	}
	return none
}
