package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestParseBox(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want *report.Box // nil when it is refused
	}{
		{"107.5,-7.0,107.7,-6.8", &report.Box{West: 107.5, South: -7, East: 107.7, North: -6.8}},
		{" 1, 2 ,3,4 ", &report.Box{West: 1, South: 2, East: 3, North: 4}},
		{"170,-10,-170,10", &report.Box{West: 170, South: -10, East: -170, North: 10}},
		{"", nil}, {"1,2,3", nil}, {"1,2,3,4,5", nil}, {"a,2,3,4", nil}, {"1,4,3,2", nil},
		{"181,2,3,4", nil}, {"1,-91,3,4", nil}, {"1,2,3,91", nil}, {"NaN,2,3,4", nil}, {"1,2,Inf,4", nil},
	} {
		got, err := report.ParseBox(tt.in)
		if (err == nil) != (tt.want != nil) || got != nil && *got != *tt.want {
			t.Errorf("ParseBox(%q): got %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"Pot-hole, NORTH/south":                 {"pot", "hole", "north", "south"},
		"'; drop table":                         {"drop", "table"},
		"!?* ":                                  nil,
		"0198C0DE-0000-7000-8000-000000000001.": {"0198c0de-0000-7000-8000-000000000001"},
		"see https://city.example.org/reports/0198c0de-0000-7000-8000-000000000001?x": {"0198c0de-0000-7000-8000-000000000001"},
		"0198c0de-0000-7000-8000-00000000000":                                         {"0198c0de", "0000", "7000", "8000", "00000000000"},
		"Straße कार्य 12":                                                             {"straße", "कार्य", "12"},
		"e\u0301cole ﬁlm １２":                                                          {"école", "film", "12"},
		"…½":                                                                          {"1", "2"},
		strings.Repeat("x ", 30):                                                      slices.Repeat([]string{"x"}, 10),
	} {
		if got := report.Words(in); !slices.Equal(got, want) {
			t.Errorf("Words(%q): got %q, want %q", in, got, want)
		}
	}
}

func FuzzParseBox(f *testing.F) {
	f.Add("107.5,-7.0,107.7,-6.8")
	f.Add("170,-10,-170,10")
	f.Add("0x1p-2,1e1,,")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := report.ParseBox(s)
		if err != nil {
			return
		}
		for _, lon := range []float64{b.West, b.East} {
			if !(lon >= -180 && lon <= 180) {
				t.Errorf("ParseBox(%q): longitude %v", s, lon)
			}
		}
		if !(b.South >= -90 && b.South <= b.North && b.North <= 90) {
			t.Errorf("ParseBox(%q): latitudes %v to %v", s, b.South, b.North)
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add(report.Cursor{Key: 1_000_005, ID: uuid.Max}.String())
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := report.ParseCursor(s)
		if err != nil {
			return
		}
		if got := c.String(); got != s {
			t.Errorf("ParseCursor(%q) is the cursor %q", s, got)
		}
	})
}

func FuzzParseIfMatch(f *testing.F) {
	for _, s := range []string{`*`, `"3"`, `W/"3", "4"`, `"a,b" ,"5"`, `"`, `"1" "2"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		versions, err := report.ParseIfMatch(s)
		if err != nil {
			return
		}
		if versions.Has(3) && strings.TrimSpace(s) != "*" && !strings.Contains(s, report.ETag(3)) {
			t.Errorf("ParseIfMatch(%q) has version 3", s)
		}
	})
}

func FuzzWords(f *testing.F) {
	f.Add("Pot-hole 'north' & south:*")
	f.Fuzz(func(t *testing.T, s string) {
		for _, word := range report.Words(s) {
			if word == "" || strings.ContainsAny(word, "'\\&|!:*() \x00") {
				t.Errorf("Words(%q) has %q", s, word)
			}
		}
	})
}
