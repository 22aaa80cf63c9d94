package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Each report of a bulk move is moved or refused by itself. Sent again, the
// request changes nothing and gets the same answer, although the reports have
// moved on: one event each, one entry in the audit.
func TestBulkMove(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	var ids []string
	for range 70 { // more than one commit takes
		ids = append(ids, s.file(ann, "public").ID.String())
	}
	closed, nowhere := ids[68], uuid.NewString()
	ok[reportapi.Report](s, call{method: "PATCH", path: "/reports/" + closed + "/status", token: olga, body: `{"status":"resolved"}`}, http.StatusOK)
	var items []string
	for _, id := range slices.Concat(ids[:68], []string{closed, nowhere}) {
		items = append(items, `{"id":"`+id+`"}`)
	}
	items = append(items, `{"id":"`+ids[69]+`","version":2}`) // it is at version 1
	bulk := call{
		method: "POST", path: "/reports/moves", token: olga, headers: map[string]string{"Idempotency-Key": "monday"},
		body: `{"status":"rejected","note":"Duplicate of the works in May","reports":[` + strings.Join(items, ",") + `]}`,
	}
	first, a := ok[reportapi.BulkMoved](s, bulk, http.StatusOK)
	for i, r := range first.Results {
		got := fmt.Sprint(r.Moved, " ", r.Version, " ", r.Problem)
		want := "true 2 "
		switch i {
		case 68:
			want = "false 0 illegal-transition"
		case 69:
			want = "false 0 not-found"
		case 70:
			want = "false 0 stale-version"
		}
		if got != want {
			t.Errorf("result %d: %s, want %s", i, got, want)
		}
	}
	events := func() (n int) {
		if err := s.pool.QueryRow(t.Context(), `select count(*) from outbox_messages where routing_key = 'report.status.updated'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := events(); n != 68+1 {
		t.Errorf("%d events, want one for each report that moved: 69", n)
	}
	ok[reportapi.Report](s, call{method: "PATCH", path: "/reports/" + ids[0] + "/status", token: olga, body: `{"status":"pending","note":"a mistake"}`}, http.StatusOK)
	if _, again := ok[reportapi.BulkMoved](s, bulk, http.StatusOK); string(again.body) != string(a.body) {
		t.Errorf("sent again it is answered\n%s\nwant\n%s", again.body, a.body)
	}
	if n := events(); n != 68+2 {
		t.Errorf("%d events after the repetition, want 70", n)
	}
	bulk.body = strings.Replace(bulk.body, "May", "June", 1)
	if a := s.do(bulk); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the key with another body: %d, want 422", a.StatusCode)
	}
	audit, _ := ok[reportapi.BulkMoves](s, call{method: "GET", path: "/reports/moves", token: olga}, http.StatusOK)
	if len(audit.Moves) != 1 || len(audit.Moves[0].Reports) != 71 || len(audit.Moves[0].Refused) != 3 || !audit.Moves[0].Ended || audit.Moves[0].By.ID != "olga" {
		t.Errorf("audit %+v, want one entry with 71 reports, 3 of them refused", audit)
	}
	twice := call{method: "POST", path: "/reports/moves", token: olga, body: `{"status":"resolved","reports":[{"id":"` + ids[0] + `"},{"id":"` + ids[0] + `"}]}`}
	if a := s.do(twice); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "/reports/1/id") {
		t.Errorf("a report given twice: %d %s", a.StatusCode, a.body)
	}
	twice.token = ann
	if a := s.do(twice); a.StatusCode != http.StatusForbidden {
		t.Errorf("a resident moves reports: %d, want 403", a.StatusCode)
	}
}
