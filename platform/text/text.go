// Package text makes of what people send the text that is kept and shown.
//
// Cleaning removes what nobody sees and nobody meant: what comes along when text
// is copied from a telephone's contacts, a word processor or a PDF file. It keeps
// every visible character, and the invisible ones that change how others are read.
// Only what cannot be kept is refused.
package text

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Faults of a text. The errors may be shown to its sender.
var (
	ErrEncoding  = errors.New("must be UTF-8")
	ErrNUL       = errors.New("contains a NUL character, which cannot be kept")
	ErrControl   = errors.New("contains a control character")
	ErrDirection = errors.New("contains a character that turns the direction of text (U+202A to U+202E, U+2066 to U+2069)")
	ErrBlank     = errors.New("must not be blank")
)

// CleanLine returns s as a text of one line, such as a title or a name: line
// breaks and tabs become spaces. A text that shows nothing becomes "".
func CleanLine(s string) string { return clean(s, ' ', ' ') }

// CleanBlock returns s as a text of several lines, each of which ends in "\n". A
// text that shows nothing becomes "".
func CleanBlock(s string) string { return clean(s, '\n', '\t') }

// Code returns the letters and digits of a code that somebody has typed or pasted, with
// spaces, hyphens, line breaks or a full stop in it.
func Code(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.L, unicode.Nd) {
			return r
		}
		return -1
	}, norm.NFKC.String(s))
}

// Bare returns s without what is not seen, and without spaces around it: an address or a
// URL, which programs read, as it was copied from a list of contacts or a mail.
func Bare(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r != 0 && unicode.IsControl(r) || ignorable(r) { // NUL cannot be kept, see CheckKept
			return -1
		}
		return r
	}, s))
}

// Shorten returns s with at most limit characters. It cuts no character off from
// the marks that belong to it.
func Shorten(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	end := limit
	for end > 0 && extends(runes[end]) {
		end--
	}
	if end == 0 { // nothing but marks
		end = limit
	}
	for end > 1 && runes[end-1] == zeroWidthJoiner {
		end--
	}
	return strings.TrimSpace(clean(string(runes[:end]), '\n', '\t')) // directions that were closed behind the cut
}

// CheckKept returns what is wrong with s as a text that was cleaned: what the
// database could not keep.
func CheckKept(s string) error {
	switch {
	case !utf8.ValidString(s):
		return ErrEncoding
	case strings.ContainsRune(s, 0):
		return ErrNUL
	}
	return nil
}

// CheckID returns what is wrong with s as an identifier, which is compared as it
// is and so is never cleaned: it has one line, in one direction, with something
// visible.
func CheckID(s string) error {
	if !utf8.ValidString(s) {
		return ErrEncoding
	}
	for _, r := range s {
		switch {
		case r == '\u2028', r == '\u2029', unicode.IsControl(r):
			return ErrControl
		case r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u2069':
			return ErrDirection
		}
	}
	if !Visible(s) {
		return ErrBlank
	}
	return nil
}

// Visible reports whether s leaves a mark where it is shown. Combining marks alone
// do not: they have nothing to combine with.
func Visible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !ignorable(r) && !strings.ContainsRune(blank, r)
	})
}

// blank has characters that are letters or symbols by name, and empty by look.
const blank = "\u2800" + // a Braille cell without dots
	"\uFFFC" + // the place of an object that was not copied
	"\U00013441\U00013442" + // Egyptian blanks
	"\U0001D159" // a note without a head

// dropped has characters that are invisible, or the place of something that was
// not copied, and that change nothing about the characters around them.
const dropped = "\u00AD" + // soft hyphen
	"\u034F" + // grapheme joiner
	"\u2060\u2061\u2062\u2063" + // word joiner, invisible operators
	"\u2064\u2065\u206A\u206B\u206C\u206D\u206E\u206F" + // deprecated
	"\uFEFF" + // byte order mark
	"\uFFF9\uFFFA\uFFFB\uFFFC" // annotations, object

// ignorable reports whether r has Unicode's property Default_Ignorable_Code_Point:
// it is not shown (DerivedCoreProperties.txt).
func ignorable(r rune) bool {
	switch {
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case !unicode.Is(unicode.Cf, r), unicode.Is(unicode.Prepended_Concatenation_Mark, r), unicode.Is(unicode.White_Space, r):
		return false
	}
	return !(r >= 0xFFF9 && r <= 0xFFFB || r >= 0x13430 && r <= 0x13440)
}

// extends reports whether r belongs to the character before it.
func extends(r rune) bool {
	return unicode.Is(unicode.M, r) || ignorable(r) || r >= 0x1F3FB && r <= 0x1F3FF // tones of skin
}

const (
	zeroWidthSpace     = '\u200B'
	zeroWidthNonJoiner = '\u200C'
	zeroWidthJoiner    = '\u200D'
	blackFlag          = 0x1F3F4
)

// clean returns s without what carries no meaning, with lineBreak and tab in the
// place of those.
func clean(s string, lineBreak, tab rune) string {
	if plain(s) {
		if lineBreak == '\n' || !strings.ContainsAny(s, "\n\t") {
			return visibleOnly(s)
		}
	}
	if !utf8.ValidString(s) {
		return s // cannot be kept, see CheckKept
	}
	from := []rune(s)
	to := make([]rune, 0, len(from))
	for i, r := range from {
		before := rune(-1)
		if len(to) > 0 {
			before = to[len(to)-1]
		}
		switch {
		case r == '\r' && i+1 < len(from) && from[i+1] == '\n': // one break with it
		case isLineBreak(r):
			to = append(to, lineBreak)
		case r == '\t':
			to = append(to, tab)
		case r == 0:
			to = append(to, r) // cannot be kept, see CheckKept
		case unicode.IsControl(r), strings.ContainsRune(dropped, r), isNoncharacter(r):
		case r == zeroWidthSpace:
			if i+1 < len(from) && (withoutSpaces(before) || withoutSpaces(from[i+1])) {
				to = append(to, r)
			}
		case r == zeroWidthJoiner, r == zeroWidthNonJoiner:
			if before > ' ' && before != zeroWidthJoiner && before != zeroWidthNonJoiner {
				to = append(to, r)
			}
		case unicode.Is(unicode.Variation_Selector, r):
			if before > ' ' && !ignorable(before) { // one for each character
				to = append(to, r)
			}
		case r >= 0xE0000 && r <= 0xE0FFF: // tags, which spell the flags of England, Scotland and Wales
			if before == blackFlag || before > 0xE0000 && before <= 0xE007F && r <= 0xE007F {
				to = append(to, r)
			}
		case ignorable(r) && unicode.Is(unicode.Cn, r): // for characters to come
		default:
			to = append(to, r)
		}
	}
	return visibleOnly(string(balanced(to)))
}

// plain reports whether s needs no cleaning but for its line breaks and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}

func visibleOnly(s string) string {
	if s != "" && !Visible(s) && !strings.ContainsRune(s, 0) {
		return ""
	}
	return s
}

// isLineBreak reports whether r ends a line or a paragraph for Unicode: beside the
// usual ones Word's soft break, a page's end, and separators of old files.
func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

func isNoncharacter(r rune) bool { return r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF }

// withoutSpaces reports whether r is of a script that writes words without spaces
// between them, where a zero width space says where a line may end.
func withoutSpaces(r rune) bool {
	return unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
		unicode.Javanese, unicode.Balinese, unicode.Sundanese, unicode.Buginese, unicode.Tai_Le, unicode.New_Tai_Lue,
		unicode.Tai_Tham, unicode.Tai_Viet, unicode.Cham)
}

// Characters that turn the direction of text, until another one or the end of the
// paragraph ends that (Unicode Standard Annex 9, 2).
const (
	leftEmbedding  = '\u202A'
	rightEmbedding = '\u202B'
	endEmbedding   = '\u202C'
	leftOverride   = '\u202D'
	rightOverride  = '\u202E'
	leftIsolate    = '\u2066'
	firstIsolate   = '\u2068'
	endIsolate     = '\u2069'
)

// balanced removes from text what turns the direction and is not ended in the same
// line, and what ends nothing: it would turn what is shown behind it. Overrides are
// removed in any case, since letters that are shown backwards deceive who reads them.
func balanced(text []rune) []rune {
	remove := make(map[int]bool)
	var open []int
	closeDown := func(to int) { // what is open above to ends without its own end
		for _, i := range open[to:] {
			remove[i] = true
		}
		open = open[:to]
	}
	for i, r := range text {
		switch {
		case r == '\n':
			closeDown(0)
		case r >= leftIsolate && r <= firstIsolate,
			r == leftEmbedding, r == rightEmbedding, r == leftOverride, r == rightOverride:
			open = append(open, i)
		case r == endEmbedding:
			last := len(open) - 1
			if last < 0 || text[open[last]] >= leftIsolate {
				remove[i] = true
				continue
			}
			if begin := open[last]; text[begin] == leftOverride || text[begin] == rightOverride {
				remove[begin], remove[i] = true, true
			}
			open = open[:last]
		case r == endIsolate:
			last := len(open) - 1
			for last >= 0 && text[open[last]] < leftIsolate {
				last--
			}
			if last < 0 {
				remove[i] = true
				continue
			}
			closeDown(last + 1)
			open = open[:last]
		}
	}
	closeDown(0)
	if len(remove) == 0 {
		return text
	}
	kept := text[:0]
	for i, r := range text {
		if !remove[i] {
			kept = append(kept, r)
		}
	}
	return kept
}
