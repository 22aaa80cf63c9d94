package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Reporters withdraw their own pending reports; for everybody else there is no such
// thing, whoever filed the report.
func TestWithdrawReport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, ben, olga := token(t, "ann", auth.Resident), token(t, "ben", auth.Resident), token(t, "olga", auth.Official)
	rep := s.file(ann, "anonymous")
	path := "/reports/" + rep.ID.String()
	for who, want := range map[string]int{"": http.StatusUnauthorized, ben: http.StatusNotFound, olga: http.StatusNotFound} {
		if a := s.do(call{method: "DELETE", path: path, token: who}); a.StatusCode != want {
			t.Errorf("%d, want %d: %s", a.StatusCode, want, a.body)
		}
	}
	for range 2 { // the second one changes nothing
		a := s.do(call{method: "DELETE", path: path, token: ann})
		if a.StatusCode != http.StatusOK || a.Header.Get("ETag") != `"2"` || !strings.Contains(string(a.body), `"withdrawn_at"`) {
			t.Fatalf("%d: %s", a.StatusCode, a.body)
		}
	}
	for who, want := range map[string]int{"": http.StatusNotFound, ben: http.StatusNotFound, ann: http.StatusOK, olga: http.StatusOK} {
		for _, read := range []string{path, path + "/history", path + "/comments"} {
			if a := s.do(call{method: "GET", path: read, token: who}); a.StatusCode != want {
				t.Errorf("GET %s: %d, want %d", read, a.StatusCode, want)
			}
		}
	}
	if got := s.queue(olga, "withdrawn=true"); len(got) != 1 {
		t.Errorf("withdrawn reports: %q", got)
	}
	for _, filter := range []string{"", "hidden=true"} {
		if got := s.queue(olga, filter); len(got) != 0 {
			t.Errorf("the queue with %q has %q", filter, got)
		}
	}
	if a := s.do(call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress"}`}); a.StatusCode != http.StatusConflict {
		t.Errorf("an official begins to work on it: %d", a.StatusCode)
	}

	late := s.file(ann, "public")
	path = "/reports/" + late.ID.String()
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress"}`}, http.StatusOK)
	if a := s.do(call{method: "DELETE", path: path, token: ann}); a.StatusCode != http.StatusConflict || !strings.Contains(string(a.body), "not-pending") {
		t.Errorf("too late: %d %s", a.StatusCode, a.body)
	}
}
