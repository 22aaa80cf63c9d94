package trace_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/trace"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for parent, want := range map[string]bool{
		"00-" + id + "-" + span + "-01":                       true,
		"cc-" + id + "-" + span + "-01-more":                  true, // of a later version
		"00-" + id + "-" + span + "-01-more":                  false,
		"ff-" + id + "-" + span + "-01":                       false,
		"00-00000000000000000000000000000000-" + span + "-01": false,
		"00-" + id + "-0000000000000000-01":                   false,
		"00-" + id + "-" + span:                               false,
		"":                                                    false,
	} {
		got, flags, ok := trace.Parse(parent)
		if ok != want || ok && (got != id || flags != "01") {
			t.Errorf("%q: %q, %q, %t, want valid: %t", parent, got, flags, ok, want)
		}
	}
}
