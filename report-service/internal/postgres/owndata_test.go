package postgres_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// People get everything that is held about them, and nobody else's name. A table with
// something about a person is in their data, or is left out for a reason.
func TestOwnData(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	public, anonymous, others := f.live()
	complaint := report.Complaint{Reason: report.Spam, Text: "not what it says"}
	for _, by := range []string{kanari.ID, bob.ID} {
		if err := f.moderation.Complain(t.Context(), others.ID, complaint, by); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(`with c as (insert into comments (id, report_id, text, anonymous, created_at) values (gen_random_uuid(), $1, 'me too', false, now()) returning id)
		insert into commenters (comment_id, commenter_id, commenter_name) select id, $2, $3 from c`, others.ID, kanari.ID, kanari.Name)
	f.exec(`insert into questions (id, report_id, text, asked_by, asked_at, ends_on, remind_at, ends_at) values
		(gen_random_uuid(), $1, 'which side?', $2, now(), now(), now(), now())`, anonymous.ID, "olga-id")
	answer, err := f.upkeep.OwnData(t.Context(), kanari.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	for section, n := range map[string]int{
		"reports": 3, "comments": 1, "votes": 1, "complaints": 1, "official": 1, "queue_views": 1, "assigned": 1, "changes": 2, "acts": 3,
		"questions": 0, "bulk_moves": 1, "duplicates": 1, "settings": 0, "operations": 2,
	} {
		if len(answer.Data[section]) != n {
			t.Errorf("%s has %d rows, want %d: %s", section, len(answer.Data[section]), n, answer.Data[section])
		}
	}
	for _, own := range []string{public.ID.String(), anonymous.ID.String(), kanari.Name, "which side?", "me too", "not what it says"} {
		if !strings.Contains(string(text), own) {
			t.Errorf("kanari's data lacks %s: %s", own, text)
		}
	}
	for _, other := range []string{ann.ID, ann.Name, bob.ID, "olga", "pavel"} {
		if strings.Contains(string(text), other) {
			t.Errorf("kanari's data names %s: %s", other, text)
		}
	}
	known := []string{
		"reporters", "commenters", "votes", "status_history", "officials", "queue_views", "reports", "report_acts", "bulk_moves", "duplicate_ends",
		"outbox_audit", "schedule_audit",
		"idempotency_keys", "outbox_messages", // go by themselves
	}
	for _, table := range f.traces() {
		if !slices.Contains(known, table) {
			t.Errorf("table %s has something about kanari, and own data has nothing of it", table)
		}
	}
	if nobody, err := f.upkeep.OwnData(t.Context(), "nobody"); err != nil || len(nobody.Data) != 16 || time.Since(nobody.MadeAt) > time.Hour {
		t.Errorf("nobody has %v (%v), want 16 empty lists", nobody, err)
	}
}
