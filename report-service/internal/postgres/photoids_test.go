package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// asBefore makes a photo one of the version before, which had the id that the
// client chose for the upload.
func (f *fixture) asBefore(p report.Photo, u report.Upload) {
	f.t.Helper()
	f.exec(`update photos set id = $2, upload = null, changed_at = now() - interval '2 hours' where id = $1`, p.ID, u.ID)
	f.exec(`update report_acts set photo_id = $2 where photo_id = $1`, p.ID, u.ID)
}

func (f *fixture) renamings(before time.Time) []postgres.Renaming {
	f.t.Helper()
	renamings, err := f.checks.Renamings(f.t.Context(), before, 10)
	if err != nil {
		f.t.Fatal(err)
	}
	return renamings
}

func (f *fixture) rename(r postgres.Renaming) {
	f.t.Helper()
	if renamed, err := f.checks.Rename(f.t.Context(), r); err != nil || !renamed {
		f.t.Fatalf("Rename: %v, error %v", renamed, err)
	}
}

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

// A photo of the version before has the client's id, gets another, and is the same
// photo: for a repeated upload, for links, for whoever removes it, and for officials.
func TestRename(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	u := upload(filed, "picture")
	p := f.add(u, city)
	f.judge(p.ID, report.Judgement{Width: 100, Height: 50})
	f.asBefore(p, u)
	same := func(when string, want uuid.UUID) {
		t.Helper()
		if again, added, err := f.photos.Add(t.Context(), u, city); err != nil || added || again.ID != want {
			t.Errorf("%s, the upload again: %+v, added %v, error %v; want %s", when, again, added, err, want)
		}
		if got, err := f.photos.Get(t.Context(), u.ID, report.User{}); err != nil || got.ID != want {
			t.Errorf("%s, a link to it: %s, error %v; want %s", when, got.ID, err, want)
		}
		if view, err := f.Get(t.Context(), filed.ID, report.User{}); err != nil || !slices.Equal(view.Photos, []uuid.UUID{want}) {
			t.Errorf("%s the report shows %v, error %v; want %s", when, view.Photos, err, want)
		}
	}
	same("before", u.ID)

	// Nothing happens to what is young, or not at its end.
	if got := f.renamings(time.Now().Add(-3 * time.Hour)); len(got) > 0 {
		t.Errorf("young photos are renamed: %+v", got)
	}
	f.exec(`update photos set state = 'checking'`)
	if got := f.renamings(time.Now()); len(got) > 0 {
		t.Errorf("photos without a verdict are renamed: %+v", got)
	}
	f.exec(`update photos set state = 'ready'`)

	renamings := f.renamings(time.Now())
	if len(renamings) != 1 || renamings[0].From != u.ID || !renamings[0].Pictures {
		t.Fatalf("renamings %+v, want that of %s with its pictures", renamings, u.ID)
	}
	f.rename(renamings[0])
	if renamed, err := f.checks.Rename(t.Context(), renamings[0]); err != nil || renamed {
		t.Errorf("again: renamed %v, error %v", renamed, err)
	}
	same("afterwards", p.ID)
	if got := f.renamings(time.Now()); len(got) > 0 {
		t.Errorf("what is renamed is renamed again: %+v", got)
	}
	var acts int
	if err := f.pool.QueryRow(t.Context(), `select count(*) from report_acts where photo_id = $1`, p.ID).Scan(&acts); err != nil || acts != 1 {
		t.Errorf("%d acts are about the photo, error %v; want 1", acts, err)
	}
	// A page that was open still has the earlier id.
	if err := f.photos.Remove(t.Context(), filed.ID, u.ID, city); err != nil {
		t.Fatal(err)
	}
	if got := f.state(p.ID); got != "removed" {
		t.Errorf("state %s, want removed", got)
	}
	_, _, err := f.photos.Add(t.Context(), u, city)
	wantKind(t, err, report.OtherPhoto)
}

// An upload that replicas of both versions took is one photo in the end, whichever
// of the two is still shown.
func TestRenameOfAPhotoThatIsThereTwice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of        string // the state of the newer one
		otherDone bool
		want      string // of the older one
	}{
		"both are shown":         {"ready", false, "removed"},
		"the newer is removed":   {"removed", false, "ready"},
		"the newer is another's": {"ready", true, "ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filed := f.file(ann, draft(report.Public))
			u := upload(filed, "picture")
			older := f.add(u, annUploads)
			f.judge(older.ID, report.Judgement{Width: 100, Height: 50})
			f.asBefore(older, u)
			f.exec(`
				insert into photos (id, report_id, state, official, bytes, digest, created_at)
				select $1, report_id, $2, official, bytes, case when $3 then '\x00' else digest end, created_at from photos`,
				older.ID, tt.of, tt.otherDone)
			renamings := f.renamings(time.Now())
			if len(renamings) != 1 || renamings[0].To == older.ID || renamings[0].To.Version() != 8 {
				t.Fatalf("renamings %+v, want one to an id that is free", renamings)
			}
			f.rename(renamings[0])
			if got := f.state(renamings[0].To); got != tt.want {
				t.Errorf("the older is %s, want %s", got, tt.want)
			}
			if got := f.state(older.ID); got != tt.of {
				t.Errorf("the newer is %s, want %s", got, tt.of)
			}
			if got := f.renamings(time.Now().Add(time.Hour)); len(got) > 0 {
				t.Errorf("renamed again: %+v", got)
			}
		})
	}
}
