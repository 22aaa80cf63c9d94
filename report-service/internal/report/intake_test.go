package report_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Everybody sees whose a photo is, the reporter's or the city's. One that an official adds
// for a caller looks like a resident's.
func TestPhotosForCallersAreTheirs(t *testing.T) {
	t.Parallel()
	olga := report.User{ID: "olga", Official: true}
	for name, tt := range map[string]struct {
		reporter    report.Reporter
		by          report.User
		after, city bool
		refused     bool
	}{
		"an official's":                     {report.Reporter{ID: "ann"}, olga, false, true, false},
		"for a caller":                      {report.NewCaller(), olga, false, false, false},
		"of work finished for a caller":     {report.NewCaller(), olga, true, true, false},
		"a resident's on a caller's report": {report.NewCaller(), report.User{ID: "ann"}, false, false, true},
	} {
		city, err := tt.by.UploadsForCity(&report.Filing{Reporter: tt.reporter}, tt.after)
		if city != tt.city || (err != nil) != tt.refused {
			t.Errorf("%s: the city's %t, error %v; want %t, refused %t", name, city, err, tt.city, tt.refused)
		}
	}
}
