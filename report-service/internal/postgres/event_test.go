package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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

// Each status names the message of the one before it, also where votes and other
// changes come between, and the first one that of the filing. A report of before the
// column is not known to have one.
func TestStatusesAreLinked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.file(ann, draft(report.Public))
	move := func(to report.Status) {
		t.Helper()
		if _, err := f.Move(t.Context(), r.ID, report.Move{To: to, By: "olga", Note: "Because."}); err != nil {
			t.Fatal(err)
		}
	}
	move(report.InProgress)
	if _, err := f.Vote(t.Context(), r.ID, bob.ID, report.Upvote); err != nil {
		t.Fatal(err)
	}
	move(report.Resolved)
	f.exec(`update reports set status_message_id = null, status_version = null`)
	move(report.InProgress)
	move(report.Resolved)
	type link struct {
		ID              uuid.UUID
		Key             event.Key
		Version         int64
		Previous        *uuid.UUID
		PreviousVersion *int64
	}
	rows, err := f.pool.Query(t.Context(), `
		select id, routing_key, report_version, (payload->>'previous_message_id')::uuid, (payload->>'previous_status_version')::bigint
		from outbox_messages where routing_key <> 'report.vote.received' order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	links, err := pgx.CollectRows(rows, pgx.RowToStructByPos[link])
	if err != nil || len(links) != 5 {
		t.Fatalf("%d messages (error %v), want 5", len(links), err)
	}
	for i, l := range links {
		switch i {
		case 0, 3:
			if l.Previous != nil || l.PreviousVersion != nil {
				t.Errorf("message %d, %s: previous is %v, want none", i, l.Key, l.Previous)
			}
		default:
			if before := links[i-1]; l.Previous == nil || *l.Previous != before.ID || *l.PreviousVersion != before.Version {
				t.Errorf("message %d, %s: previous is %v, want %s of version %d", i, l.Key, l.Previous, before.ID, before.Version)
			}
		}
	}
}
