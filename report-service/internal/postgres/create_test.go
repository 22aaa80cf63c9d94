package postgres_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
	"github.com/cityconnect/cityconnect/report-service/internal/shards"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	for _, privacy := range []report.Privacy{report.Public, report.Anonymous} {
		t.Run(string(privacy), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			filing := f.file(ann, draft(privacy))

			view, err := f.Get(t.Context(), filing.ID, report.User{ID: ann.ID})
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			want := filing.View()
			if *view.Position != *want.Position {
				t.Errorf("position %v, want %v", *view.Position, *want.Position)
			}
			view.Position, want.Position = nil, nil
			if len(view.Photos) == 0 {
				view.Photos = nil
			}
			if !reflect.DeepEqual(view, want) {
				t.Errorf("Get returns %+v, want what Create was given, %+v", view, want)
			}
			rows := f.outbox()
			if len(rows) != 1 || f.wakes.Load() != 1 {
				t.Fatalf("%d outbox rows and %d wakes, want 1 and 1", len(rows), f.wakes.Load())
			}
			if woken, want := shards.Set(f.woken.Load()), shards.Set(0).Add(shards.Of(filing.ID)); woken != want {
				t.Errorf("woken for the shards %b, want %b", woken, want)
			}
			f.checkAnnouncement(rows[0], filing)
		})
	}
}

func (f *fixture) checkAnnouncement(r row, filing report.Filing) {
	f.t.Helper()
	message, err := event.Decode(event.Key(r.Key), r.Payload)
	if err != nil {
		f.t.Fatalf("the payload breaks the contract: %v", err)
	}
	want := event.ReportCreated{
		Subject: event.Subject{
			ReportID: filing.ID, ReportVersion: 1, ReportTitle: filing.Title, Timestamp: filing.CreatedAt.Unix(),
			Latitude: &filing.Position.Latitude, Longitude: &filing.Position.Longitude,
		},
		CategoryID: filing.Category.ID, CategoryName: filing.Category.Name, PrivacyLevel: event.Privacy(filing.Privacy),
	}
	if filing.Privacy == report.Public {
		want.ReporterID, want.ReporterName = ann.ID, ann.Name
	}
	if got := message.(*event.ReportCreated); !reflect.DeepEqual(*got, want) {
		f.t.Errorf("message is %+v, want %+v", *got, want)
	}
	recipient, err := f.keys.Open(filing.ID, r.Headers[event.RecipientHeader])
	if err != nil || recipient != ann.ID {
		f.t.Errorf("recipient %q, error %v; want the reporter", recipient, err)
	}
	if !r.Without {
		f.t.Error("the row has a recipient, want it left to the relay")
	}
	if got := slices.Sorted(maps.Keys(r.Headers)); !slices.Equal(got, []string{event.TraceHeader, event.RecipientHeader}) {
		f.t.Errorf("headers %q", got)
	}
	if strings.Count(r.Headers[event.TraceHeader], "-") != 3 {
		f.t.Errorf("traceparent %q", r.Headers[event.TraceHeader])
	}
}

// The shard of a report never changes: this is FNV-1a of the id, computed by hand.
func TestShardIsStable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for id, want := range map[string]int16{
		"ffffffff-ffff-ffff-ffff-ffffffffffff": 5,
		"01a1fd66-6b3e-7924-96d5-b6204a0caa8c": 11,
		"0198c0de-0000-7000-8000-000000000001": 1, // 13 by FNV-1
	} {
		rep := filing(draft(report.Public), ann, time.Now())
		rep.ID = uuid.MustParse(id)
		if _, err := f.Create(t.Context(), rep, nil); err != nil {
			t.Fatal(err)
		}
		rows := f.outbox()
		i := slices.IndexFunc(rows, func(r row) bool { return r.Report == rep.ID })
		if got := rows[i].Shard; got != want {
			t.Errorf("report %s is in shard %d, want %d", id, got, want)
		}
	}
}

// A message that no reader would accept is never written, nor is the change
// that it announces.
func TestBrokenMessageFailsTheChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rep := filing(draft(report.Public), ann, time.Now())
	rep.Category.Name = ""
	if _, err := f.Create(t.Context(), rep, nil); err == nil || !strings.Contains(err.Error(), "category_name") {
		t.Errorf("Create: error %v, want one that names category_name", err)
	}
	if got := f.count(); got["reports"] != 0 || got["outbox_messages"] != 0 {
		t.Errorf("written: %v, want nothing", got)
	}
}

func TestUnknownCategory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.categories.Category(t.Context(), 4711)
	wantKind(t, err, fault.Invalid)

	// One that went away after it was looked up.
	d := draft(report.Public)
	d.Category.ID = 4711
	rep := filing(d, ann, time.Now())
	_, err = f.Create(t.Context(), rep, nil)
	wantKind(t, err, fault.Invalid)

	// One that came after the others were read.
	f.exec(`insert into categories (id, name) values (4711, 'new')`)
	if c, err := f.categories.Category(t.Context(), 4711); err != nil || c.Name != "new" {
		t.Errorf("Category: got %+v, %v; want the new one", c, err)
	}
}
