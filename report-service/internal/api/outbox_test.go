package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/docs"
	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/story"
	"github.com/cityconnect/cityconnect/report-service/internal/api"
	"github.com/cityconnect/cityconnect/report-service/internal/outbox"
	"github.com/cityconnect/cityconnect/report-service/internal/relay"
)

const outboxPath = "/admin/outbox/messages"

func TestOperatorMendsTheOutbox(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, otto := token(t, "ann", auth.Resident), token(t, "otto", auth.Operator)
	for range 5 {
		s.file(ann, "public")
	}
	list := func(query string) []reportapi.OutboxMessage {
		page, _ := ok[reportapi.OutboxPage](s, call{method: "GET", path: outboxPath + query, token: otto}, http.StatusOK)
		return page.Messages
	}
	if got := list("?status=pending&routing_key=report.created"); len(got) != 5 {
		t.Fatalf("%d pending, want 5", len(got))
	}
	if got := list(""); len(got) != 0 {
		t.Fatalf("%d failed, want none", len(got))
	}
	if _, err := s.pool.Exec(t.Context(), `update outbox_messages set status = 'failed', retry_count = 5, last_error = 'NO_ROUTE' where seq <= 4`); err != nil {
		t.Fatal(err)
	}
	failed := list("?limit=3")
	if len(failed) != 3 || failed[0].LastError != "NO_ROUTE" || failed[0].RetryCount != 5 {
		t.Fatalf("failed: %+v", failed)
	}
	s.checkRefused()
	if got := list("?report_id=" + failed[1].ReportID.String()); len(got) != 1 || got[0].ID != failed[1].ID {
		t.Errorf("by report: %+v", got)
	}

	mend := func(method, path string, want int) {
		if a := s.do(call{method: method, path: outboxPath + path, token: otto}); a.StatusCode != want {
			t.Errorf("%s %s: status %d, want %d: %s", method, path, a.StatusCode, want, a.body)
		}
	}
	mend("POST", "/"+failed[0].ID.String()+"/retry", http.StatusNoContent)
	mend("DELETE", "/"+failed[1].ID.String()+"?reason=spam", http.StatusNoContent)
	retried, _ := ok[reportapi.BulkRetried](s, call{method: "POST", path: outboxPath + "/retry", token: otto, body: `{"routing_key":"report.created"}`}, http.StatusOK)
	if retried.Retried != 2 || len(list("")) != 0 {
		t.Errorf("%d retried and %d left failed, want 2 and none", retried.Retried, len(list("")))
	}
	stats, _ := ok[reportapi.OutboxStats](s, call{method: "GET", path: "/admin/outbox/stats", token: otto}, http.StatusOK)
	if stats.Pending != 4 || stats.Failed != 0 || len(stats.Shards) != 16 || stats.OldestPendingSeconds <= 0 {
		t.Errorf("stats %+v", stats)
	}
	audit, _ := ok[reportapi.OutboxAudit](s, call{method: "GET", path: "/admin/outbox/audit", token: otto}, http.StatusOK)
	if len(audit.Acts) != 4 || audit.Acts[2].Reason != "spam" || audit.Acts[2].Actor != "otto" || audit.Acts[3].Action != reportapi.Retry {
		t.Errorf("audit %+v", audit.Acts)
	}
	s.refuseMending(otto, failed[0].ID.String())
}

// checkRefused has the one pending message refused, and asks as an auditor what waits.
func (s *testServer) checkRefused() {
	s.t.Helper()
	audra := token(s.t, "audra", auth.Auditor)
	if _, err := s.pool.Exec(s.t.Context(), `
		update outbox_messages set retry_count = 1, next_attempt_at = now() + interval '1 hour', last_error = 'nacked' where status = 'pending'`); err != nil {
		s.t.Fatal(err)
	}
	refused, _ := ok[reportapi.OutboxRefusals](s, call{method: "GET", path: "/admin/outbox/refused", token: audra}, http.StatusOK)
	if len(refused.Messages) != 1 || refused.Messages[0].Message.LastError != "nacked" || refused.Messages[0].Behind != 0 {
		s.t.Errorf("refused: %+v", refused.Messages)
	}
}

// The story of a message leads from its request to the confirm, and to the photo worker;
// it is for operators alone, and names nobody.
func TestStoryOfAMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	otto := token(t, "otto", auth.Operator)
	s.file(token(t, "secret-ann", auth.Resident), "anonymous")
	page, _ := ok[reportapi.OutboxPage](s, call{method: "GET", path: outboxPath + "?status=pending", token: otto}, http.StatusOK)
	id := page.Messages[0].ID.String()
	path := outboxPath + "/" + id + "/story"
	told, answer := ok[reportapi.OutboxStory](s, call{method: "GET", path: path, token: otto}, http.StatusOK)
	if len(told.Entries) != 1 || told.Entries[0].Kind != reportapi.StoryEntryKindAccepted || told.Message.ID.String() != id || len(told.TraceID) != 32 {
		t.Errorf("a message that waits: %s", answer.body)
	}
	for _, sql := range []string{
		`update outbox_messages set status = 'published', published_at = now() where id::text = $1`,
		`insert into processed_messages (consumer, message_id, processed_at) values ('queue.photo_checks', $1, now() + interval '1 minute')`,
		`insert into processed_messages (consumer, message_id) values ('queue.of.nobody', $1)`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	told, answer = ok[reportapi.OutboxStory](s, call{method: "GET", path: path, token: otto}, http.StatusOK)
	if len(told.Entries) != 3 || told.Entries[1].Kind != reportapi.StoryEntryKindPublished || told.Entries[2].Kind != reportapi.StoryEntryKindHandled || told.Entries[2].Place != "queue.photo_checks" {
		t.Errorf("a message that was handled: %s", answer.body)
	}
	if bytes.Contains(answer.body, []byte("secret")) || bytes.Contains(answer.body, []byte("otto")) {
		t.Errorf("the story names somebody: %s", answer.body)
	}
	if told, _ := ok[reportapi.OutboxStory](s, call{method: "GET", path: outboxPath + "/" + uuid.NewString() + "/story", token: otto}, http.StatusOK); len(told.Entries) != 0 {
		t.Errorf("a message that is unknown has %d entries", len(told.Entries))
	}
	for _, r := range []refusal{
		{"", call{method: "GET", path: path, token: token(t, "olga", auth.Official)}, 403, "forbidden", nil},
		{"", call{method: "GET", path: path, token: token(t, "ann", auth.Resident)}, 403, "forbidden", nil},
		{"", call{method: "GET", path: path}, 401, "unauthenticated", nil},
		{"", call{method: "GET", path: outboxPath + "/7/story", token: otto}, 400, "invalid-input", []string{"id"}},
	} {
		s.wantProblem(r)
	}
}

// Operators get what photo-worker has not found, and publish it again; nobody else may.
func TestMissingMessagesArePublishedAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	otto, olga := token(t, "otto", auth.Operator), token(t, "olga", auth.Official)
	s.file(token(t, "ann", auth.Resident), "public")
	page, _ := ok[reportapi.OutboxPage](s, call{method: "GET", path: outboxPath + "?status=pending", token: otto}, http.StatusOK)
	id := page.Messages[0].ID
	body, err := json.Marshal(event.Manifest{
		Number: 1, From: time.Now().Add(-time.Minute), Until: time.Now(),
		Messages: map[event.Key]event.IDs{event.PhotoUploadedKey: event.NewIDs([]uuid.UUID{id})},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, args := range map[string][]any{
		`update outbox_messages set status = 'published', published_at = now() where id = $1`: {id},
		`insert into reconciliation_starts (consumer_group, restores) values ('photos', 0)`:   nil,
		`insert into reconciliation_manifests (consumer_group, epoch, number, starts_at, ends_at, body, state, checks, expected, missing)
		 values ('photos', 0, 1, now() - interval '1 minute', now(), $2, 'missing', 3, 1, array[$1::uuid])`: {id, body},
	} {
		if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const base = "/admin/reports/reconciliation"
	summary, _ := ok[reportapi.Reconciliation](s, call{method: "GET", path: base, token: otto}, http.StatusOK)
	if len(summary.Groups) != 1 || summary.Groups[0].Group != "photos" || summary.Groups[0].Missing != 1 {
		t.Errorf("summary is %+v, want one missing of photos", summary)
	}
	missing, _ := ok[reportapi.MissingMessagePage](s, call{method: "GET", path: base + "/messages?group=photos&state=missing", token: otto}, http.StatusOK)
	if len(missing.Messages) != 1 || missing.Messages[0].MessageID != id || missing.Messages[0].RoutingKey != string(event.PhotoUploadedKey) {
		t.Fatalf("missing are %+v, want %v", missing.Messages, id)
	}
	again := call{method: "POST", path: outboxPath + "/republish", token: otto, body: `{"message_ids":["` + id.String() + `"],"reason":"purged"}`}
	if done, _ := ok[reportapi.OutboxRepublished](s, again, http.StatusOK); done.Republished != 1 || done.Gone != 0 {
		t.Errorf("published again: %+v, want 1", done)
	}
	audit, _ := ok[reportapi.OutboxAudit](s, call{method: "GET", path: "/admin/outbox/audit", token: otto}, http.StatusOK)
	if len(audit.Acts) != 1 || audit.Acts[0].Action != reportapi.Republish || audit.Acts[0].Actor != "otto" || audit.Acts[0].Reason != "purged" {
		t.Errorf("audit %+v", audit.Acts)
	}
	closing := call{method: "POST", path: base + "/messages/close", token: otto, body: `{"group":"photos","message_ids":["` + id.String() + `"],"reason":"purged"}`}
	for _, want := range []int64{1, 0} {
		if done, _ := ok[reportapi.MissingClosed](s, closing, http.StatusOK); done.Closed != want {
			t.Errorf("closed %d, want %d", done.Closed, want)
		}
	}
	if summary, _ = ok[reportapi.Reconciliation](s, call{method: "GET", path: base, token: otto}, http.StatusOK); summary.Groups[0].Missing != 0 {
		t.Errorf("%d are missing after closing, want none", summary.Groups[0].Missing)
	}
	audit, _ = ok[reportapi.OutboxAudit](s, call{method: "GET", path: "/admin/outbox/audit", token: otto}, http.StatusOK)
	if len(audit.Acts) != 2 || audit.Acts[0].Action != reportapi.Close || audit.Acts[0].MessageID != id || audit.Acts[0].Reason != "purged" {
		t.Errorf("audit %+v, want the closing first", audit.Acts)
	}
	official, stranger := again, again
	official.token, stranger.token = olga, ""
	for _, r := range []refusal{
		{"", official, 403, "forbidden", nil},
		{"", stranger, 401, "unauthenticated", nil},
		{"", call{method: "GET", path: base, token: olga}, 403, "forbidden", nil},
		{"", call{method: "GET", path: base + "/messages", token: olga}, 403, "forbidden", nil},
		{"", call{method: "GET", path: base + "/messages"}, 401, "unauthenticated", nil},
		{"", call{method: "GET", path: base + "/messages?cursor=7&state=complete", token: otto}, 400, "invalid-input", []string{"cursor", "state"}},
		{"", call{method: "POST", path: again.path, token: otto, body: `{"message_ids":[],"reason":" "}`}, 400, "invalid-input", []string{"/message_ids", "/reason"}},
		{"", call{method: "POST", path: closing.path, token: otto, body: `{"group":"Photos","message_ids":[],"reason":" "}`}, 400, "invalid-input", []string{"/group", "/message_ids", "/reason"}},
		{"", call{method: "POST", path: closing.path, token: olga, body: closing.body}, 403, "forbidden", nil},
	} {
		s.wantProblem(r)
	}
}

// Every kind of this service's entries is in the document.
func TestStoryKindsAreDocumented(t *testing.T) {
	t.Parallel()
	_, schema, _ := strings.Cut(string(docs.Read("openapi/report-service.yaml")), "\n    StoryEntry:\n")
	listed, _, _ := strings.Cut(schema, "        place:")
	for _, kind := range story.Kinds() {
		elsewhere := kind == story.Numbered || strings.HasPrefix(string(kind), "delivery_")
		if regexp.MustCompile(`\b`+string(kind)+`\b`).MatchString(listed) == elsewhere {
			t.Errorf("%s is listed: %t, want %t", kind, elsewhere, !elsewhere)
		}
	}
}

// The console has the past of the outbox at once, also that of other replicas.
func TestOutboxHistory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.file(token(t, "ann", auth.Resident), "public")
	otto := token(t, "otto", auth.Operator)
	past, _ := ok[reportapi.OutboxHistory](s, call{method: "GET", path: "/admin/outbox/history", token: otto}, http.StatusOK)
	if past.StepSeconds != 30 || len(past.Series) != 0 {
		t.Errorf("the history of an hour without rows is %+v", past)
	}
	_, err := s.pool.Exec(t.Context(), `
		insert into history (replica, since, until, figures) values (gen_random_uuid(), now() - interval '2 minutes', now() - interval '1 minute',
			'{"counters": {"published_per_s": 60}, "levels": {"pending": 4}}')`)
	if err != nil {
		t.Fatal(err)
	}
	past, _ = ok[reportapi.OutboxHistory](s, call{method: "GET", path: "/admin/outbox/history?minutes=360", token: otto}, http.StatusOK)
	if past.StepSeconds != 180 || len(past.Replicas) != 120 || len(past.Series) != 2 || string(past.Series[1].Name) != "published_per_s" {
		t.Errorf("the history is %+v", past)
	}
	s.wantProblem(refusal{"", call{method: "GET", path: "/admin/outbox/history?minutes=361", token: otto}, 400, "invalid-input", []string{"minutes"}})
	s.wantProblem(refusal{"", call{method: "GET", path: "/admin/outbox/history", token: token(t, "olga", auth.Official)}, 403, "forbidden", nil})

	f := api.OutboxFigures(t.Context(), outbox.NewStore(s.pool, nil), idle{})
	if f.Levels["pending"] != 1 || f.Counters["published_per_s"] != 7 || f.Levels["oldest_pending_seconds"] <= 0 {
		t.Errorf("figures are %+v, want a message that waits and 7 that were published", f)
	}
	if _, known := f.Levels["confirm_p99_ms"]; known {
		t.Error("confirm times are known, and nothing was confirmed lately")
	}
}

// idle is a relay that has published seven messages, long ago.
type idle struct{}

func (idle) State() relay.State { return relay.State{Published: 7} }

func (s *testServer) refuseMending(otto, pending string) {
	s.t.Helper()
	for _, r := range []refusal{
		{"", call{method: "POST", path: outboxPath + "/" + pending + "/retry"}, 409, "not-failed", nil},
		{"", call{method: "DELETE", path: outboxPath + "/" + pending + "?reason=x"}, 409, "not-failed", nil},
		{"", call{method: "DELETE", path: outboxPath + "/" + pending}, 400, "invalid-input", []string{"reason"}},
		{"", call{method: "POST", path: outboxPath + "/" + uuid.NewString() + "/retry"}, 404, "not-found", nil},
		{"", call{method: "GET", path: outboxPath + "?cursor=!"}, 400, "invalid-input", []string{"cursor"}},
		{"", call{method: "GET", path: outboxPath + "?status=lost&report_id=7"}, 400, "invalid-input", []string{"status", "report_id"}},
		{"", call{method: "POST", path: outboxPath + "/retry", body: `{}`}, 400, "invalid-input", []string{"/routing_key"}},
	} {
		r.call.token = otto
		s.wantProblem(r)
	}
}
