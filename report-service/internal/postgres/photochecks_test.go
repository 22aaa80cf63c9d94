package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// judge hands the worker's verdict in, as for the message that was written.
func (f *fixture) judge(photo uuid.UUID, v report.Judgement) (seen, kept bool) {
	f.t.Helper()
	for _, r := range f.rowsOf(event.PhotoUploadedKey) {
		m, err := event.Decode(event.PhotoUploadedKey, r.Payload)
		if err != nil {
			f.t.Fatal(err)
		}
		if m.(*event.PhotoUploaded).PhotoID != photo {
			continue
		}
		seen, kept, err := f.checks.Judge(f.t.Context(), checks, consumer.Message{ID: r.ID.String(), Event: m, Body: r.Payload}, v)
		if err != nil {
			f.t.Fatalf("Judge: %v", err)
		}
		return seen, kept
	}
	f.t.Fatal("no message of the photo")
	return false, false
}

// A verdict is written once, with the version and the recipient.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		by        report.User
		verdict   report.Judgement
		wantState string
		wantKey   event.Key
		wantTo    string
		wantRaise int64
	}{
		{"ready", annUploads, report.Judgement{Width: 100, Height: 50}, "ready", event.PhotoReadyKey, ann.ID, 1},
		{"refused", annUploads, report.Judgement{Reason: report.PhotoDamaged}, "refused", event.PhotoRefusedKey, ann.ID, 0},
		{"held", annUploads, report.Judgement{Hold: true, Width: 100, Height: 50}, "held", "", "", 0},
		{"the city's", city, report.Judgement{Hold: true, Width: 100, Height: 50}, "ready", event.PhotoReadyKey, ann.ID, 1},
		{"the city's, refused", city, report.Judgement{Reason: report.PhotoInfected}, "refused", event.PhotoRefusedKey, "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filed := f.file(ann, draft(report.Anonymous))
			p := f.add(upload(filed, "picture"), tt.by)
			if u, err := f.checks.UploadToCheck(t.Context(), p.ID); err != nil || !u.Checking || u.Uploader != tt.by.ID {
				t.Errorf("to check: %+v, error %v; want it uploaded by %s", u, err, tt.by.ID)
			}
			seen, kept := f.judge(p.ID, tt.verdict)
			if seen || kept != (tt.verdict.Reason == "") {
				t.Errorf("seen %v, kept %v", seen, kept)
			}
			if seen, _ := f.judge(p.ID, report.Judgement{Reason: report.PhotoFailed}); !seen {
				t.Error("a message had its effect twice")
			}
			if got := f.state(p.ID); got != tt.wantState {
				t.Errorf("state %s, want %s", got, tt.wantState)
			}
			view, err := f.Get(t.Context(), filed.ID, report.User{})
			if err != nil || view.Version != filed.Version+tt.wantRaise {
				t.Errorf("version %d, error %v; want %d", view.Version, err, filed.Version+tt.wantRaise)
			}
			if shown := slices.Contains(view.Photos, p.ID); shown != (tt.wantState == "ready") {
				t.Errorf("the report shows %v", view.Photos)
			}
			if queue, err := f.workbench.Queue(t.Context(), report.Filter{}, nil, 1); err != nil || !slices.Equal(queue.Tasks[0].Photos, view.Photos) {
				t.Errorf("the queue shows %+v, error %v; want photos %v", queue.Tasks, err, view.Photos)
			}
			if u, err := f.checks.UploadToCheck(t.Context(), p.ID); err != nil || u.Checking {
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

// A photo that was removed while the worker looked at it stays removed, and its
// pictures are deleted.
func TestJudgeWhatWasRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	p := f.add(upload(filed, "picture"), annUploads)
	if err := f.photos.Remove(t.Context(), filed.ID, p.ID, annUploads); err != nil {
		t.Fatal(err)
	}
	if seen, kept := f.judge(p.ID, report.Judgement{Width: 1, Height: 1}); seen || kept {
		t.Errorf("seen %v, kept %v; want neither", seen, kept)
	}
	if got := f.state(p.ID); got != "removed" {
		t.Errorf("state %s", got)
	}
	leftovers, err := f.checks.Leftovers(t.Context(), 10)
	if err != nil || len(leftovers) != 1 || leftovers[0].Photo != p.ID || !leftovers[0].Pictures || leftovers[0].Upload == "" {
		t.Fatalf("leftovers %+v, error %v", leftovers, err)
	}
	if err := f.checks.Cleaned(t.Context(), leftovers[0]); err != nil {
		t.Fatal(err)
	}
	if leftovers, err := f.checks.Leftovers(t.Context(), 10); err != nil || len(leftovers) > 0 {
		t.Errorf("leftovers %+v, error %v; want none", leftovers, err)
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
		if got, err := f.checks.RefuseDead(t.Context(), checks); err != nil || got != want {
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
