package report_test

import (
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// A report is found by its reference, however somebody writes it down by ear.
// The page's test has the same pairs.
func TestReference(t *testing.T) {
	t.Parallel()
	for id, reference := range map[string]string{
		"0198c0de-0000-7000-8000-000000000000": "0000-0000",
		"0198c0de-0000-7000-8000-00ffffffffff": "ZZZZ-ZZZZ",
		"0198c0de-0000-7000-8000-ab0123456789": "04HM-ASW9",
	} {
		for _, written := range []string{reference, strings.ToLower(reference), reference[:4] + reference[5:], reference[:4] + " " + reference[5:]} {
			if suffix, ok := report.ReferenceOf(report.Words(written)); !ok || suffix != id[len(id)-10:] {
				t.Errorf("%q leads to ids that end with %q, %t; want that of %s", written, suffix, ok, id)
			}
		}
	}
	if suffix, ok := report.ReferenceOf(report.Words("OOOO-IIlL")); !ok || suffix != "0000008421" {
		t.Errorf("what was misread leads to %q, %t", suffix, ok)
	}
	for _, other := range []string{"", "lamp", "0000-000U", "0000-00000", "dark crossing"} {
		if suffix, ok := report.ReferenceOf(report.Words(other)); ok {
			t.Errorf("%q is taken for a reference to %q", other, suffix)
		}
	}
}
