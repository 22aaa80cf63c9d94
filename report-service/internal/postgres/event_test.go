package postgres_test

import (
	"testing"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// Every message tells the category of its report and where it is, for those who
// want the events of one or of a place.
func TestMessagesTellThePlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.file(ann, draft(report.Anonymous))
	if _, err := f.Vote(t.Context(), r.ID, bob.ID, report.Upvote); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Move(t.Context(), r.ID, report.Move{To: report.InProgress, By: "olga"}); err != nil {
		t.Fatal(err)
	}
	rows := f.outbox()
	if len(rows) != 3 {
		t.Fatalf("%d messages, want 3", len(rows))
	}
	for _, row := range rows {
		m, err := event.Decode(event.Key(row.Key), row.Payload)
		if err != nil {
			t.Fatal(err)
		}
		category := int32(0)
		switch m := m.(type) {
		case *event.ReportCreated:
			category = m.CategoryID
		case *event.StatusUpdate:
			category = m.CategoryID
		case *event.VoteReceived:
			category = m.CategoryID
		}
		about := m.About()
		if category != r.Category.ID || about.Latitude == nil || *about.Latitude != -6.9 || about.Longitude == nil || *about.Longitude != 107.6 {
			t.Errorf("%s: category %d at %v %v, want %d at -6.9 107.6", row.Key, category, about.Latitude, about.Longitude, r.Category.ID)
		}
	}
}
