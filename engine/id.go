package engine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxIDBytes is the longest that an id may be.
const MaxIDBytes = 200

// NewID returns a fresh id that sorts by time, for callers that have no
// business key. It is right only if the caller makes it once, keeps it, and
// uses it again for each retry of the same intent: made anew for each request,
// it deduplicates nothing.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// CheckID returns an ErrBadID that says what is wrong with id, or nil.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrBadID)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w %q…: %d bytes, at most %d", ErrBadID, cutText(id, 24), len(id), MaxIDBytes)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w %q: it is not valid UTF-8", ErrBadID, id)
	case strings.TrimSpace(id) != id:
		return fmt.Errorf("%w %q: it begins or ends with space", ErrBadID, id)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w %q: it holds a control character", ErrBadID, id)
	}
	return nil
}

// cutText returns at most n bytes of s, without half a character at the end.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// maxErrorBytes bounds the text of an error that is stored.
const maxErrorBytes = 4 << 10

// storable returns an error's text such that every database can keep it: short,
// valid UTF-8, without NUL, and not to be taken for what a codec has written.
func storable(text string) string {
	if b := []byte(text); isCoded(b) {
		text = "\uFFFD" + text[1:]
	}
	return cutText(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"), maxErrorBytes)
}
