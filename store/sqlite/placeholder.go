package sqlite

import (
	"fmt"
	"strings"
)

// bindable returns query with its $1 written as SQLite's ?1. SQLite would take
// $1 for a name and count names in the order in which they appear. A query
// whose placeholders do not fit the number of arguments is refused, since
// SQLite would bind NULL to what is missing.
func bindable(query string, args int) (string, error) {
	rewritten, highest := numbered(query)
	if highest > 0 && highest != args {
		return "", fmt.Errorf("statement has placeholders up to $%d but %d arguments", highest, args)
	}
	return rewritten, nil
}

// numbered replaces the $n of query outside of strings, quoted names and
// comments by ?n, and returns the highest n.
func numbered(query string) (rewritten string, highest int) {
	if !strings.Contains(query, "$") {
		return query, 0
	}
	b := []byte(query)
	for i := 0; i < len(b); {
		if n := opaque(query[i:]); n > 0 {
			i += n
			continue
		}
		if b[i] != '$' && !isNameByte(b[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(b) && isNameByte(b[end]) {
			end++
		}
		if n, ok := ordinal(query[i:end]); ok {
			b[i] = '?'
			highest = max(highest, n)
		}
		i = end
	}
	return string(b), highest
}

// ordinal returns the n of $n. SQLite allows up to 32766.
func ordinal(word string) (n int, ok bool) {
	if len(word) < 2 || len(word) > 6 || word[0] != '$' || word[1] == '0' {
		return 0, false
	}
	for _, c := range word[1:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// isNameByte reports whether c goes on a word. A '$' does so in SQLite, and so
// does every byte beyond ASCII.
func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// opaque returns the length of the string, quoted name or comment that rest
// begins with, 0 if it begins with none. One that is not closed goes on to the
// end.
func opaque(rest string) int {
	switch {
	case strings.HasPrefix(rest, "--"):
		return through(rest, 2, "\n")
	case strings.HasPrefix(rest, "/*"):
		return through(rest, 2, "*/")
	case rest[0] == '[':
		return through(rest, 1, "]")
	case rest[0] == '\'', rest[0] == '"', rest[0] == '`':
		// A doubled quote ends one string and begins the next.
		return through(rest, 1, rest[:1])
	}
	return 0
}

// through returns the length of rest up to and with the first end at or after
// from.
func through(rest string, from int, end string) int {
	if i := strings.Index(rest[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(rest)
}
