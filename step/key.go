package step

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 defines version 5 UUIDs by SHA-1; nothing here relies on its strength.
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxKeyBytes is the longest that [Key.String] can be, in bytes. It is what
// the strictest of the common providers accept.
const MaxKeyBytes = 255

// ErrBadKey is returned by [ParseKey] for text that is no key.
var ErrBadKey = errors.New("step: not an idempotency key")

// Key is the idempotency key of all attempts made for one business intent. The
// zero value is no key. Keys can be compared with ==.
type Key struct{ text string }

// NewKey returns the key of attempt group group of the named step of a
// workflow. The same arguments always give the same key. Groups count from 1.
//
// A workflow id that would make the key longer than [MaxKeyBytes] is replaced
// by its SHA-256, so that equal ids still give equal keys. An id that looks like
// such a replacement is replaced too, so that nobody can choose an id that
// shares its keys with another.
func NewKey(workflowID, step string, group int) Key { return NewItemKey(workflowID, step, 0, group) }

// NewItemKey is NewKey for one of the items that a step works on: its last part
// is <item>.<group>. Items count from 1; with item 0 it is the key of a step that
// has none.
func NewItemKey(workflowID, step string, item, group int) Key {
	tail := "/" + step + "/" + strconv.Itoa(group)
	if item > 0 {
		tail = "/" + step + "/" + strconv.Itoa(item) + "." + strconv.Itoa(group)
	}
	if len(workflowID)+len(tail) > MaxKeyBytes || strings.HasPrefix(workflowID, hashed) {
		sum := sha256.Sum256([]byte(workflowID))
		workflowID = hashed + hex.EncodeToString(sum[:])
	}
	return Key{workflowID + tail}
}

// hashed marks a workflow id that was replaced by its hash.
const hashed = "sha256:"

// ParseKey reads a key back from its text. It returns [ErrBadKey] if the text
// does not end in a step name and a group, with an item or without. The split is made from the right,
// so a workflow id may hold any character, slashes included.
func ParseKey(text string) (Key, error) {
	k := Key{text}
	id, name, tail := k.split()
	switch {
	case len(text) > MaxKeyBytes:
		return Key{}, fmt.Errorf("%w: %d bytes, at most %d", ErrBadKey, len(text), MaxKeyBytes)
	case id == "" || !ValidName(name) || k.Group() == 0 || NewItemKey("", name, k.Item(), k.Group()).text != "/"+name+"/"+tail:
		return Key{}, fmt.Errorf("%w: %q", ErrBadKey, text)
	}
	return k, nil
}

// String returns the key's text, at most [MaxKeyBytes] long. It holds whatever
// characters the workflow id holds; see [Key.Header] for a form that fits an
// HTTP header.
func (k Key) String() string { return k.text }

// Header returns the key as it goes over HTTP: its text where that is visible
// ASCII, else its UUID.
func (k Key) Header() string {
	for i := range len(k.text) {
		if c := k.text[i]; c < 0x21 || c > 0x7e {
			return k.UUID()
		}
	}
	return k.text
}

// keyNamespace is the UUID namespace of pawl's keys: the version 5 UUID of
// "pawl" in the namespace of URLs (RFC 9562, appendix A).
var keyNamespace = [16]byte{0xf7, 0x02, 0xa6, 0xe1, 0x3c, 0xeb, 0x5c, 0xdd, 0xbc, 0xea, 0xb7, 0x94, 0x72, 0xbe, 0x50, 0xad}

// UUID returns the key as a version 5 UUID (RFC 9562), for providers that
// accept nothing else. The same key always gives the same UUID.
func (k Key) UUID() string {
	h := sha1.New() //nolint:gosec // see the import
	h.Write(keyNamespace[:])
	h.Write([]byte(k.text))
	u := h.Sum(nil)[:16]
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// IsZero reports whether k is no key at all.
func (k Key) IsZero() bool { return k.text == "" }

// Step returns the name of the step that the key belongs to.
func (k Key) Step() string { _, name, _ := k.split(); return name }

// Group returns the attempt group, counted from 1.
func (k Key) Group() int { _, group := k.numbers(); return group }

// Item returns which of many items the key is for, counted from 1; 0 if the
// step has none.
func (k Key) Item() int { item, _ := k.numbers(); return item }

// numbers reads the last part; what is no number above 0 counts as 0.
func (k Key) numbers() (item, group int) {
	_, _, tail := k.split()
	if first, rest, ok := strings.Cut(tail, "."); ok {
		if item = positive(first); item == 0 {
			return 0, 0
		}
		tail = rest
	}
	return item, positive(tail)
}

func positive(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// MarshalText implements [encoding.TextMarshaler].
func (k Key) MarshalText() ([]byte, error) { return []byte(k.text), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. Empty text gives the
// zero key.
func (k *Key) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*k = Key{}
		return nil
	}
	*k, err = ParseKey(string(text))
	return err
}

// split takes the text apart from the right: the id may hold anything.
func (k Key) split() (id, name, group string) {
	i := strings.LastIndexByte(k.text, '/')
	if i < 0 {
		return "", "", ""
	}
	j := strings.LastIndexByte(k.text[:i], '/')
	if j < 0 {
		return "", "", ""
	}
	return k.text[:j], k.text[j+1 : i], k.text[i+1:]
}

// MaxNameBytes is the longest that a step's name may be.
const MaxNameBytes = 64

// ValidName reports whether name may be the name of a step: 1 to
// [MaxNameBytes] of a-z, 0-9 and '-'. It is so narrow because the name is part
// of every key.
func ValidName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= MaxNameBytes
}
