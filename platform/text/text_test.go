package text_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cityconnect/cityconnect/platform/text"
)

// Codes are read however they were typed, copied or read out; other values lose only what
// nobody sees.
func TestCodeAndBare(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"123456": "123456", " 123 456 ": "123456", "123\u00a0456.": "123456", "123-456\r\n": "123456", "\u200e123456\u200f": "123456",
		"１２３４５６": "123456", "7K3QF-M2XWD": "7K3QFM2XWD", "“7k3qf–m2xwd”,": "7k3qfm2xwd", "7K3QF-\nM2XWD": "7K3QFM2XWD",
		"": "", " - ": "", "a\x00b": "ab",
	} {
		if got := text.Code(s); got != want {
			t.Errorf("the code %q is %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"ann@example.org": "ann@example.org", "\u202aann@example.org\u202c": "ann@example.org", " \u200eann@\u200bexample.org\u00a0": "ann@example.org",
		"https://example.org/\u2060a\n": "https://example.org/a", "\ufeffann@example.org": "ann@example.org", "ann\u00ad@example.org": "ann@example.org", "a b": "a b", "a\x00": "a\x00",
	} {
		if got := text.Bare(s); got != want {
			t.Errorf("bare %q is %q, want %q", s, got, want)
		}
	}
}

// Characters that come along with copied text refuse nobody and mislead nobody; those
// with a meaning stay.
func TestClean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, s, line, block string }{
		{"plain", "Dark lamp", "Dark lamp", "Dark lamp"},
		{"accents and scripts", "Straße कार्य مصباح 道路 🛣️👩‍🚒", "Straße कार्य مصباح 道路 🛣️👩‍🚒", "Straße कार्य مصباح 道路 🛣️👩‍🚒"},
		{"joiners of Persian and Hindi", "می‌خواهم क्‍ष", "می‌خواهم क्‍ष", "می‌خواهم क्‍ष"},
		{"empty", "", "", ""},
		{"lines", "a\r\n\tb\rc\nd", "a  b c d", "a\n\tb\nc\nd"},
		{"a soft break of Word, a page of a PDF, others", "a\vb\fc\u0085d\u2028e\u2029f\x1cg", "a b c d e f g", "a\nb\nc\nd\ne\nf\ng"},
		{"a telephone number of iOS", "\u202a+62 811\u202c", "\u202a+62 811\u202c", "\u202a+62 811\u202c"},
		{"one of Windows", "\u202d+62 811\u202c", "+62 811", "+62 811"},
		{"marks of direction", "abc\u200e\u200f\u061c", "abc\u200e\u200f\u061c", "abc\u200e\u200f\u061c"},
		{"isolated", "a \u2068\u2066b\u2069\u2069 c", "a \u2068\u2066b\u2069\u2069 c", "a \u2068\u2066b\u2069\u2069 c"},
		{"opened alone", "a\u202bb\u2067c", "abc", "abc"},
		{"closed alone", "a\u202c\u2069b", "ab", "ab"},
		{"backwards", "a\u202egnp.exe\u202c", "agnp.exe", "agnp.exe"},
		{"backwards, not ended", "a\u202eb", "ab", "ab"},
		{"crossed", "\u202aa\u2066b\u202cc\u2069d", "a\u2066bc\u2069d", "a\u2066bc\u2069d"},
		{"over two lines", "\u202aa\nb\u202c", "\u202aa b\u202c", "a\nb"},
		{"ended from outside", "\u2067\u202aa\u2069b", "\u2067a\u2069b", "\u2067a\u2069b"},
		{"control characters", "a\x00b", "a\x00b", "a\x00b"},
		{"an escape", "a\x1b[31mb\x7f\u0092\x08", "a[31mb", "a[31mb"},
		{"invisible ones", "\ufeffa\u00adb\u2060c\u200bd\u2063e\u206af\u034fg\ufffch\ufff9i", "abcdefghi", "abcdefghi"},
		{"places for a break in Thai and Khmer", "สวัสดี\u200bครับ ខ្ញុំ\u200bទៅ", "สวัสดี\u200bครับ ខ្ញុំ\u200bទៅ", "สวัสดี\u200bครับ ខ្ញុំ\u200bទៅ"},
		{"flag of Scotland", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"},
		{"hidden letters", "a\U000e0068\U000e0069\U000e0001", "a", "a"},
		{"hidden bytes", "a\ufe0f\ufe01\ufe02\U000e0101", "a\ufe0f", "a\ufe0f"},
		{"joiners without end", "a\u200d\u200d\u200c\u200db", "a\u200db", "a\u200db"},
		{"keycap", "1\ufe0f\u20e3", "1\ufe0f\u20e3", "1\ufe0f\u20e3"},
		{"noncharacters", "a\ufffe\uffff\ufdd0\U0010ffffb", "ab", "ab"},
		{"no character", "a\xff", "a\xff", "a\xff"},
		{"spaces of other widths", "a\u00a0\u3000b", "a\u00a0\u3000b", "a\u00a0\u3000b"},
		{"a replaced character", "\ufffd", "\ufffd", "\ufffd"},

		{"white space", " \u00a0\u3000", "", ""},
		{"zero width space", "\u200b", "", ""},
		{"byte order mark", "\ufeff", "", ""},
		{"blank letters", "\u3164\u2800\u115f\u1160\uffa0", "", ""},
		{"variation selectors", "\ufe0f\ufe0f", "", ""},
		{"grapheme joiners", "\u034f\u034f", "", ""},
		{"places of objects", "\ufffc \ufffc", "", ""},
		{"marks without a letter", "\u0301\u0308 \u20e3", "", ""},
		{"marks of direction alone", "\u202a\u202c\u200e\u2066\u2069", "", ""},
		{"joiners alone", "\u200d\u200c", "", ""},
		{"vowels of Khmer that are not shown", "\u17b4\u17b5", "", ""},
		{"a separator of Mongolian", "\u180e\u180b", "", ""},
		{"a note without a head", "\U0001d159", "", ""},
		{"tags alone", "\U000e0041", "", ""},
		{"line breaks alone", "\u2028\v\f\n", "", ""},
		{"soft hyphens", "\u00ad\u00ad", "", ""},
		{"controls alone", "\x01\x1b\x7f", "", ""},
	} {
		if got := text.CleanLine(tt.s); got != tt.line {
			t.Errorf("%s as a line: %+q, want %+q", tt.name, got, tt.line)
		}
		if got := text.CleanBlock(tt.s); got != tt.block {
			t.Errorf("%s as a block: %+q, want %+q", tt.name, got, tt.block)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\u202eb\u202c\r\n\u2066\ufe0f")
	f.Fuzz(func(t *testing.T, s string) {
		line, block := text.CleanLine(s), text.CleanBlock(s)
		if text.CleanLine(line) != line || text.CleanBlock(block) != block {
			t.Errorf("%+q is cleaned to %+q and %+q, which are not clean", s, line, block)
		}
		if utf8.ValidString(s) && (strings.ContainsAny(line, "\n\t\r\v\f\u2028\u202e") || strings.ContainsAny(block, "\r\v\f\u2028\u202e")) {
			t.Errorf("%+q is cleaned to %+q and %+q", s, line, block)
		}
		if short := text.Shorten(line, 5); utf8.RuneCountInString(short) > 5 {
			t.Errorf("%+q is shortened to %+q", line, short)
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{
		{"Ann", 3, "Ann"},
		{"Anna", 3, "Ann"},
		{"Ann Lee", 4, "Ann"},
		{"Ane\u0301", 3, "An"},
		{"ab👩‍🚒", 4, "ab👩"},
		{"ab👍🏽", 3, "ab"},
		{"a\u2068bc\u2069", 3, "ab"},
		{"\u0301\u0301\u0301", 2, ""},
		{"💡💡💡", 2, "💡💡"},
	} {
		if got := text.Shorten(tt.s, tt.limit); got != tt.want {
			t.Errorf("%+q to %d: %+q, want %+q", tt.s, tt.limit, got, tt.want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s        string
		kept, id error
	}{
		{"u-1", nil, nil},
		{"auth0|5f7c 8ec7", nil, nil},
		{"a\x00b", text.ErrNUL, text.ErrControl},
		{"a\xff", text.ErrEncoding, text.ErrEncoding},
		{"a\nb", nil, text.ErrControl},
		{"a\u2028b", nil, text.ErrControl},
		{"a\u202eb", nil, text.ErrDirection},
		{"\u200b", nil, text.ErrBlank},
		{"\ufe0f", nil, text.ErrBlank},
	} {
		if got := text.CheckKept(tt.s); !errors.Is(got, tt.kept) {
			t.Errorf("%+q to be kept: %v, want %v", tt.s, got, tt.kept)
		}
		if got := text.CheckID(tt.s); !errors.Is(got, tt.id) {
			t.Errorf("%+q as an id: %v, want %v", tt.s, got, tt.id)
		}
	}
}
