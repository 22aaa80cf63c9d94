package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var (
	annUploads = report.PhotoUser{ID: ann.ID, Name: ann.Name}
	bobUploads = report.PhotoUser{ID: bob.ID, Name: bob.Name}
	city       = report.PhotoUser{ID: "official-id", Name: "Ola", Official: true}
)

const checks = "queue.photo_checks"

// upload returns a photo of a report, with bytes that its text stands for.
func upload(f report.Filing, text string) report.Upload {
	return report.Upload{
		ID: uuid.New(), ReportID: f.ID, Alt: "A lamp", Bytes: int64(len(text)), Hash: sha256.Sum256([]byte(text)),
		Key: "quarantine/" + uuid.NewString(),
	}
}

func (f *fixture) add(u report.Upload, by report.PhotoUser) report.Photo {
	f.t.Helper()
	p, added, err := f.photos.AddPhoto(f.t.Context(), u, by)
	if err != nil || !added {
		f.t.Fatalf("AddPhoto: added %v, error %v", added, err)
	}
	return p
}

// rowsOf returns the outbox rows of a kind.
func (f *fixture) rowsOf(key event.Key) (rows []row) {
	f.t.Helper()
	for _, r := range f.outbox() {
		if r.Key == string(key) {
			rows = append(rows, r)
		}
	}
	return rows
}

// judge hands the worker's verdict in, as for the message that was written.
func (f *fixture) judge(photo uuid.UUID, v report.Verdict) (seen, kept bool) {
	f.t.Helper()
	for _, r := range f.rowsOf(event.PhotoUploadedKey) {
		m, err := event.Decode(event.PhotoUploadedKey, r.Payload)
		if err != nil {
			f.t.Fatal(err)
		}
		if m.(*event.PhotoUploaded).PhotoID != photo {
			continue
		}
		seen, kept, err := f.photos.Judge(f.t.Context(), checks, consumer.Message{ID: r.ID.String(), Event: m, Body: r.Payload}, v)
		if err != nil {
			f.t.Fatalf("Judge: %v", err)
		}
		return seen, kept
	}
	f.t.Fatal("no message of the photo")
	return false, false
}

func (f *fixture) state(photo uuid.UUID) (state string) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), `select state from photos where id = $1`, photo).Scan(&state); err != nil {
		f.t.Fatal(err)
	}
	return state
}

// An upload is a row and a message, or neither, and has one effect however often
// it is sent.
func TestAddPhoto(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	u := upload(filed, "picture")
	p := f.add(u, annUploads)
	if p.State != report.PhotoChecking || p.Official || p.Alt != u.Alt {
		t.Errorf("photo %+v", p)
	}
	again := u
	again.Key = "quarantine/" + uuid.NewString()
	if p, added, err := f.photos.AddPhoto(t.Context(), again, annUploads); err != nil || added || p.State != report.PhotoChecking {
		t.Errorf("again: %+v, added %v, error %v; want the same photo", p, added, err)
	}
	other := again
	other.Hash[0]++
	if _, _, err := f.photos.AddPhoto(t.Context(), other, annUploads); fault.KindOf(err) != report.OtherPhoto {
		t.Errorf("other bytes: error %v", err)
	}
	elsewhere := again
	elsewhere.ReportID = f.file(ann, draft(report.Public)).ID
	if _, _, err := f.photos.AddPhoto(t.Context(), elsewhere, annUploads); fault.KindOf(err) != report.OtherPhoto {
		t.Errorf("for another report: error %v", err)
	}
	for _, err := range []error{
		f.photos.CheckUpload(t.Context(), filed.ID, uuid.New(), bobUploads),
		func() error { _, _, err := f.photos.AddPhoto(t.Context(), upload(filed, "x"), bobUploads); return err }(),
		func() error { _, _, err := f.photos.AddPhoto(t.Context(), again, bobUploads); return err }(), // what he must not learn of
	} {
		wantKind(t, err, report.NotReporter)
	}
	wantKind(t, f.photos.CheckUpload(t.Context(), uuid.New(), uuid.New(), annUploads), fault.NotFound)

	rows := f.rowsOf(event.PhotoUploadedKey)
	if len(rows) != 1 || rows[0].Version != filed.Version {
		t.Fatalf("%d messages, want 1 of version %d", len(rows), filed.Version)
	}
	if strings.Contains(string(rows[0].Payload), ann.ID) {
		t.Errorf("the message names the reporter: %s", rows[0].Payload)
	}
	if to, err := f.keys.Open(filed.ID, rows[0].Headers[event.RecipientHeader]); err != nil || to != "" {
		t.Errorf("the message is for %q, error %v; want nobody", to, err)
	}
}

// Of many that are sent at once under one id, one counts.
func TestAddPhotoAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	u := upload(filed, "picture")
	var mu sync.Mutex
	added, refused := 0, 0
	var wg sync.WaitGroup
	for i := range 20 {
		u := u
		u.Key = "quarantine/" + uuid.NewString()
		u.Hash[0] += byte(i % 2)
		wg.Go(func() {
			_, ok, err := f.photos.AddPhoto(t.Context(), u, annUploads)
			mu.Lock()
			defer mu.Unlock()
			if ok {
				added++
			}
			if err != nil {
				refused++
				if fault.KindOf(err) != report.OtherPhoto {
					t.Errorf("AddPhoto: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if added != 1 || refused != 10 || len(f.rowsOf(event.PhotoUploadedKey)) != 1 {
		t.Errorf("%d added, %d refused, %d messages; want 1, 10, 1", added, refused, len(f.rowsOf(event.PhotoUploadedKey)))
	}
}

func TestPhotoLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	var first report.Photo
	for i := range report.MaxPhotos {
		p := f.add(upload(filed, "picture"), annUploads)
		if i == 0 {
			first = p
		}
	}
	wantKind(t, f.photos.CheckUpload(t.Context(), filed.ID, uuid.New(), annUploads), report.TooManyPhotos)
	_, _, err := f.photos.AddPhoto(t.Context(), upload(filed, "picture"), city)
	wantKind(t, err, report.TooManyPhotos)
	if err := f.photos.RemovePhoto(t.Context(), filed.ID, first.ID, annUploads); err != nil {
		t.Fatal(err)
	}
	f.add(upload(filed, "picture"), annUploads)
	for n := report.MaxPhotos + 1; n < report.MaxPhotosPerDay; {
		next := f.file(ann, draft(report.Anonymous))
		for range min(report.MaxPhotos, report.MaxPhotosPerDay-n) {
			f.add(upload(next, "picture"), annUploads)
			n++
		}
	}
	another := f.file(ann, draft(report.Public))
	wantKind(t, f.photos.CheckUpload(t.Context(), another.ID, uuid.New(), annUploads), report.PhotoQuota)
	_, _, err = f.photos.AddPhoto(t.Context(), upload(another, "picture"), annUploads)
	wantKind(t, err, report.PhotoQuota)
	f.add(upload(another, "picture"), city)
	f.exec(`update photos set created_at = created_at - interval '25 hours'`)
	f.add(upload(another, "picture"), annUploads)
}

// A verdict is written once, with the version and whoever is told.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		by        report.PhotoUser
		verdict   report.Verdict
		wantState string
		wantKey   event.Key
		wantTo    string
		wantRaise int64
	}{
		{"ready", annUploads, report.Verdict{Width: 100, Height: 50}, "ready", event.PhotoReadyKey, ann.ID, 1},
		{"refused", annUploads, report.Verdict{Reason: report.PhotoDamaged}, "refused", event.PhotoRefusedKey, ann.ID, 0},
		{"held", annUploads, report.Verdict{Hold: true, Width: 100, Height: 50}, "held", "", "", 0},
		{"the city's", city, report.Verdict{Hold: true, Width: 100, Height: 50}, "ready", event.PhotoReadyKey, ann.ID, 1},
		{"the city's, refused", city, report.Verdict{Reason: report.PhotoInfected}, "refused", event.PhotoRefusedKey, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filed := f.file(ann, draft(report.Anonymous))
			p := f.add(upload(filed, "picture"), tt.by)
			if u, err := f.photos.UploadToCheck(t.Context(), p.ID); err != nil || !u.Checking || u.Uploader != tt.by.ID {
				t.Errorf("to check: %+v, error %v; want it uploaded by %s", u, err, tt.by.ID)
			}
			seen, kept := f.judge(p.ID, tt.verdict)
			if seen || kept != (tt.verdict.Reason == "") {
				t.Errorf("seen %v, kept %v", seen, kept)
			}
			if seen, _ := f.judge(p.ID, report.Verdict{Reason: report.PhotoFailed}); !seen {
				t.Error("a message had its effect twice")
			}
			if got := f.state(p.ID); got != tt.wantState {
				t.Errorf("state %s, want %s", got, tt.wantState)
			}
			view, err := f.Get(t.Context(), filed.ID, report.Reader{})
			if err != nil || view.Version != filed.Version+tt.wantRaise {
				t.Errorf("version %d, error %v; want %d", view.Version, err, filed.Version+tt.wantRaise)
			}
			if shown := slices.Contains(view.Photos, p.ID); shown != (tt.wantState == "ready") {
				t.Errorf("the report shows %v", view.Photos)
			}
			if queue, err := f.workbench.Queue(t.Context(), report.Filter{}, nil, 1); err != nil || !slices.Equal(queue.Tasks[0].Photos, view.Photos) {
				t.Errorf("the queue shows %+v, error %v; want photos %v", queue.Tasks, err, view.Photos)
			}
			if u, err := f.photos.UploadToCheck(t.Context(), p.ID); err != nil || u.Checking {
				t.Errorf("to check again: %+v, error %v", u, err)
			}
			rows := append(f.rowsOf(event.PhotoReadyKey), f.rowsOf(event.PhotoRefusedKey)...)
			if tt.wantKey == "" {
				if len(rows) > 0 {
					t.Errorf("%d messages, want none", len(rows))
				}
				return
			}
			if len(rows) != 1 || rows[0].Key != string(tt.wantKey) || rows[0].Version != view.Version {
				t.Fatalf("messages %+v, want one %s of version %d", rows, tt.wantKey, view.Version)
			}
			if to, err := f.keys.Open(filed.ID, rows[0].Headers[event.RecipientHeader]); err != nil || to != tt.wantTo {
				t.Errorf("for %q, error %v; want %q", to, err, tt.wantTo)
			}
			if strings.Contains(string(rows[0].Payload), "-id") {
				t.Errorf("the message names somebody: %s", rows[0].Payload)
			}
		})
	}
}

// What was removed while the worker looked at it stays removed, and its pictures go.
func TestJudgeWhatWasRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	p := f.add(upload(filed, "picture"), annUploads)
	if err := f.photos.RemovePhoto(t.Context(), filed.ID, p.ID, annUploads); err != nil {
		t.Fatal(err)
	}
	if seen, kept := f.judge(p.ID, report.Verdict{Width: 1, Height: 1}); seen || kept {
		t.Errorf("seen %v, kept %v; want neither", seen, kept)
	}
	if got := f.state(p.ID); got != "removed" {
		t.Errorf("state %s", got)
	}
	leftovers, err := f.photos.Leftovers(t.Context(), 10)
	if err != nil || len(leftovers) != 1 || leftovers[0].Photo != p.ID || !leftovers[0].Pictures || leftovers[0].Upload == "" {
		t.Fatalf("leftovers %+v, error %v", leftovers, err)
	}
	if err := f.photos.Cleaned(t.Context(), leftovers[0]); err != nil {
		t.Fatal(err)
	}
	if leftovers, err := f.photos.Leftovers(t.Context(), 10); err != nil || len(leftovers) > 0 {
		t.Errorf("leftovers %+v, error %v; want none", leftovers, err)
	}
}

// Moderation: the reporter sees what is held, others do not; officials show it,
// refuse it or redact it, and what they did is among the acts.
func TestModeration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	held := func() uuid.UUID {
		p := f.add(upload(filed, uuid.NewString()), annUploads)
		f.judge(p.ID, report.Verdict{Hold: true, Width: 100, Height: 50})
		return p.ID
	}
	shown, refused, redacted := held(), held(), held()
	for who, want := range map[report.PhotoUser]int{annUploads: 3, city: 3, bobUploads: 0, {}: 0} {
		photos, err := f.photos.Photos(t.Context(), filed.ID, who)
		if err != nil || len(photos) != want {
			t.Errorf("%q sees %d photos, error %v; want %d", who.ID, len(photos), err, want)
		}
		_, err = f.photos.Photo(t.Context(), shown, who)
		if (err == nil) != (want > 0) {
			t.Errorf("%q and the picture: error %v", who.ID, err)
		}
	}
	if photos, err := f.photos.HeldPhotos(t.Context(), 2); err != nil || len(photos) != 2 || photos[0].ID != shown {
		t.Errorf("held %+v, error %v; want the two oldest", photos, err)
	}
	wantKind(t, f.photos.ShowPhoto(t.Context(), filed.ID, shown, annUploads), report.NotReporter)
	for range 2 { // twice is once
		if err := f.photos.ShowPhoto(t.Context(), filed.ID, shown, city); err != nil {
			t.Fatal(err)
		}
		if err := f.photos.RemovePhoto(t.Context(), filed.ID, refused, city); err != nil && fault.KindOf(err) != "" {
			t.Fatal(err)
		}
	}
	replaced, err := f.photos.ReplacePhoto(t.Context(), filed.ID, redacted, report.Photo{ID: uuid.New(), Width: 100, Height: 50}, city)
	if err != nil || replaced.State != report.PhotoHeld || replaced.Alt != "A lamp" {
		t.Fatalf("ReplacePhoto: %+v, error %v", replaced, err)
	}
	if got := f.state(redacted); got != "removed" {
		t.Errorf("what was redacted is %s, want removed", got)
	}
	if got := len(f.rowsOf(event.PhotoReadyKey)); got != 1 {
		t.Errorf("%d photos were announced, want 1", got)
	}
	view, err := f.Get(t.Context(), filed.ID, report.Reader{ID: bob.ID})
	if err != nil || !slices.Equal(view.Photos, []uuid.UUID{shown}) {
		t.Errorf("everybody sees %v, error %v; want %v", view.Photos, err, shown)
	}
	work, err := f.workbench.Work(t.Context(), filed.ID)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[report.ActKind]int)
	for _, a := range work.Acts {
		kinds[a.Kind]++
	}
	if kinds[report.ShowedPhoto] != 1 || kinds[report.RemovedPhoto] < 1 || kinds[report.RedactedPhoto] != 1 {
		t.Errorf("acts %v", kinds)
	}
}

// Nothing in any table tells who uploaded a photo of an anonymous report: with
// another uploader all rows are the same but for ids, times and what is sealed.
func TestPhotosNameNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	p := f.add(upload(filed, "picture"), annUploads)
	f.judge(p.ID, report.Verdict{Width: 100, Height: 50})
	for _, table := range []string{"photos", "outbox_messages", "report_acts", "officials", "processed_messages", "status_history"} {
		var rows []byte
		if err := f.pool.QueryRow(t.Context(), `select coalesce(json_agg(t), '[]') from `+table+` t`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(rows) || strings.Contains(string(rows), ann.ID) || strings.Contains(string(rows), ann.Name) {
			t.Errorf("%s names the uploader: %s", table, rows)
		}
	}
}

// A photo of which the worker dies is refused.
func TestRefuseDead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	p := f.add(upload(filed, "picture"), annUploads)
	body := f.rowsOf(event.PhotoUploadedKey)[0].Payload
	for _, b := range [][]byte{body, []byte("\xff\x00 no text")} {
		f.exec(`
			insert into dead_letters (queue, message_id, type, body, properties, headers, error_class, error, error_group, first_failed_at, failed_at)
			values ($1, gen_random_uuid()::text, 'report.photo.uploaded', $2, '{}', '{}', 'poison', '', '', now(), now())`, checks, b)
	}
	for _, want := range []int{1, 0} {
		if got, err := f.photos.RefuseDead(t.Context(), checks); err != nil || got != want {
			t.Errorf("RefuseDead: %d, error %v; want %d", got, err, want)
		}
	}
	if got := f.state(p.ID); got != "refused" {
		t.Errorf("state %s, want refused", got)
	}
	if got := len(f.rowsOf(event.PhotoRefusedKey)); got != 1 {
		t.Errorf("%d messages, want 1", got)
	}
}
