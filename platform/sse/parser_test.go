package sse

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// The cases are those of WHATWG HTML §9.2.6 and what browsers do beyond it.
func TestParser(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string // type|id|data
		retry    time.Duration
	}{
		{"one event", "event: notification\nid: v1.a.1\ndata: {}\n\n", []string{"notification|v1.a.1|{}"}, 0},
		{"no type", "data: x\n\n", []string{"message||x"}, 0},
		{"lines of data", "data: a\ndata:b\ndata\ndata:  c\n\n", []string{"message||a\nb\n\n c"}, 0},
		{"CR and CRLF", "data: a\r\rdata: b\r\n\r\ndata: c\n\n", []string{"message||a", "message||b", "message||c"}, 0},
		{"byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []string{"message||a"}, 0},
		{"comments", ": hello\ndata: a\n:\n\n", []string{"message||a"}, 0},
		{"id alone moves the cursor", "id: 7\n\ndata: a\n\n", []string{"message|7|a"}, 0},
		{"id stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []string{"message|7|a", "message|7|b", "message||c"}, 0},
		{"id with NUL", "id: a\x00b\ndata: a\n\n", []string{"message||a"}, 0},
		{"type without data is forgotten", "event: x\n\ndata: a\n\n", []string{"message||a"}, 0},
		{"retry", "retry: 2500\nretry: soon\nretry:\n\n", nil, 2500 * time.Millisecond},
		{"unknown field", "data: a\nfoo: b\ndatas: c\n\n", []string{"message||a"}, 0},
		{"unfinished event", "data: a\n\nid: 9\ndata: b\n", []string{"message||a"}, 0},
	} {
		for how, r := range map[string]io.Reader{
			"at once":      strings.NewReader(tt.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
		} {
			p := NewParser(r, "")
			var got []string
			for {
				e, err := p.Next()
				if err != nil {
					break
				}
				got = append(got, e.Type+"|"+e.ID+"|"+string(e.Data))
			}
			if !slices.Equal(got, tt.want) || p.Retry() != tt.retry {
				t.Errorf("%s, %s: got %q, retry %v; want %q, %v", tt.name, how, got, p.Retry(), tt.want, tt.retry)
			}
		}
	}
}

func TestParserRefusesAnEndlessLine(t *testing.T) {
	t.Parallel()
	p := NewParser(io.LimitReader(endless{}, 2*maxLine), "")
	if _, err := p.Next(); !errors.Is(err, errLine) {
		t.Errorf("Next: got %v, want %v", err, errLine)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// The cursor is all that an event may cost.
func TestParserAllocations(t *testing.T) { // alone: others would be counted too
	const event = "event: notification\ndata: {\"a\":1}\nid: v1.a.1\n\n"
	p := NewParser(strings.NewReader(strings.Repeat(event, 300)), "")
	got := testing.AllocsPerRun(200, func() {
		if _, err := p.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations an event, want at most 1", got)
	}
}
