package aescodec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KeyBytes is how long each key is, the fingerprint key included.
const KeyBytes = 32

// MaxKeyIDBytes is the longest that a key's id may be.
const MaxKeyIDBytes = 64

// Returned by New. No message holds a part of a key.
var (
	// ErrBadKey says that a key is not KeyBytes long, or is there twice.
	ErrBadKey = errors.New("bad key")

	// ErrBadKeyID says that a key's id is not 1 to MaxKeyIDBytes of a-z, A-Z, 0-9,
	// '-', '_' and '.'.
	ErrBadKeyID = errors.New("bad key id")

	// ErrNoWriter says that the key that is to write is not among the keys.
	ErrNoWriter = errors.New("no key to write with")
)

// Returned by Decode.
var (
	// ErrUnknownKey says that the key of a value is not among the keys.
	ErrUnknownKey = errors.New("unknown key")

	// ErrChanged says that a value is not as it was written, or that its key is not
	// the one of that id.
	ErrChanged = errors.New("value was changed, or another key has its key's id")
)

// Keys are what a Codec is made of.
type Keys struct {
	Write       string            // the id of the key that writes
	ByID        map[string][]byte // all keys that can be read with, each of KeyBytes random bytes
	Fingerprint []byte            // for telling starts apart, KeyBytes long; it must never change
}

// Codec encrypts and decrypts. It is safe for concurrent use.
type Codec struct {
	write       string
	keys        map[string]cipher.AEAD
	fingerprint []byte
}

// New checks keys and makes a codec of them. Errors: ErrBadKey, ErrBadKeyID,
// ErrNoWriter.
func New(k Keys) (*Codec, error) {
	c := &Codec{write: k.Write, keys: make(map[string]cipher.AEAD, len(k.ByID)), fingerprint: slices.Clone(k.Fingerprint)}
	if len(k.Fingerprint) != KeyBytes {
		return nil, fmt.Errorf("aescodec: fingerprint key: %w: %d bytes, not %d", ErrBadKey, len(k.Fingerprint), KeyBytes)
	}
	seen := map[string]string{string(k.Fingerprint): "the fingerprint key"}
	for _, id := range slices.Sorted(maps.Keys(k.ByID)) {
		key := k.ByID[id]
		if err := checkID(id); err != nil {
			return nil, err
		}
		if len(key) != KeyBytes {
			return nil, fmt.Errorf("aescodec: key %s: %w: %d bytes, not %d", id, ErrBadKey, len(key), KeyBytes)
		}
		if twin, twice := seen[string(key)]; twice {
			return nil, fmt.Errorf("aescodec: key %s: %w: it is the same as %s", id, ErrBadKey, twin)
		}
		seen[string(key)] = "key " + id
		aead, err := newAEAD(key)
		if err != nil {
			return nil, fmt.Errorf("aescodec: key %s: %w: %w", id, ErrBadKey, err)
		}
		c.keys[id] = aead
	}
	if c.keys[k.Write] == nil {
		return nil, fmt.Errorf("aescodec: %w: no key has the id %.64q", ErrNoWriter, k.Write)
	}
	return c, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func checkID(id string) error {
	known := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if id == "" || len(id) > MaxKeyIDBytes || strings.ContainsFunc(id, func(r rune) bool { return !known(r) }) {
		return fmt.Errorf("aescodec: %w %.80q: 1 to %d of a-z, A-Z, 0-9, '-', '_' and '.'", ErrBadKeyID, id, MaxKeyIDBytes)
	}
	return nil
}

// Name implements engine.Codec.
func (c *Codec) Name() string { return "aes-gcm" }

// Encode encrypts. A value is the length of its key's id, a byte; the id; the nonce;
// the ciphertext with its tag, which covers the id as well.
func (c *Codec) Encode(plain []byte) ([]byte, error) {
	aead := c.keys[c.write]
	coded := make([]byte, 0, 1+len(c.write)+aead.Overhead()+len(plain))
	coded = append(coded, byte(len(c.write)))
	coded = append(coded, c.write...)
	return aead.Seal(coded, nil, plain, coded), nil
}

// Decode decrypts. Errors: ErrUnknownKey, which names the key, and ErrChanged.
func (c *Codec) Decode(coded []byte) ([]byte, error) {
	id, rest, ok := cutID(coded)
	if !ok {
		return nil, fmt.Errorf("aescodec: %w", ErrChanged)
	}
	aead := c.keys[id]
	if aead == nil {
		return nil, fmt.Errorf("aescodec: %w %.64q", ErrUnknownKey, id)
	}
	plain, err := aead.Open(nil, nil, rest, coded[:len(coded)-len(rest)])
	if err != nil {
		return nil, fmt.Errorf("aescodec: key %s: %w", id, ErrChanged)
	}
	return plain, nil
}

// KeyOf implements engine.Keyed.
func (c *Codec) KeyOf(coded []byte) string {
	id, _, _ := cutID(coded)
	return id
}

func cutID(coded []byte) (id string, rest []byte, ok bool) {
	if len(coded) == 0 || len(coded) < 1+int(coded[0]) {
		return "", nil, false
	}
	n := 1 + int(coded[0])
	return string(coded[1:n]), coded[n:], true
}

// Fingerprint implements engine.Fingerprinter: an HMAC-SHA-256.
func (c *Codec) Fingerprint(plain []byte) []byte {
	mac := hmac.New(sha256.New, c.fingerprint)
	mac.Write(plain)
	return mac.Sum(nil)
}

// String names the codec and its keys, and shows none.
func (c *Codec) String() string {
	return fmt.Sprintf("aes-gcm writing with key %s, reading %s", c.write, strings.Join(slices.Sorted(maps.Keys(c.keys)), ", "))
}

// GoString is String: no way of printing shows a key.
func (c *Codec) GoString() string { return c.String() }
