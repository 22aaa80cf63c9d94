package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/event"
)

// private returns m as it is about a report that only the city sees.
func private(m event.Message) event.Message {
	m.About().Private = true
	return m
}

// Messages about a report that only the city sees are for its reporter and officials:
// nobody who follows it and no feed gets them, whatever officials do, and neither does an endpoint
// without the scope, not by a recovery either.
func TestPrivateReportIsForTheCity(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	report := zebra(uuid.New())
	plain := endpoint(t, store, webhook.Filter{})
	scoped := endpoint(t, store, webhook.Filter{}, webhook.PrivateScope)
	if err := store.Follows.Follow(t.Context(), notification.Reader{UserID: "carl"}, uuid.UUID(report)); err != nil {
		t.Fatal(err)
	}
	messages := []event.Message{
		report.created(), report.move(2), &event.PhotoReady{Subject: report.subject(3), PhotoID: uuid.New()},
		&event.ReportDisputed{Subject: report.subject(4), CategoryID: 2, CategoryName: "Lights"},
		report.redacted(5), report.hidden(6), &event.ReportModerated{Subject: report.subject(7), CategoryID: 2, Action: event.ShownAgain},
		&event.ReportModerated{Subject: report.subject(8), CategoryID: 2, Action: event.Withdrawn, Hidden: true},
	}
	for _, m := range messages {
		applied := mustApply(t, store, of(private(m)))
		if len(applied.Batch.Feed) != 0 {
			t.Errorf("the feed shows %+v", applied.Batch.Feed)
		}
		for _, n := range applied.Batch.Notifications {
			if n.Stream != notification.UserStream("ann") && n.Stream != notification.Officials {
				t.Errorf("%s: %s is notified", m.Key(), n.Stream)
			}
		}
		mustExpand(t, store, m)
	}
	for id, want := range map[uuid.UUID]int{plain.ID: 0, scoped.ID: len(messages)} {
		if n := count(t, pool, `select count(*) from deliveries where target = $1`, id.String()); n != want {
			t.Errorf("an endpoint has %d deliveries, want %d", n, want)
		}
	}
	if n := count(t, pool, `select count(*) from deliveries where convert_from(body, 'UTF8')::jsonb #> '{data,private}' is distinct from 'true'`); n != 0 {
		t.Errorf("%d deliveries do not say that it is private", n)
	}
	mustExec(t, pool, `delete from deliveries`)
	window := webhook.Window{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}
	for id, missed := range map[uuid.UUID]bool{plain.ID: false, scoped.ID: true} {
		if r, err := store.Deliveries.Recover(t.Context(), "pavel", id, window, false); err != nil || (r.Created > 0) != missed {
			t.Errorf("a recovery makes %d deliveries (error %v), want some: %t", r.Created, err, missed)
		}
	}
	if n := count(t, pool, `select count(*) from deliveries where target = $1`, plain.ID.String()); n != 0 {
		t.Errorf("an endpoint without the scope is sent %d events by a recovery", n)
	}
}
