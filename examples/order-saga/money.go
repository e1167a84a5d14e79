package main

import (
	"fmt"
	"strconv"
	"strings"
)

// money writes cents as people do: 49.90.
func money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// parseMoney reads 49.90, 49.9 or 49 as cents. Nothing is rounded: money is no
// floating-point number.
func parseMoney(text string) (cents int64, err error) {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) > 2 || !digits(whole) || (part != "" && !digits(part)) || strings.HasSuffix(text, ".") {
		return 0, fmt.Errorf("%w: amount %q: want a form like 49.90", errUsage, text)
	}
	cents, err = strconv.ParseInt(whole+(part + "00")[:2], 10, 64)
	if err != nil || cents == 0 {
		return 0, fmt.Errorf("%w: amount %q: out of range", errUsage, text)
	}
	return cents, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
