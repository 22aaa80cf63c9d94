package postgres_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var (
	annUploads = report.User{ID: ann.ID, Name: ann.Name}
	bobUploads = report.User{ID: bob.ID, Name: bob.Name}
	city       = report.User{ID: "official-id", Name: "Ola", Official: true}
)

const checks = "queue.photo_checks"

// upload returns a photo of a report, with bytes that its text stands for.
func upload(f report.Filing, text string) report.Upload {
	return report.Upload{
		ID: uuid.New(), ReportID: f.ID, Alt: "A lamp", Bytes: int64(len(text)), Hash: sha256.Sum256([]byte(text)),
		Key: "quarantine/" + uuid.NewString(),
	}
}

func (f *fixture) add(u report.Upload, by report.User) report.Photo {
	f.t.Helper()
	p, added, err := f.photos.Add(f.t.Context(), u, by)
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
	if p, added, err := f.photos.Add(t.Context(), again, annUploads); err != nil || added || p.State != report.PhotoChecking {
		t.Errorf("again: %+v, added %v, error %v; want the same photo", p, added, err)
	}
	other := again
	other.Hash[0]++
	if _, _, err := f.photos.Add(t.Context(), other, annUploads); fault.KindOf(err) != report.OtherPhoto {
		t.Errorf("other bytes: error %v", err)
	}
	for _, err := range []error{
		f.checkUpload(t, filed.ID, uuid.New(), bobUploads),
		func() error { _, _, err := f.photos.Add(t.Context(), upload(filed, "x"), bobUploads); return err }(),
		func() error { _, _, err := f.photos.Add(t.Context(), again, bobUploads); return err }(), // which bob must not see
	} {
		wantKind(t, err, report.NotReporter)
	}
	wantKind(t, f.checkUpload(t, uuid.New(), uuid.New(), annUploads), fault.NotFound)

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

// A resident who uploads under a name that a photo of another report has, which may be
// hidden, finds the same as under any other name.
func TestUploadTellsNothingOfOtherReports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	taken := upload(f.file(ann, draft(report.Public)), "picture")
	first := f.add(taken, annUploads)
	f.exec(`update reports set hidden_reason = 'It names somebody' where id = $1`, taken.ReportID)

	u := taken
	u.ReportID, u.Key = f.file(bob, draft(report.Public)).ID, "quarantine/"+uuid.NewString()
	u.Hash[0]++
	if err := f.checkUpload(t, u.ReportID, u.ID, bobUploads); err != nil {
		t.Errorf("before it is sent: %v", err)
	}
	p := f.add(u, bobUploads)
	if p.ID == first.ID || p.ReportID != u.ReportID {
		t.Errorf("the photo is %+v, want one of its own", p)
	}
	if again, added, err := f.photos.Add(t.Context(), u, bobUploads); err != nil || added || again.ID != p.ID {
		t.Errorf("again: %+v, added %v, error %v; want the same photo", again, added, err)
	}
	other := u
	other.Hash[0]++
	_, _, err := f.photos.Add(t.Context(), other, bobUploads)
	wantKind(t, err, report.OtherPhoto)
	if err := f.photos.Remove(t.Context(), u.ReportID, u.ID, bobUploads); err != nil {
		t.Errorf("remove it by the name that bob gave it: %v", err)
	}
	if got := f.state(first.ID); got != string(report.PhotoChecking) {
		t.Errorf("the other report's photo is %s", got)
	}
}

// When many are sent at once under one id, one counts.
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
			_, ok, err := f.photos.Add(t.Context(), u, annUploads)
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
	wantKind(t, f.checkUpload(t, filed.ID, uuid.New(), annUploads), report.TooManyPhotos)
	_, _, err := f.photos.Add(t.Context(), upload(filed, "picture"), city)
	wantKind(t, err, report.TooManyPhotos)
	if err := f.photos.Remove(t.Context(), filed.ID, first.ID, annUploads); err != nil {
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
	wantKind(t, f.checkUpload(t, another.ID, uuid.New(), annUploads), report.PhotoQuota)
	_, _, err = f.photos.Add(t.Context(), upload(another, "picture"), annUploads)
	wantKind(t, err, report.PhotoQuota)
	f.add(upload(another, "picture"), city)
	f.exec(`update photos set created_at = created_at - interval '25 hours'`)
	f.add(upload(another, "picture"), annUploads)
}

// Moderation: the reporter sees what is held, others do not; officials show it,
// refuse it or redact it, and what they did is among the acts.
func TestModeration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Anonymous))
	held := func() uuid.UUID {
		p := f.add(upload(filed, uuid.NewString()), annUploads)
		f.judge(p.ID, report.Judgement{Hold: true, Width: 100, Height: 50})
		return p.ID
	}
	shown, refused, redacted := held(), held(), held()
	for who, want := range map[report.User]int{annUploads: 3, city: 3, bobUploads: 0, {}: 0} {
		photos, err := f.photos.List(t.Context(), filed.ID, who)
		if err != nil || len(photos) != want {
			t.Errorf("%q sees %d photos, error %v; want %d", who.ID, len(photos), err, want)
		}
		_, err = f.photos.Get(t.Context(), shown, who)
		if (err == nil) != (want > 0) {
			t.Errorf("%q and the picture: error %v", who.ID, err)
		}
	}
	if photos, err := f.photos.Held(t.Context(), 2, report.User{Official: true}); err != nil || len(photos) != 2 || photos[0].ID != shown {
		t.Errorf("held %+v, error %v; want the two oldest", photos, err)
	}
	wantKind(t, f.photos.Show(t.Context(), filed.ID, shown, annUploads), report.NotReporter)
	for range 2 { // twice is once
		if err := f.photos.Show(t.Context(), filed.ID, shown, city); err != nil {
			t.Fatal(err)
		}
		if err := f.photos.Remove(t.Context(), filed.ID, refused, city); err != nil && fault.KindOf(err) != "" {
			t.Fatal(err)
		}
	}
	replaced, err := f.photos.Replace(t.Context(), filed.ID, redacted, report.Photo{ID: uuid.New(), Width: 100, Height: 50}, city)
	if err != nil || replaced.State != report.PhotoHeld || replaced.Alt != "A lamp" {
		t.Fatalf("ReplacePhoto: %+v, error %v", replaced, err)
	}
	if got := f.state(redacted); got != "removed" {
		t.Errorf("what was redacted is %s, want removed", got)
	}
	if got := len(f.rowsOf(event.PhotoReadyKey)); got != 1 {
		t.Errorf("%d photos were announced, want 1", got)
	}
	view, err := f.Get(t.Context(), filed.ID, report.User{ID: bob.ID})
	if err != nil || !slices.Equal(view.Photos, []uuid.UUID{shown}) {
		t.Errorf("everybody sees %v, error %v; want %v", view.Photos, err, shown)
	}
	work, err := f.workbench.Details(t.Context(), filed.ID, report.User{Official: true})
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
	f.judge(p.ID, report.Judgement{Width: 100, Height: 50})
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

// checkUpload checks an upload whose digest is not known.
func (f *fixture) checkUpload(t *testing.T, reportID, photoID uuid.UUID, by report.User) error {
	t.Helper()
	_, err := f.photos.CheckUpload(t.Context(), reportID, photoID, false, nil, by)
	return err
}
