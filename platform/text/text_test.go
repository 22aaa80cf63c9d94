package text_test

import (
	"errors"
	"testing"

	"github.com/cityconnect/cityconnect/platform/text"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, s     string
		line, block error
	}{
		{"plain", "Dark lamp", nil, nil},
		{"accents and scripts", "Straße कार्य مصباح 道路 🛣️👩‍🚒", nil, nil},
		{"joiners of Persian and Hindi", "می‌خواهم क्‍ष", nil, nil},
		{"marks of direction", "abc\u200e\u200f", nil, nil},
		{"empty", "", nil, nil},
		{"white space", " \u00a0\u3000", text.ErrBlank, nil},
		{"zero width space", "\u200b", text.ErrBlank, nil},
		{"byte order mark", "\ufeff", text.ErrBlank, nil},
		{"blank letters", "\u3164\u2800", text.ErrBlank, nil},
		{"two lines", "a\r\n\tb", text.ErrControl, nil},
		{"line separator", "a\u2028b", text.ErrControl, text.ErrControl},
		{"escape", "a\x1b[31mb", text.ErrControl, text.ErrControl},
		{"NUL", "a\x00", text.ErrControl, text.ErrControl},
		{"backwards", "a\u202eb", text.ErrDirection, text.ErrDirection},
		{"isolated", "a\u2066b\u2069", text.ErrDirection, text.ErrDirection},
		{"no UTF-8", "a\xff", text.ErrEncoding, text.ErrEncoding},
	} {
		if got := text.CheckLine(tt.s); !errors.Is(got, tt.line) {
			t.Errorf("%s as a line: %v, want %v", tt.name, got, tt.line)
		}
		if got := text.CheckBlock(tt.s); !errors.Is(got, tt.block) {
			t.Errorf("%s as a block: %v, want %v", tt.name, got, tt.block)
		}
	}
}
