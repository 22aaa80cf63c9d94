package trace_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/trace"
)

const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

func TestParse(t *testing.T) {
	t.Parallel()
	for parent, flags := range map[string]string{ // no flags: it is not valid
		"00-" + id + "-" + span + "-01":                      "01",
		"00-" + id + "-" + span + "-00":                      "00",
		"00-" + id + "-" + span + "-03":                      "03",
		"00-" + id + "-" + span + "-ff":                      "03", // flags that are not defined must not be sent
		"00-" + id + "-" + span + "-08":                      "00",
		"01-" + id + "-" + span + "-01":                      "01", // of a later version
		"cc-" + id + "-" + span + "-01-more":                 "01",
		"cc-" + id + "-" + span + "-01-":                     "01",
		"cc-" + id + "-" + span + "-01.more":                 "",
		"cc-" + id + "-" + span + "-012":                     "",
		"00-" + id + "-" + span + "-01-more":                 "",
		"00-" + id + "-" + span + "-01-":                     "",
		"ff-" + id + "-" + span + "-01":                      "",
		"0-" + id + "-" + span + "-01":                       "",
		".0-" + id + "-" + span + "-01":                      "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": "",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":   "",
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     "",
		"00-" + id + "-" + strings.ToUpper(span) + "-01":     "",
		"00-" + id + "-" + span + "-0A":                      "",
		"00-" + id[1:] + "-" + span + "-01":                  "",
		"00-" + id + "-" + span[1:] + "-01":                  "",
		"00-" + id + "-" + span + "-1":                       "",
		"00_" + id + "-" + span + "-01":                      "",
		"00-" + id + "_" + span + "-01":                      "",
		"00-" + id + "-" + span + "_01":                      "",
		"00-" + id + "-" + span:                              "",
		" 00-" + id + "-" + span + "-01":                     "",
		"00-" + id + "-" + span + "-01\n":                    "",
		"":                                                   "",
	} {
		got, gotFlags, ok := trace.Parse(parent)
		if ok != (flags != "") || gotFlags != flags || ok && got != id || !ok && got != "" {
			t.Errorf("%q: %q, %q, %t, want flags %q", parent, got, gotFlags, ok, flags)
		}
		if trace.ID(parent) != got {
			t.Errorf("%q: ID %q, want %q", parent, trace.ID(parent), got)
		}
	}
}

func TestChild(t *testing.T) {
	t.Parallel()
	parent := "00-" + id + "-" + span + "-00"
	child := trace.Child(parent)
	if got, flags, ok := trace.Parse(child); !ok || got != id || flags != "00" || strings.Contains(child, span) {
		t.Errorf("child %q of %q, want another span of its trace", child, parent)
	}
	if got := trace.In(id); trace.ID(got) != id || got == trace.In(id) {
		t.Errorf("in the trace %s: %q, want a new span each time", id, got)
	}
	for _, fresh := range []string{trace.Child("nonsense"), trace.Child(""), trace.In("")} {
		if got, flags, ok := trace.Parse(fresh); !ok || got == id || flags != "01" {
			t.Errorf("a new trace %q, want a valid one that is sampled", fresh)
		}
	}
}

// Whatever is read, what is sent is a trace context of version 00.
func FuzzParse(f *testing.F) {
	f.Add("00-" + id + "-" + span + "-01")
	f.Add("cc-" + id + "-" + span + "-ff-more")
	f.Add("00-00000000000000000000000000000000-0000000000000000-00")
	grammar := regexp.MustCompile(`^(?:00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}|[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-(?s:.*))?)$`)
	sent := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-0[0-3]$`)
	f.Fuzz(func(t *testing.T, parent string) {
		got, _, ok := trace.Parse(parent)
		m := grammar.FindStringSubmatch(parent)
		valid := m != nil && !strings.HasPrefix(parent, "ff") && (m[1] != "" || !strings.HasPrefix(parent, "00"))
		if valid {
			valid = strings.Trim(m[1]+m[3], "0") != "" && strings.Trim(m[2]+m[4], "0") != ""
		}
		if ok != valid || ok && got != m[1]+m[3] {
			t.Errorf("%q: %q, %t; valid by the grammar: %t", parent, got, ok, valid)
		}
		child := trace.Child(parent)
		if m := sent.FindStringSubmatch(child); m == nil || ok && m[1] != got {
			t.Errorf("%q: child %q", parent, child)
		}
	})
}

func BenchmarkChild(b *testing.B) {
	b.ReportAllocs()
	parent := "00-" + id + "-" + span + "-01"
	for b.Loop() {
		parent = trace.Child(parent)
	}
}
