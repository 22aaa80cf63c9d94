package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/notification-service/internal/webhook"
	"github.com/cityconnect/cityconnect/platform/deadletter"
	"github.com/cityconnect/cityconnect/platform/event"
)

// A report was closed so long ago that its words are removed: nothing here has them any
// more, nor where exactly it was, nor who follows it. Nobody is notified.
func TestWordsRemoved(t *testing.T) {
	t.Parallel()
	store, pool := newStore(t)
	z := zebra(uuid.New())
	const latitude = -6.91234
	moved := z.move(2)
	moved.About().Asset = "lamps/L-1"
	moved.About().Latitude, moved.About().Longitude = new(latitude), new(107.61234)
	endpoint(t, store, webhook.Filter{})
	if err := store.Follows.Follow(t.Context(), notification.Reader{UserID: "carl"}, uuid.UUID(z)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, of(z.created()), of(moved))
	mustExpand(t, store, moved)
	mustExec(t, pool, `update deliveries set state = 'done'`)
	body := `{"report_id":"` + uuid.UUID(z).String() + `","report_title":"Dark Zebra","note":"Zebra seen","latitude":-6.91234,"asset":"lamps/L-1","longitude":107.61234,"new_status":"resolved"}`
	keepNamed(t, pool, map[string]string{"whole": body, "torn": body[:len(body)-1]})
	before := count(t, pool, `select count(*) from notifications`)

	removed := &event.ReportModerated{Subject: z.subject(5), CategoryID: 2, Action: event.WordsRemoved, RedactedNotes: []int64{2}}
	removed.ReportTitle = "7KQ2-M9XB"
	applied := mustApply(t, store, postgres.Message{ID: uuid.NewString(), Value: notification.Of(removed, "")})
	if n := len(applied.Batch.Feed) + len(applied.Batch.Notifications); n != 0 || count(t, pool, `select count(*) from notifications`) != before {
		t.Errorf("%d learn of it, want nobody", n)
	}
	letters := deadletter.NewStore(pool)
	letters.BeforeArchive(store.Erased.Scrub)
	late := deadletter.Letter{Queue: "queue.report_created", MessageID: "late", Body: []byte(body), Headers: []byte(`{}`), FirstFailedAt: time.Now(), FailedAt: time.Now()}
	if err := letters.Archive(t.Context(), []deadletter.Letter{late}); err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, of(z.vote(4)))
	for _, table := range []string{"notifications", "deliveries", "dead_letters", "delayed_messages"} {
		for _, text := range []string{"Zebra", "6.91234", "L-1"} {
			sql := `select count(*) from ` + table + ` r where r::text like '%` + text + `%'`
			if table != "notifications" {
				sql += ` or convert_from(body, 'UTF8') like '%` + text + `%'`
			}
			if n := count(t, pool, sql); n != 0 {
				t.Errorf("%d of %s have %s", n, table, text)
			}
		}
	}
	if n := count(t, pool, `select count(*) from dead_letters where convert_from(body, 'UTF8') like '%"new_status":"resolved"%'`); n != 4 {
		t.Errorf("%d dead letters say what happened, want 4", n)
	}
	if follows, err := store.Follows.List(t.Context(), notification.Reader{UserID: "carl"}); err != nil || len(follows) != 0 {
		t.Errorf("the reader follows %v (error %v), want nothing", follows, err)
	}
	if n := count(t, pool, `select count(*) from notifications where data ->> 'report_title' = '7KQ2-M9XB'`); n != before+1 {
		t.Errorf("%d notifications have its reference, want %d", n, before+1)
	}
}
