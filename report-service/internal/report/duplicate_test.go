package report_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestCheckDuplicate(t *testing.T) {
	t.Parallel()
	first, second, third, gone := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	known := []report.Relation{
		{ID: first, Status: report.Pending, HasDuplicates: true},
		{ID: second, Status: report.Pending, Original: &first},
		{ID: third, Status: report.Resolved},
	}
	for _, tt := range []struct {
		name            string
		id, original    uuid.UUID
		changed, closed bool
		kind            fault.Kind
	}{
		{"of an open one", third, first, true, false, ""},
		{"of a closed one", second, third, true, true, ""},
		{"as it is", second, first, false, false, ""},
		{"no longer", second, uuid.Nil, true, false, ""},
		{"none, as before", third, uuid.Nil, false, false, ""},
		{"of itself", third, third, false, false, fault.Invalid},
		{"of a duplicate", third, second, false, false, fault.Invalid},
		{"of none that exists", third, gone, false, false, fault.Invalid},
		{"with duplicates", first, third, false, false, fault.Conflict},
		{"that does not exist", gone, first, false, false, fault.NotFound},
	} {
		changed, closed, err := report.CheckDuplicate(tt.id, tt.original, known)
		if changed != tt.changed || closed != tt.closed || fault.KindOf(err) != tt.kind || (err != nil) != (tt.kind != "") {
			t.Errorf("%s: changed %t, closed %t, error %v; want %t, %t, kind %q", tt.name, changed, closed, err, tt.changed, tt.closed, tt.kind)
		}
	}
}
