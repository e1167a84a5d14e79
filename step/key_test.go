package step

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestKeyReadsAsItsParts(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"order-42", "a", "order-9527/PAY", "a/b-c/3", "//", "日本/7", " with space ", "tab\t", "sha25"} {
		k := NewKey(id, "charge-card", 12)
		require.Equal(t, id+"/charge-card/12", k.String())
		require.Equal(t, "charge-card", k.Step())
		require.Equal(t, 12, k.Group())
		require.False(t, k.IsZero())

		back, err := ParseKey(k.String())
		require.NoError(t, err)
		require.True(t, k == back, "keys compare with ==")
	}
}

// TestKeysOfDifferentIntentsDiffer, however the ids try to look alike.
func TestKeysOfDifferentIntentsDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	seen := map[Key]bool{}
	for _, k := range []Key{
		NewKey("a", "b", 1), NewKey("a", "b", 2), NewKey("a", "c", 1), NewKey("b", "b", 1), NewKey("a/b", "b", 1), NewKey("a/b/1", "b", 1),
		NewKey(long, "b", 1), NewKey(long+"y", "b", 1), NewKey(long, "c", 1),
		NewKey(strings.TrimSuffix(NewKey(long, "b", 1).String(), "/b/1"), "b", 1), // an id that is another's hash
	} {
		require.False(t, seen[k], "%v", k)
		seen[k] = true
	}
}

// TestKeyLength: 255 bytes are kept as they are, one more is hashed.
func TestKeyLength(t *testing.T) {
	t.Parallel()
	tail := "/charge-card/1"
	fits := strings.Repeat("x", MaxKeyBytes-len(tail))
	require.Equal(t, fits+tail, NewKey(fits, "charge-card", 1).String())

	k := NewKey(fits+"x", "charge-card", 1)
	require.Regexp(t, `^sha256:[0-9a-f]{64}/charge-card/1$`, k.String())
	require.Equal(t, k, NewKey(fits+"x", "charge-card", 1))
	require.NotEqual(t, k, NewKey(fits+"y", "charge-card", 1))
	require.Equal(t, "charge-card", k.Step())

	longest := NewKey(strings.Repeat("x", 1<<16), strings.Repeat("s", MaxNameBytes), 1<<62)
	require.LessOrEqual(t, len(longest.String()), MaxKeyBytes)
	back, err := ParseKey(longest.String())
	require.NoError(t, err)
	require.Equal(t, 1<<62, back.Group())
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "a/b", "/b/1", "a//1", "a/b/", "a/b/0", "a/b/-1", "a/b/+1", "a/b/01", "a/b/1 ", "a/B/1", "a/b_c/1", "a/b/x",
		"a/b/99999999999999999999", "a/" + strings.Repeat("b", MaxNameBytes+1) + "/1", strings.Repeat("x", MaxKeyBytes) + "/b/1",
	} {
		k, err := ParseKey(text)
		require.ErrorIs(t, err, ErrBadKey, "%q", text)
		require.True(t, k.IsZero())
	}
}

// TestKeyUUID: providers have stored these, so they can never change.
func TestKeyUUID(t *testing.T) {
	t.Parallel()
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("pawl"))
	for _, id := range []string{"order-42", "日本", strings.Repeat("x", 300)} {
		k := NewKey(id, "charge-card", 1)
		require.Equal(t, uuid.NewSHA1(space, []byte(k.String())).String(), k.UUID())
	}
	require.Equal(t, "64362bed-55b0-5dc8-a982-3dccc9754dd5", NewKey("order-42", "charge-card", 1).UUID())
}

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	plain := NewKey("order-42~!", "charge-card", 1)
	require.Equal(t, plain.String(), plain.Header())
	for _, id := range []string{"日本", "a b", "a\r\nX-Evil: 1", "a\x7f", "\xff"} {
		k := NewKey(id, "charge-card", 1)
		require.Equal(t, k.UUID(), k.Header(), "%q", id)
	}
}

func TestKeyInJSON(t *testing.T) {
	t.Parallel()
	type envelope struct{ Key, None Key }
	e := envelope{Key: NewKey("order-42", "charge-card", 1)}
	enc, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"Key":"order-42/charge-card/1","None":""}`, string(enc))

	back := envelope{None: e.Key}
	require.NoError(t, json.Unmarshal(enc, &back))
	require.Equal(t, e, back)
	require.ErrorIs(t, json.Unmarshal([]byte(`{"Key":"order-42"}`), &back), ErrBadKey)
}

func TestTheZeroKeyIsNoKey(t *testing.T) {
	t.Parallel()
	var k Key
	require.True(t, k.IsZero())
	require.Empty(t, k.String())
	require.Empty(t, k.Step())
	require.Zero(t, k.Group())
}

func TestValidName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"charge-card": true, "a": true, "-": true, "0": true, "z9": true, strings.Repeat("x", MaxNameBytes): true,
		"": false, "Charge": false, "charge_card": false, "charge card": false, "charge/card": false, "é": false, "a.b": false,
		"`": false, "{": false, ":": false, strings.Repeat("x", MaxNameBytes+1): false,
	} {
		require.Equal(t, want, ValidName(name), "%q", name)
	}
}

// FuzzParseKey: what is read back is what was written, and nothing panics.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"order-42/charge-card/1", "a/b/c/7", "", "//", "sha256:00/a/1", "\xff/a/1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			require.ErrorIs(t, err, ErrBadKey)
			require.True(t, k.IsZero())
			return
		}
		require.Equal(t, text, k.String())
		require.LessOrEqual(t, len(text), MaxKeyBytes)
		require.True(t, ValidName(k.Step()))
		require.GreaterOrEqual(t, k.Group(), 1)
		id := strings.TrimSuffix(text, NewKey("", k.Step(), k.Group()).String())
		if !strings.HasPrefix(id, hashed) {
			require.Equal(t, k, NewKey(id, k.Step(), k.Group()))
		}
	})
}

// FuzzNewKey: any id gives a key that fits and can be read back.
func FuzzNewKey(f *testing.F) {
	f.Add("order-42", 1)
	f.Add("a/b/1", 2)
	f.Add(strings.Repeat("é", 200), 1<<40)
	f.Fuzz(func(t *testing.T, id string, group int) {
		if id == "" || group < 1 {
			t.Skip()
		}
		k := NewKey(id, "charge-card", group)
		back, err := ParseKey(k.String())
		require.NoError(t, err)
		require.Equal(t, k, back)
		require.Equal(t, "charge-card", k.Step())
		require.Equal(t, group, k.Group())
	})
}

// TestItemKeys: an item is part of the last part, and the key can be read back.
func TestItemKeys(t *testing.T) {
	t.Parallel()
	k := NewItemKey("order-42/7.3", "print", 12, 3)
	require.Equal(t, "order-42/7.3/print/12.3", k.String())
	require.Equal(t, []any{"print", 12, 3}, []any{k.Step(), k.Item(), k.Group()})
	back, err := ParseKey(k.String())
	require.NoError(t, err)
	require.Equal(t, k, back)
	require.Equal(t, NewKey("w", "print", 3), NewItemKey("w", "print", 0, 3))
	require.Zero(t, NewKey("w", "print", 3).Item())
	for _, text := range []string{"w/print/0.1", "w/print/1.0", "w/print/1.", "w/print/.1", "w/print/1.1.1", "w/print/01.1", "w/print/1.01", "w/print/-1.1"} {
		_, err := ParseKey(text)
		require.ErrorIs(t, err, ErrBadKey, text)
	}
	long := NewItemKey(strings.Repeat("x", 300), "print", 12, 3)
	require.LessOrEqual(t, len(long.String()), MaxKeyBytes)
	require.Equal(t, 12, long.Item())
}
