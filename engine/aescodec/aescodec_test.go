package aescodec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/engine/aescodec"
)

var (
	_ engine.Keyed         = (*aescodec.Codec)(nil)
	_ engine.Fingerprinter = (*aescodec.Codec)(nil)
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, aescodec.KeyBytes) }

func codec(t *testing.T, write string, ids ...string) *aescodec.Codec {
	keys := map[string][]byte{}
	for _, id := range ids {
		keys[id] = key(id[len(id)-1])
	}
	c, err := aescodec.New(aescodec.Keys{Write: write, ByID: keys, Fingerprint: key('f')})
	require.NoError(t, err)
	return c
}

func TestNewSaysWhatIsWrongWithKeys(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys aescodec.Keys
		want error
		says string
	}{
		"short key":           {aescodec.Keys{Write: "a", ByID: map[string][]byte{"a": key(1)[:31]}, Fingerprint: key(2)}, aescodec.ErrBadKey, "key a: bad key: 31 bytes, not 32"},
		"AES-128 key":         {aescodec.Keys{Write: "a", ByID: map[string][]byte{"a": key(1)[:16]}, Fingerprint: key(2)}, aescodec.ErrBadKey, "key a"},
		"no fingerprint key":  {aescodec.Keys{Write: "a", ByID: map[string][]byte{"a": key(1)}}, aescodec.ErrBadKey, "fingerprint key: bad key: 0 bytes"},
		"one key twice":       {aescodec.Keys{Write: "a", ByID: map[string][]byte{"a": key(1), "b": key(1)}, Fingerprint: key(2)}, aescodec.ErrBadKey, "key b: bad key: it is the same as key a"},
		"fingerprint key too": {aescodec.Keys{Write: "a", ByID: map[string][]byte{"a": key(1)}, Fingerprint: key(1)}, aescodec.ErrBadKey, "the same as the fingerprint key"},
		"empty id":            {aescodec.Keys{Write: "", ByID: map[string][]byte{"": key(1)}, Fingerprint: key(2)}, aescodec.ErrBadKeyID, `""`},
		"long id":             {aescodec.Keys{Write: "a", ByID: map[string][]byte{strings.Repeat("a", 65): key(1)}, Fingerprint: key(2)}, aescodec.ErrBadKeyID, "1 to 64"},
		"id of other signs":   {aescodec.Keys{Write: "a", ByID: map[string][]byte{"ä": key(1)}, Fingerprint: key(2)}, aescodec.ErrBadKeyID, `"ä"`},
		"no keys":             {aescodec.Keys{Write: "a", Fingerprint: key(2)}, aescodec.ErrNoWriter, `"a"`},
		"writer is missing":   {aescodec.Keys{Write: "b", ByID: map[string][]byte{"a": key(1)}, Fingerprint: key(2)}, aescodec.ErrNoWriter, `"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := aescodec.New(test.keys)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
		})
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	c := codec(t, "k1", "k1")
	plain := []byte(`{"card":"4711"}`)
	a, err := c.Encode(plain)
	require.NoError(t, err)
	b, err := c.Encode(plain)
	require.NoError(t, err)
	require.NotEqual(t, a, b, "the nonce is another each time")
	require.NotContains(t, string(a), "4711")
	require.Equal(t, "k1", c.KeyOf(a))
	got, err := c.Decode(a)
	require.NoError(t, err)
	require.Equal(t, plain, got)
}

func TestRotation(t *testing.T) {
	t.Parallel()
	before, both, after := codec(t, "k1", "k1"), codec(t, "k2", "k1", "k2"), codec(t, "k2", "k2")
	plain := []byte("text")
	old, err := before.Encode(plain)
	require.NoError(t, err)
	young, err := both.Encode(plain)
	require.NoError(t, err)
	for _, coded := range [][]byte{old, young} {
		got, err := both.Decode(coded)
		require.NoError(t, err)
		require.Equal(t, plain, got)
	}
	_, err = after.Decode(old)
	require.ErrorIs(t, err, aescodec.ErrUnknownKey)
	require.ErrorContains(t, err, `"k1"`)
	require.Equal(t, before.Fingerprint(plain), after.Fingerprint(plain), "starts are told apart as before")
	require.NotEqual(t, before.Fingerprint(plain), before.Fingerprint([]byte("texT")))
}

// No byte of a value can be changed, the id of its key included, and none left out.
func TestChangedValueIsRefused(t *testing.T) {
	t.Parallel()
	c := codec(t, "k1", "k1", "k2")
	coded, err := c.Encode([]byte("text"))
	require.NoError(t, err)
	for i := range coded {
		for _, bit := range []byte{1, 3, 0x80} { // 3 makes k1 k2
			changed := bytes.Clone(coded)
			changed[i] ^= bit
			_, err := c.Decode(changed)
			require.Error(t, err, "byte %d", i)
		}
		_, err := c.Decode(coded[:i])
		require.Error(t, err, "%d bytes", i)
	}
	_, err = c.Decode(nil)
	require.ErrorIs(t, err, aescodec.ErrChanged)
}

func TestNoWayOfPrintingShowsAKey(t *testing.T) {
	t.Parallel()
	c := codec(t, "k1", "k1", "k2")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "aes-gcm writing with key k1, reading k1, k2", fmt.Sprintf(verb, c))
	}
}
