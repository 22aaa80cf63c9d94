package postgres_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// forCity is a report that only the city is to see, from the first moment.
func (f *fixture) forCity() report.Report {
	d := f.withTarget(report.Anonymous)
	d.Visibility = report.ForOfficials
	return d
}

// Maps that are kept do not end with a filing for the city alone, which their readers could
// time; they do once a report that was public is hidden or restricted.
func TestKeptMapsOutliveAPrivateFiling(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.file(ann, draft(report.Anonymous)), f.file(ann, draft(report.Anonymous))
	hidden := func() string {
		t.Helper()
		now, err := f.Hidden(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := hidden()
	f.file(ann, f.forCity())
	if now := hidden(); now != before {
		t.Errorf("a private filing changes %q to %q", before, now)
	}
	f.exec(`update reports set hidden_reason = 'spam' where id = $1`, first.ID)
	once := hidden()
	f.exec(`update reports set visibility = 'officials', hidden_reason = 'private', restricted_version = 2 where id = $1`, second.ID)
	if now := hidden(); once == before || now == once {
		t.Errorf("hidden reports: %q, then %q, then %q", before, once, now)
	}
}

// Work on a report that only the city sees goes on as on any other: it is moved, answered,
// gets photos and becomes overdue, and its reporter is notified. Each message says that it
// is for nobody else. For everybody else there is no such report.
func TestWorkOnAPrivateReportGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, f.forCity())
	shown := f.add(upload(filed, "picture"), annUploads)
	f.judge(shown.ID, report.Judgement{Width: 10, Height: 10})
	f.late(filed.ID, 2)
	if levels := f.overdue(filed.ID); len(levels) != 1 {
		t.Errorf("it falls overdue at %v, want one level", levels)
	}
	f.mustMove(filed.ID, report.InProgress, "We come")
	reply, err := report.NewReply("On Monday", hider, time.Now())
	if err == nil {
		_, err = f.Reports.Reply(t.Context(), filed.ID, reply, nil)
	}
	if err != nil {
		t.Error(err)
	}
	for _, key := range []event.Key{event.ReportCreatedKey, event.PhotoReadyKey, event.ReportOverdueKey, event.StatusUpdatedKey} {
		rows := f.rowsOf(key)
		if len(rows) == 0 {
			t.Errorf("there is no %s", key)
		}
		for _, r := range rows {
			if to, err := f.keys.Open(filed.ID, r.Headers[event.RecipientHeader]); key != event.ReportOverdueKey && (err != nil || to != ann.ID) {
				t.Errorf("%s is for %q (error %v), want the reporter", key, to, err)
			}
		}
	}
	for _, r := range f.outbox() {
		var m struct{ Private bool }
		if err := json.Unmarshal(r.Payload, &m); err != nil || !m.Private {
			t.Errorf("%s is for everybody: %s (error %v)", r.Key, r.Payload, err)
		}
	}

	_, err = f.Vote(t.Context(), filed.ID, bob.ID, report.Upvote)
	wantKind(t, err, fault.NotFound)
	_, _, err = f.photos.Add(t.Context(), upload(filed, "third"), report.User{ID: bob.ID})
	wantKind(t, err, fault.NotFound)
	for reader, sees := range map[report.User]bool{{}: false, {ID: bob.ID}: false, {ID: ann.ID}: true, {ID: hider.ID, Official: true}: true} {
		if v, err := f.Get(t.Context(), filed.ID, reader); (err == nil) != sees || sees && (v.HiddenReason != "" || !v.Private()) {
			t.Errorf("%+v: %+v, error %v", reader, v.Report, err)
		}
	}
	for filter, want := range map[*report.Filter]int{{}: 0, {Official: true}: 1, {Official: true, Hidden: true}: 0} {
		queue, err := f.workbench.Queue(t.Context(), *filter, nil, 10)
		counts, countErr := f.workbench.Counts(t.Context(), *filter)
		if err != nil || countErr != nil || len(queue.Tasks) != want || counts.Total != int64(want) {
			t.Errorf("%+v: %d reports, %d counted, errors %v and %v", filter, len(queue.Tasks), counts.Total, err, countErr)
		}
	}
}

// Officials restrict a report that everybody saw, and take that back only as long as
// nothing was added to it: what was written for its reporter never becomes public.
func TestRestrictedReportIsPublishedOnlyUnused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	publish := func(id uuid.UUID) error {
		return f.moderation.SetVisibility(t.Context(), id, report.ForEverybody, "", report.Versions{}, hider)
	}
	hide := func(id uuid.UUID) {
		f.mustHide(id)
		if err := f.moderation.Unhide(t.Context(), id, report.Versions{}, hider); err != nil {
			t.Fatal(err)
		}
	}
	for name, use := range map[string]func(filed report.Filing){
		"nothing":  nil,
		"a status": func(filed report.Filing) { f.mustMove(filed.ID, report.InProgress, "Only for you") },
		"a photo":  func(filed report.Filing) { f.add(upload(filed, "picture"), annUploads) },
		"hiding":   func(filed report.Filing) { hide(filed.ID) },
	} {
		filed := f.file(ann, draft(report.Public))
		f.mustRestrict(filed.ID)
		f.mustRestrict(filed.ID) // changes nothing
		if use != nil {
			use(filed)
			wantKind(t, publish(filed.ID), report.StaysPrivate)
		} else if err := publish(filed.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, err := f.Get(t.Context(), filed.ID, report.User{})
		if gone := errors.Is(err, report.ErrNotFound); gone != (use != nil) {
			t.Errorf("after %s was added: error %v", name, err)
		}
	}
}

// A report that its reporter filed for the city alone never becomes public: neither by an
// official's wish, nor after it was hidden and shown again, redacted or restricted once more.
func TestFiledForTheCityStaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, f.forCity())
	private := func(after string) {
		t.Helper()
		wantKind(t, f.moderation.SetVisibility(t.Context(), filed.ID, report.ForEverybody, "", report.Versions{}, hider), report.StaysPrivate)
		if _, err := f.Get(t.Context(), filed.ID, report.User{}); !errors.Is(err, report.ErrNotFound) {
			t.Errorf("after %s everybody sees it (error %v)", after, err)
		}
	}
	private("filing")
	f.mustRestrict(filed.ID)
	private("restricting it once more")
	wantKind(t, f.moderation.Hide(t.Context(), filed.ID, report.PrivateReason, report.Versions{}, hider), fault.Invalid)
	f.mustHide(filed.ID)
	wantKind(t, f.moderation.SetVisibility(t.Context(), filed.ID, report.ForEverybody, "", report.Versions{}, hider), report.Hidden)
	if err := f.moderation.Unhide(t.Context(), filed.ID, report.Versions{}, hider); err != nil {
		t.Fatal(err)
	}
	private("showing it again")
	if err := f.moderation.Redact(t.Context(), filed.ID, report.Rewording{Title: new("Other"), Reason: "A name"}, hider); err != nil {
		t.Fatal(err)
	}
	private("redacting it")
	if _, err := f.HideName(t.Context(), filed.ID, ann.ID); err != nil {
		t.Fatal(err)
	}
	private("hiding the name")
}

// The words that close a private report are for its reporter: no report that others filed
// follows it.
func TestNothingFollowsAPrivateReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	private, original, duplicate := f.file(ann, f.forCity()), f.file(ann, draft(report.Public)), f.file(bob, draft(report.Public))
	wantKind(t, f.duplicates.Set(t.Context(), duplicate.ID, private.ID, hider), fault.Invalid)
	f.mustMark(duplicate.ID, original.ID)
	wantKind(t, f.moderation.SetVisibility(t.Context(), original.ID, report.ForOfficials, "Names a neighbour", report.Versions{}, hider), fault.Conflict)
	if err := f.duplicates.Set(t.Context(), private.ID, original.ID, hider); err != nil {
		t.Error(err)
	}
}

// The message that a report is restricted has none of its words, as that of a hidden one.
func TestRestrictionHasNoWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	filed := f.file(ann, draft(report.Public))
	f.mustRestrict(filed.ID)
	if err := f.moderation.Redact(t.Context(), filed.ID, report.Rewording{Description: new("Other"), Reason: "A name"}, hider); err != nil {
		t.Fatal(err)
	}
	for i, want := range []event.Moderation{event.Restricted, event.Redacted} {
		m, err := event.Decode(event.ModeratedKey, f.rowsOf(event.ModeratedKey)[i].Payload)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(*event.ReportModerated); got.Action != want || !got.Hidden || !got.Private || got.ReportTitle != report.Reference(filed.ID) {
			t.Errorf("announced as %+v", got)
		}
	}
}
