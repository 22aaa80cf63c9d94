package postgres_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// The photo's id is the service's choice. A repetition has the same, also after the
// key was changed, and the client's id is nowhere.
func TestPhotoIDIsNotTheUploads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	u := upload(filed, "picture")
	p := f.add(u, annUploads)
	if p.ID == u.ID || p.ID.Version() != 8 || p.ID.Variant() != uuid.RFC4122 {
		t.Errorf("upload %s, photo %s of version %d; want one of version 8", u.ID, p.ID, p.ID.Version())
	}
	rotated := openKeyed(t, f.database, event.NewKey("k2")+","+recipientKey)
	for name, store := range map[string]*fixture{"the same key": f, "another key": rotated} {
		if again, added, err := store.photos.Add(t.Context(), u, annUploads); err != nil || added || again.ID != p.ID {
			t.Errorf("again with %s: %+v, added %v, error %v; want the same photo", name, again, added, err)
		}
		if _, err := store.photos.CheckUpload(t.Context(), filed.ID, u.ID, false, nil, annUploads); err != nil {
			t.Errorf("CheckUpload with %s: %v", name, err)
		}
	}
	next := upload(filed, "next")
	if q, added, err := rotated.photos.Add(t.Context(), next, annUploads); err != nil || !added || q.ID == next.ID {
		t.Errorf("%+v, added %v, error %v", q, added, err)
	}
	var found int
	for _, table := range []string{"photos", "outbox_messages", "report_acts"} {
		if err := f.pool.QueryRow(t.Context(), `select count(*) from `+table+` t where position($1 in t::text) > 0`, u.ID.String()).Scan(&found); err != nil || found > 0 {
			t.Errorf("%s has the client's id in %d rows, error %v", table, found, err)
		}
	}
	// A client that knows a photo's id cannot tell by sending it whether it is there.
	elsewhere := upload(f.file(bob, draft(report.Public)), "x")
	elsewhere.ID = p.ID
	f.add(elsewhere, bobUploads)
}
