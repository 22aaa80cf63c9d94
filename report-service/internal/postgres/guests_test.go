package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// visitor has no account.
var visitor = report.Reporter{ID: "0f8f1a1e-5f0e-4a5b-9a39-6a1f6a1b2c3d", Guest: true}

// livesAsGuest has the guest file, vote beside ann and alone, comment, complain, and make a
// code; each of the two votes on a report of the other.
func (f *fixture) livesAsGuest() (own, both, alone report.Filing) {
	f.t.Helper()
	own, both, alone = f.file(visitor, draft(report.Anonymous)), f.file(bob, draft(report.Public)), f.file(bob, draft(report.Public))
	for _, b := range []struct {
		id report.Filing
		report.Ballot
	}{
		{both, report.Ballot{Voter: ann.ID, Vote: report.Upvote}},
		{both, report.Ballot{Voter: visitor.ID, Vote: report.Upvote, Guest: true}},
		{alone, report.Ballot{Voter: visitor.ID, Vote: report.Downvote, Guest: true}},
		{own, report.Ballot{Voter: ann.ID, Vote: report.Upvote}},
		{own, report.Ballot{Voter: bob.ID, Vote: report.Upvote}},
		{f.file(ann, draft(report.Public)), report.Ballot{Voter: visitor.ID, Vote: report.Upvote, Guest: true}},
	} {
		if _, err := f.Reports.Vote(f.t.Context(), b.id.ID, b.Ballot); err != nil {
			f.t.Fatal(err)
		}
	}
	f.say(both.ID, visitor, true, "I have seen it, too")
	for _, by := range []string{ann.ID, visitor.ID} {
		if err := f.moderation.Complain(f.t.Context(), both.ID, report.Complaint{Reason: report.Spam, Text: by}, by); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.moderation.Complain(f.t.Context(), alone.ID, report.Complaint{Reason: report.Spam, Text: "again"}, visitor.ID); err != nil {
		f.t.Fatal(err)
	}
	if _, _, err := postgres.NewGuests(f.db).NewCode(f.t.Context(), visitor.ID); err != nil {
		f.t.Fatal(err)
	}
	return own, both, alone
}

func (f *fixture) ownData(userID string) string {
	f.t.Helper()
	answer, err := f.upkeep.OwnData(f.t.Context(), userID)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(answer.Data)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// All that a guest has is the account's, in the transaction that announces it: of two votes
// and two complaints on one report the account's own, and the score adds up. Nothing names the guest
// then, and the own data of each say so.
func TestAdoptMovesEverything(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	own, both, alone := f.livesAsGuest()
	if data := f.ownData(visitor.ID); !strings.Contains(data, `"kind":"guest"`) || !strings.Contains(data, `"kind":"code"`) || !strings.Contains(data, own.ID.String()) {
		t.Errorf("the guest's data are %s", data)
	}
	guests := postgres.NewGuests(f.db)
	if n, err := guests.Adopt(t.Context(), visitor.ID, ann.ID); err != nil || n != 1 {
		t.Fatalf("%d reports, error %v; want one", n, err)
	}
	for what, want := range map[string]int64{
		`select count(*) from reporters where reporter_id = 'ann-id'`:                                                          2,
		`select count(*) from commenters where commenter_id = 'ann-id'`:                                                        1,
		`select count(*) from votes v join reporters o using (report_id) where o.reporter_id = v.voter_id`:                     0,
		`select count(*) from guests where filed <> '{}'`:                                                                      0,
		`select count(*) from votes where voter_id = 'ann-id'`:                                                                 2,
		`select count(*) from guest_codes`:                                                                                     0,
		`select count(*) from abuse_reports`:                                                                                   2,
		`select count(*) from reports r where score <> (select coalesce(sum(value), 0) from votes v where v.report_id = r.id)`: 0,
	} {
		if got := int64(f.number(what)); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	data := f.ownData(ann.ID)
	for _, text := range []string{own.ID.String(), both.ID.String(), alone.ID.String(), `"taken over"`, "again"} {
		if !strings.Contains(data, text) {
			t.Errorf("the account's data lack %s: %s", text, data)
		}
	}
	var last struct{ Guest string }
	messages := f.outbox()
	m := messages[len(messages)-1]
	if err := json.Unmarshal(m.Payload, &last); err != nil || m.Key != string(event.GuestAdoptedKey) {
		t.Fatalf("the last message is %s (error %v)", m.Payload, err)
	}
	guest, guestErr := f.keys.Open(m.Report, last.Guest)
	account, accountErr := f.keys.Open(m.Report, m.Headers[event.RecipientHeader])
	if guest != visitor.ID || account != ann.ID || guestErr != nil || accountErr != nil {
		t.Errorf("it is about %q (%v) for %q (%v)", guest, guestErr, account, accountErr)
	}
	if n := f.number(`select count(*) from (select r::text as t from reporters r union all select r::text from votes r union all
		select r::text from outbox_messages r where routing_key <> 'report.vote.received'
		union all select r::text from guests r) all_of where t like '%0f8f1a1e-5f0e%'`); n != 0 {
		t.Errorf("%d rows name the guest", n)
	}
	for _, key := range []*report.Idempotent{nil, {UserID: visitor.ID, Key: "1", Response: []byte("{}")}} {
		if _, err := f.Create(t.Context(), filing(draft(report.Anonymous), visitor, own.CreatedAt), key); err == nil {
			t.Error("a request of the guest that was underway has filed a report")
		}
	}
}

// An account that takes over a guest gets no further photos for the day.
func TestGuestsPhotosCountForTheAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range report.MaxPhotosPerDay / report.MaxPhotos {
		filed := f.file(visitor, draft(report.Anonymous))
		for range report.MaxPhotos {
			f.add(upload(filed, "picture"), report.User{ID: visitor.ID})
		}
	}
	next := f.file(ann, draft(report.Anonymous))
	if err := f.checkUpload(t, next.ID, uuid.New(), annUploads); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.NewGuests(f.db).Adopt(t.Context(), visitor.ID, ann.ID); err != nil {
		t.Fatal(err)
	}
	wantKind(t, f.checkUpload(t, next.ID, uuid.New(), annUploads), report.PhotoQuota)
}

// Erasing a guest leaves nothing of one. Erasing an account that has taken over a guest
// leaves nothing that leads from one to the other.
func TestEraseGuests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.livesAsGuest()
	e := f.newEraser()
	if state := f.erase(e, visitor.ID); state.Removed["guest"] != 2 {
		t.Errorf("step guest removed %d rows, want the guest and the code", state.Removed["guest"])
	}
	if n := f.number(`select (select count(*) from guests) + (select count(*) from guest_codes) + (select count(*) from votes where voter_id like '0f8f%') + (select count(*) from abuse_reports where text = 'again')`); n != 0 {
		t.Errorf("%d rows are left of the guest", n)
	}

	f = newFixture(t)
	f.livesAsGuest()
	if _, err := postgres.NewGuests(f.db).Adopt(t.Context(), visitor.ID, ann.ID); err != nil {
		t.Fatal(err)
	}
	f.erase(f.newEraser(), ann.ID)
	if n := f.number(`select (select count(*) from guests where adopted_by is not null) + (select count(*) from reporters where reporter_id = 'ann-id') + (select count(*) from votes where voter_id = 'ann-id')`); n != 0 {
		t.Errorf("%d rows are left of the account", n)
	}
	if adopted, err := postgres.NewGuests(f.db).Adopted(t.Context(), visitor.ID); err != nil || !adopted {
		t.Errorf("the guest's token is accepted again: %t, %v", !adopted, err)
	}
}
