package statemachine

import (
	"encoding/json"
	"fmt"
	"slices"
)

// rest is the encoded form of what a cursor holds beside the columns.
type rest struct {
	flat
	Groups map[State]int  `json:"groups,omitempty"`
	Kept   map[string]int `json:"kept,omitempty"`
}

// flat is the part of it that can be compared.
type flat struct {
	End   State  `json:"end,omitempty"`
	Cause Cause  `json:"cause,omitempty"`
	From  Phase  `json:"from,omitempty"`
	Why   string `json:"why,omitempty"`
	Open  int    `json:"open,omitempty"`

	Item     int `json:"item,omitempty"`
	Lanes    int `json:"lanes,omitempty"`
	Failures int `json:"failures,omitempty"`

	Paused bool  `json:"paused,omitempty"`
	Alarm  int64 `json:"alarm_us,omitempty"`

	Late   bool   `json:"late,omitempty"`
	Capped bool   `json:"capped,omitempty"`
	Won    string `json:"won,omitempty"`

	Sure  int `json:"sure,omitempty"`
	Clear int `json:"clear,omitempty"`
	Asks  int `json:"asks,omitempty"`
	Asked int `json:"asked,omitempty"`

	Origin string `json:"origin,omitempty"`

	Page      string `json:"page,omitempty"`
	PageItems int    `json:"page_items,omitempty"`
	Base      int    `json:"base,omitempty"`
}

// Rest returns what has no column of its own and is no record: all from End on.
// It is nil when all are zero, as they are for most workflows most of the time.
// Equal cursors give equal bytes.
func (c Cursor) Rest() []byte {
	r := rest{flat{c.End, c.Cause, c.From, c.Why, c.Open, c.Item, c.Lanes, c.Failures, c.Paused, c.Alarm, c.Late, c.Capped, c.Won, c.Sure, c.Clear, c.Asks, c.Asked, c.Origin, c.Page, c.PageItems, c.Base}, c.Groups, c.Kept}
	if r.flat == (flat{}) && len(r.Groups) == 0 {
		return nil
	}
	enc, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("encode cursor: %v", err)) // strings and whole numbers always encode
	}
	return enc
}

// SetRest fills in what [Cursor.Rest] returned. Fields that it does not know
// are passed over. It returns [ErrBadRest], and changes nothing, if data is
// malformed.
func (c *Cursor) SetRest(data []byte) error {
	var r rest
	if len(data) > 0 {
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%w: %w", ErrBadRest, err)
		}
	}
	for s, n := range r.Groups {
		if n < 1 {
			return fmt.Errorf("%w: state %q entered %d times", ErrBadRest, s, n)
		}
	}
	if r.Open < 0 || r.Item < 0 || r.Lanes < 0 || r.Failures < 0 {
		return fmt.Errorf("%w: %d branches open, item %d, %d lanes, %d failures", ErrBadRest, r.Open, r.Item, r.Lanes, r.Failures)
	}
	c.End, c.Cause, c.From, c.Why, c.Groups, c.Open = r.End, r.Cause, r.From, r.Why, r.Groups, r.Open
	c.Item, c.Lanes, c.Failures = r.Item, r.Lanes, r.Failures
	c.Paused, c.Alarm = r.Paused, r.Alarm
	c.Late, c.Capped, c.Won = r.Late, r.Capped, r.Won
	c.Sure, c.Clear, c.Asks, c.Asked = r.Sure, r.Clear, r.Asks, r.Asked
	c.Origin, c.Kept = r.Origin, r.Kept
	c.Page, c.PageItems, c.Base = r.Page, r.PageItems, r.Base
	return nil
}

// phaseNames are the names of the phases, as people see and cursors keep them.
var phaseNames = [...]string{Running: "running", Waiting: "waiting", RollingBack: "rolling back", Held: "held", Ended: "ended"}

// String returns the phase's name as people see it.
func (p Phase) String() string {
	if p == 0 || int(p) >= len(phaseNames) {
		return fmt.Sprintf("phase %d", uint8(p))
	}
	return phaseNames[p]
}

// MarshalText implements [encoding.TextMarshaler].
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Phase) UnmarshalText(text []byte) error {
	i := slices.Index(phaseNames[:], string(text))
	if i < 1 {
		return fmt.Errorf("no such phase: %q", text)
	}
	*p = Phase(i)
	return nil
}
