// Package text says which text may be kept and shown.
//
// Text is refused where it could deceive its readers: where it has no visible
// character, runs backwards, or breaks out of its line. Everything else that people
// write is theirs, in any script and with any emoji.
package text

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Faults of a text. The errors may be shown to its sender.
var (
	ErrEncoding  = errors.New("must be UTF-8")
	ErrControl   = errors.New("contains a control character")
	ErrDirection = errors.New("contains a character that turns the direction of text (U+202A to U+202E, U+2066 to U+2069)")
	ErrBlank     = errors.New("must not consist of white space and invisible characters alone")
)

// CheckLine returns what is wrong with s as a text of one line, such as a title
// or a name. It may be empty.
func CheckLine(s string) error {
	if err := check(s, ""); err != nil || s == "" {
		return err
	}
	for _, r := range s {
		if visible(r) {
			return nil
		}
	}
	return ErrBlank
}

// CheckBlock returns what is wrong with s as a text of several lines, which may
// be empty.
func CheckBlock(s string) error { return check(s, "\t\n\r") }

// check allows, of the control characters, those in allowed.
func check(s, allowed string) error {
	if !utf8.ValidString(s) {
		return ErrEncoding
	}
	for _, r := range s {
		switch {
		case r == '\u2028', r == '\u2029', unicode.IsControl(r) && !strings.ContainsRune(allowed, r):
			return ErrControl
		case r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
			return ErrDirection
		}
	}
	return nil
}

// visible reports whether r leaves a mark where it is shown.
func visible(r rune) bool {
	switch r {
	case '\u115F', '\u1160', '\u3164', '\uFFA0', '\u2800': // letters and a symbol by name, blank by look
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}
