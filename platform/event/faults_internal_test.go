package event

import (
	"errors"
	"slices"
	"testing"
)

// All fields that are missing are named, once each, and nothing is wrong with a body
// that has samples in their place.
func TestFaultsOfAnEmptyBody(t *testing.T) {
	t.Parallel()
	for _, kind := range types {
		faults, mended := mend(kind.key, []byte(`{}`))
		if _, err := Decode(kind.key, mended); err != nil {
			t.Errorf("%s: with samples it is %s, which is still wrong: %v", kind.key, mended, err)
		}
		var fields []string
		for _, err := range faults {
			wrong, ok := errors.AsType[*FieldError](err)
			if !ok || slices.Contains(fields, wrong.Field) {
				t.Errorf("%s: fault %v after %q", kind.key, err, fields)
				continue
			}
			fields = append(fields, wrong.Field)
		}
		if !slices.Contains(fields, "report_id") || !slices.Contains(fields, "timestamp") {
			t.Errorf("%s: the faults are of %q, want report_id and timestamp among them", kind.key, fields)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const about = `"report_id": "0198c0de-0000-7000-8000-000000000001", "report_version": 1, "timestamp": 1`
	for _, tt := range []struct {
		body string
		want []string
	}{
		{`{` + about + `, "report_title": "Pothole", "voter_id": "ann", "vote_type": "upvote", "new_score": 1}`, nil},
		{`{` + about + `, "report_title": "", "voter_id": "ann", "vote_type": "sideways", "new_score": "seven"}`,
			[]string{"new_score", "report_title", "vote_type"}},
		{`{"report_id": "pothole"}`, []string{"report_id", "report_title", "timestamp", "voter_id", "new_score", "vote_type"}},
		{`[]`, []string{""}},
	} {
		var got []string
		for _, err := range Faults(VoteReceivedKey, []byte(tt.body)) {
			field := ""
			if wrong, ok := errors.AsType[*FieldError](err); ok {
				field = wrong.Field
			}
			got = append(got, field)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the faults are of %q, want %q", tt.body, got, want)
		}
	}
}
