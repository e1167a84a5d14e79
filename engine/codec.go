package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlhq/pawl/store"
)

// Codec turns what users put into workflows into what the database holds, and back:
// data, inputs, results, the texts of errors, the values of signals, what people say
// when they ask for something, and the data of schedules. It is given JSON, or the
// bytes of a text. Names are not payload: ids, states, steps, signals and
// definitions stay as they are.
//
// All methods are called by many goroutines at once. Package aescodec has one that
// encrypts.
type Codec interface {
	// Name names the codec in each value that it has written: 1 to 32 of a-z, 0-9
	// and '-'. It never changes, or what was written before cannot be read any more.
	Name() string

	// Encode returns the form that is stored. It need not be the same twice. Plain is
	// never empty, and must not be changed. A worker takes an error for one that
	// passes, and asks again: the result that it holds would be lost otherwise.
	Encode(plain []byte) (coded []byte, err error)

	// Decode is the way back. An error that matches store.ErrRetry passes, and the
	// value is read again; with any other it is unreadable in this process: see
	// ErrCodec.
	Decode(coded []byte) (plain []byte, err error)
}

// Keyed is a Codec that has keys. The id of a value's key is stored beside it in the
// clear, so that one who does not have the key can be told which it is.
type Keyed interface {
	Codec

	// KeyOf returns the id of the key that a value was encoded with, of at most 64
	// bytes of printable ASCII.
	KeyOf(coded []byte) string
}

// Fingerprinter is a Codec by which starts are told apart: of each workflow's input
// the database keeps a hash, so that a second start with another input is an
// ErrConflict. Without this it is a plain SHA-256, by which an input that can be
// guessed can be found out.
type Fingerprinter interface {
	Codec

	// Fingerprint returns a keyed hash of plain. It must stay the same for as long
	// as starts may be repeated, whatever becomes of the keys of Encode.
	Fingerprint(plain []byte) []byte
}

// ErrCodec says that a value cannot be read here: it is of another codec, of a key
// that this process does not have, or was changed. The error is a *CodecError. A
// workflow with such a value is not advanced but HELD, with all its values as they
// are; [Resume] lets it go on where the codec is known.
var ErrCodec = errors.New("value cannot be decoded")

// CodecError says which value cannot be read. It matches ErrCodec.
type CodecError struct {
	Of    string // whose value it is, such as: workflow "order-7"
	Codec string // the name of the codec that wrote it
	Key   string // the id of the key; "" if the codec has none
}

// Error implements error.
func (e *CodecError) Error() string {
	return fmt.Sprintf("%s: %v here: it was encoded by %s", e.Of, ErrCodec, writtenBy(e.Codec, e.Key))
}

// Is makes the error match ErrCodec.
func (e *CodecError) Is(target error) bool { return target == ErrCodec }

// Encoded reports whether a payload that was read is still as a codec wrote it,
// since this process does not have the codec or the key, and names them. Such are
// an Info.Raw, and the inputs and outputs of its steps; texts are replaced.
func Encoded(payload []byte) (codec, key string, ok bool) {
	if !isCoded(payload) {
		return "", "", false
	}
	if v, ok := parseCoded(payload); ok {
		return v.codec, v.key, true
	}
	return "an unknown codec", "", true
}

// What a codec has written begins with a byte that begins neither JSON nor, by
// storable, a text. So values of all ages lie side by side.
const (
	codedByte  = 0x01 // a value: see codedValue
	sealedByte = 0x02 // the cursor of a workflow that could not be read: see sealed
)

// codedValue is a value as it is stored: codedByte; the lengths of the codec's name
// and of the key's id, a byte each; those two; what Encode has returned. In a column
// of text what follows the first byte is in base64.
type codedValue struct {
	codec, key string
	body       []byte
}

func isCoded(v []byte) bool     { return len(v) > 0 && (v[0] == codedByte || v[0] == sealedByte) }
func isCodedText(s string) bool { return s != "" && s[0] == codedByte }

func (v codedValue) bytes() []byte {
	b := make([]byte, 0, 3+len(v.codec)+len(v.key)+len(v.body))
	b = append(b, codedByte, byte(len(v.codec)), byte(len(v.key)))
	b = append(b, v.codec...)
	b = append(b, v.key...)
	return append(b, v.body...)
}

func parseCoded(b []byte) (v codedValue, ok bool) {
	if len(b) < 3 || b[0] != codedByte {
		return v, false
	}
	name, key := int(b[1]), int(b[2])
	rest := b[3:]
	if len(rest) < name+key {
		return v, false
	}
	return codedValue{string(rest[:name]), string(rest[name : name+key]), rest[name+key:]}, true
}

func textOfCoded(b []byte) string {
	return string(rune(codedByte)) + base64.RawStdEncoding.EncodeToString(b[1:])
}

func codedOfText(s string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(s[1:])
	if err != nil {
		return []byte{codedByte} // nothing that can be read
	}
	return append([]byte{codedByte}, b...)
}

// codecErrorOf names the writer of a value that is still encoded.
func codecErrorOf(of string, value []byte) error {
	codec, key, _ := Encoded(value)
	return &CodecError{of, codec, key}
}

func ofWorkflow(id string) string {
	if path := store.BranchOf(id); path != "" {
		return fmt.Sprintf("branch %s of workflow %q", path, store.RootOf(id))
	}
	return fmt.Sprintf("workflow %q", id)
}

// shown is a text for people: in place of one that cannot be read it says so.
func shown(text string) string {
	if !isCodedText(text) {
		return text
	}
	codec, key, _ := Encoded(codedOfText(text))
	return "(encoded by " + writtenBy(codec, key) + ")"
}

// shownBytes is shown for a text that is stored as bytes.
func shownBytes(text []byte) string {
	if codec, key, ok := Encoded(text); ok {
		return "(encoded by " + writtenBy(codec, key) + ")"
	}
	return string(text)
}

func writtenBy(codec, key string) string {
	if key == "" {
		return codec
	}
	return codec + ", key " + key
}

// checkCodec returns what is wrong with a codec's name.
func checkCodec(c Codec) error {
	if c == nil {
		return nil
	}
	name := c.Name()
	known := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	if name == "" || len(name) > 32 || strings.ContainsFunc(name, func(r rune) bool { return !known(r) }) {
		return fmt.Errorf("config: Codec: its name %.40q is not 1 to 32 of a-z, 0-9 and '-'", name)
	}
	return nil
}

// inputHash is what is kept of a workflow's input to tell a duplicate start from a
// conflicting one.
func (e *Engine) inputHash(data []byte) [16]byte {
	if f, ok := e.cfg.Codec.(Fingerprinter); ok {
		return plainHash(f.Fingerprint(data))
	}
	return plainHash(data)
}

func plainHash(data []byte) [16]byte {
	sum := sha256.Sum256(data)
	return [16]byte(sum[:16])
}
