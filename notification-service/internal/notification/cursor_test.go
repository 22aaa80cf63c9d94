package notification_test

import (
	"math"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

func TestParseCursor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{"v1.5f0c2a91.42", true},
		{"v1.5f0c2a91.0", true},
		{"v1.5f0c2a91.42.a.7", true},
		{"v1.5f0c2a91.9223372036854775807", true},
		{"", false},
		{"v1", false},
		{"v1.a", false},
		{"v2.a.1", false},
		{"v1.a.1.b", false},
		{"v1.a.1.b.2.c.3", false},
		{"v1.a.-1", false},
		{"v1.a.+1", false},
		{"v1.a.01", false},
		{"v1.a.9223372036854775808", false},
		{"v1..1", false},
		{"v1.a<b.1", false},
		{"v1.123456789.1", false},
	} {
		c, err := notification.ParseCursor(tt.text)
		if (err == nil) != tt.ok {
			t.Errorf("ParseCursor(%q): error %v, want ok %v", tt.text, err, tt.ok)
		}
		if err == nil && c.String() != tt.text {
			t.Errorf("ParseCursor(%q).String() = %q", tt.text, c.String())
		}
	}
}

func TestCursorStaysShort(t *testing.T) {
	t.Parallel()
	longest := notification.Position{Epoch: strings.Repeat("f", 8), Seq: math.MaxInt64}
	if s := (notification.Cursor{longest, longest}).String(); len(s) >= 64 {
		t.Errorf("cursor %q has %d bytes, want below 64", s, len(s))
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("v1.5f0c2a91.42")
	f.Add("v1.a.1.b.2")
	f.Add("v1..")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := notification.ParseCursor(text)
		if err != nil {
			return
		}
		if got := c.String(); got != text {
			t.Errorf("ParseCursor(%q).String() = %q", text, got)
		}
	})
}
