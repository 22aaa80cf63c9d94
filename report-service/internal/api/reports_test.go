package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// The main job, from the filing to the solution.
func TestFromFilingToSolution(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob, olga := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident), token(t, "olga", auth.Official)

	filed, a := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: newReport}, http.StatusCreated)
	path := "/reports/" + filed.ID.String()
	if a.Header.Get("Location") != path || a.Header.Get("ETag") != `"1"` {
		t.Errorf("Location %q and ETag %q, want %q and \"1\"", a.Header.Get("Location"), a.Header.Get("ETag"), path)
	}
	if !filed.Mine || filed.ReporterName != "ann" || filed.CategoryName != "Street lights and signals" || *filed.Latitude != -6.9 {
		t.Errorf("filed %+v", filed)
	}

	voted, _ := ok[reportapi.VoteResult](s, call{method: "POST", path: path + "/vote", token: bob, body: `{"vote_type":"downvote"}`}, http.StatusOK)
	if voted.Score != -1 || voted.Version != 2 || voted.VoteType != reportapi.Downvote {
		t.Errorf("vote: %+v", voted)
	}
	voted, _ = ok[reportapi.VoteResult](s, call{method: "POST", path: path + "/vote", token: bob, body: `{"vote_type":"upvote"}`}, http.StatusOK)
	if voted.Score != 1 || voted.Version != 3 {
		t.Errorf("changed vote: %+v", voted)
	}
	seen, a := ok[reportapi.Report](s, call{method: "GET", path: path, token: bob}, http.StatusOK)
	if seen.Mine || seen.MyVote != reportapi.Upvote || seen.ReporterName != "ann" || a.Header.Get("ETag") != `"3"` {
		t.Errorf("bob sees %+v with ETag %s", seen, a.Header.Get("ETag"))
	}

	moved, a := ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga,
		body: `{"status":"in_progress"}`, headers: map[string]string{"If-Match": `"3"`}}, http.StatusOK)
	if moved.Status != reportapi.StatusInProgress || a.Header.Get("ETag") != `"4"` || a.Header.Get("Content-Location") != path {
		t.Errorf("moved to %+v with headers %v", moved, a.Header)
	}
	voted, _ = ok[reportapi.VoteResult](s, call{method: "DELETE", path: path + "/vote", token: bob}, http.StatusOK)
	if voted.Score != 0 || voted.Version != 4 || voted.VoteType != "" {
		t.Errorf("withdrawn vote: %+v", voted)
	}
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"rejected","note":"twice"}`}, http.StatusOK)

	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	got := ""
	for _, e := range history.History {
		got += fmt.Sprintf("%s>%s@%d:%s ", e.FromStatus, e.ToStatus, e.Version, e.Note)
	}
	if want := ">pending@1: pending>in_progress@4: in_progress>rejected@5:twice "; got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := call{method: "POST", path: "/reports", token: token(t, "ann", auth.Resident), body: newReport,
		headers: map[string]string{"Idempotency-Key": "0198c0de"}}
	first := s.do(c)
	c.body = strings.ReplaceAll(newReport, ":", " : ") // the same, written otherwise
	c.body = strings.ReplaceAll(c.body, "\n", "")
	again := s.do(c)
	if again.StatusCode != http.StatusCreated || string(again.body) != string(first.body) ||
		again.Header.Get("Location") != first.Header.Get("Location") || again.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("repetition: %d %v %s; want %d %v %s", again.StatusCode, again.Header, again.body, first.StatusCode, first.Header, first.body)
	}
	c.body = strings.Replace(newReport, "Dark", "Bright", 1)
	s.wantProblem(refusal{call: c, status: http.StatusUnprocessableEntity, kind: "idempotency-key-reused"})

	c.token = token(t, "bob", auth.Resident) // who has separate keys
	if a := s.do(c); a.StatusCode != http.StatusCreated || a.Header.Get("Location") == first.Header.Get("Location") {
		t.Errorf("another user with the same key: %d %s", a.StatusCode, a.body)
	}
}

// A key in quotes, as the draft of its header has it, is the same key.
func TestQuotedIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	ids := make(map[string]bool)
	for _, key := range []string{`a-key`, `"a-key"`} {
		rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: newReport, headers: map[string]string{"Idempotency-Key": key}}, http.StatusCreated)
		ids[rep.ID.String()] = true
	}
	if len(ids) != 1 {
		t.Errorf("%d reports, want 1", len(ids))
	}
	for _, key := range []string{`""`, `"a`, `"`} {
		if a := s.do(call{method: "POST", path: "/reports", token: ann, body: newReport, headers: map[string]string{"Idempotency-Key": key}}); a.StatusCode != http.StatusBadRequest {
			t.Errorf("key %s: status %d, want 400", key, a.StatusCode)
		}
	}
}

// A search finds what was written, however either was typed.
func TestSearchFolds(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	for i, spellings := range [][]string{
		{"Café", "cafe\u0301", "CAFE\u0301", "caf\u00e9", "ｃａｆé"},
		{"Straße", "STRASSE", "strasse", "straẞe", "stra\u00adße"},
		{"Nguyễn Huệ", "NGUYỄN HUỆ", "Nguye\u0302\u0303n Hue\u0323\u0302", "nguyê\u0303n Hue\u0302\u0323"},
		{"Đường", "ĐƯỜNG", "đu\u031bo\u031b\u0300ng"},
		{"ﬁre №5", "fire no5", "FIRE No5"},
		{"ΟΔΟΣ", "οδος", "οδοσ"},
		{"한국어", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"},
		{"Zürich\u200b", "zu\u0308rich", "ZÜRICH"},
	} {
		for _, written := range spellings {
			mark := fmt.Sprintf("m%d", i)
			id := s.fileAbout(ann, 2, written+" "+mark)
			for _, sought := range spellings {
				page, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports?limit=100&q=" + url.QueryEscape(sought+" "+mark), token: ann}, http.StatusOK)
				if !slices.ContainsFunc(page.Reports, func(r reportapi.Report) bool { return r.ID == id }) {
					t.Errorf("%+q does not find %+q", sought, written)
				}
			}
		}
	}
}

func TestPagesByLink(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	for range 7 {
		s.file(ann, "anonymous")
	}
	s.file(token(t, "bob", auth.Resident), "public")
	for path, want := range map[string]int{"/reports?limit=3": 8, "/reports?limit=4&order=oldest": 8, "/reports/mine?limit=2&status=pending": 7, "/reports?q=dark%20asia&category=2&limit=7": 8, "/reports?q=!": 0} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			one := &testServer{t: t, url: s.url}
			seen := make(map[string]bool)
			for next := path; next != ""; {
				page, a := ok[reportapi.ReportPage](one, call{method: "GET", path: next, token: ann}, http.StatusOK)
				for _, r := range page.Reports {
					seen[r.ID.String()] = true
				}
				link := a.Header.Get("Link")
				if (link == "") != (page.NextCursor == "") {
					t.Fatalf("Link %q beside next_cursor %q", link, page.NextCursor)
				}
				next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
			}
			if len(seen) != want {
				t.Errorf("%d reports, want %d", len(seen), want)
			}
		})
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for path, want := range map[string]string{
		"/livez": `"up"`, "/readyz": `"database":"up"`, "/health": `"database":"up"`,
		"/openapi.json": `"3.1.0"`,
	} {
		if a := s.do(call{method: "GET", path: path}); a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: status %d without %s: %.200s", path, a.StatusCode, want, a.body)
		}
	}
	if a := s.do(call{method: "PUT", path: "/reports"}); strings.Join(a.Header.Values("Allow"), " ") != "GET HEAD POST" {
		t.Errorf("Allow: %q, want GET, HEAD and POST", a.Header.Values("Allow"))
	}
	if a := s.do(call{method: "HEAD", path: "/reports"}); a.StatusCode != http.StatusOK || len(a.body) != 0 {
		t.Errorf("HEAD: status %d and %d bytes, want 200 and none", a.StatusCode, len(a.body))
	}
	s.pool.Close()
	s.wantProblem(refusal{call: call{method: "GET", path: "/reports"}, status: http.StatusInternalServerError, kind: "internal"})
	eventually.True(t, "/readyz says so, once the answer of before is a second old", func() bool {
		return s.do(call{method: "GET", path: "/readyz"}).StatusCode == http.StatusServiceUnavailable
	})
}
