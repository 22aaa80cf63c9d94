package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/service"
)

// A refusal is a request and the problem that it must be answered with.
type refusal struct {
	name     string
	call     call
	status   int
	kind     string
	pointers []string // of all faults, in any order
}

// with returns newReport with a member set to a JSON value, or without it if
// that is empty.
func with(member, value string) string {
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(newReport), &body); err != nil {
		panic(err)
	}
	if delete(body, member); value != "" {
		body[member] = json.RawMessage(value)
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func text(n int) string { return `"` + strings.Repeat("ä", n) + `"` }

// wantProblem sends c and wants the problem, in the form of RFC 9457.
func (s *testServer) wantProblem(r refusal) {
	s.t.Helper()
	a := s.do(r.call)
	if a.StatusCode != r.status || a.Header.Get("Content-Type") != "application/problem+json" {
		s.t.Fatalf("status %d with %s, want %d with a problem: %s", a.StatusCode, a.Header.Get("Content-Type"), r.status, a.body)
	}
	var p service.Problem
	if err := json.Unmarshal(a.body, &p); err != nil {
		s.t.Fatal(err)
	}
	if !strings.HasSuffix(p.Type, "#"+r.kind) || p.Status != r.status || p.Title == "" || len(p.TraceID) != 32 {
		s.t.Errorf("problem is %+v, want %s", p, r.kind)
	}
	var pointers []string
	for _, fault := range p.Errors {
		pointers = append(pointers, fault.Pointer)
		if fault.Detail == "" {
			s.t.Errorf("%s: no detail", fault.Pointer)
		}
	}
	slices.Sort(pointers)
	slices.Sort(r.pointers)
	if !slices.Equal(pointers, r.pointers) {
		s.t.Errorf("faults at %q, want %q: %s", pointers, r.pointers, a.body)
	}
}

func TestBadReports(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	post := func(body string) call { return call{method: "POST", path: "/reports", token: ann, body: body} }
	invalid := func(name, body string, pointers ...string) refusal {
		return refusal{name, post(body), http.StatusBadRequest, "invalid-input", pointers}
	}
	malformed := func(name, body string) refusal {
		return refusal{name, post(body), http.StatusBadRequest, "malformed-body", nil}
	}
	typed := func(contentType string) refusal {
		c := post(newReport)
		c.headers = map[string]string{"Content-Type": contentType}
		return refusal{"content type " + contentType, c, http.StatusUnsupportedMediaType, "unsupported-media-type", nil}
	}
	for _, r := range []refusal{
		invalid("unknown field", with("extra", "1"), "/extra"),
		invalid("unknown field with a slash", with("a/b~c", "1"), "/a~1b~0c"),
		invalid("same field in capitals", with("Title", `"x"`), "/Title"),
		invalid("text for a number", with("category_id", `"2"`), "/category_id"),
		invalid("number for a text", with("title", "5"), "/title"),
		invalid("null", with("title", "null"), "/title"),
		invalid("fraction for an integer", with("category_id", "2.5"), "/category_id"),
		invalid("integer written as a fraction", with("category_id", "2.0"), "/category_id"),
		invalid("integer beyond 32 bits", with("category_id", "2147483648"), "/category_id"),
		invalid("integer beyond all", with("category_id", "1e400"), "/category_id"),
		invalid("unknown category", with("category_id", "4711"), "/category_id"),
		invalid("title missing", with("title", ""), "/title"),
		invalid("title of 201 characters", with("title", text(201)), "/title"),
		invalid("blank title", with("title", `" \n "`), "/title"),
		invalid("description of 4,001 characters", with("description", text(4001)), "/description"),
		invalid("latitude 91", with("latitude", "91"), "/latitude"),
		invalid("longitude -180.5", with("longitude", "-180.5"), "/longitude"),
		invalid("latitude alone", with("longitude", ""), "/longitude"),
		invalid("longitude alone", with("latitude", ""), "/latitude"),
		invalid("unknown privacy level", with("privacy_level", `"secret"`), "/privacy_level"),
		invalid("NUL character", with("title", `"a\u0000b"`), "/title"),
		invalid("no object", `[]`, ""),
		invalid("only null", `null`, ""),
		invalid("everything at once", `{"title":"","description":"\u0000","latitude":91,"extra":1}`,
			"/title", "/description", "/category_id", "/privacy_level", "/latitude", "/longitude", "/extra"),
		malformed("broken JSON", `{"title":`),
		malformed("more than one value", newReport+newReport),
		malformed("no UTF-8", strings.Replace(newReport, "Dark", "D\xffrk", 1)),
		malformed("white space", "  "),
		{"body over the limit", post(with("description", text(33_000))), http.StatusRequestEntityTooLarge, "body-too-large", nil},
		typed("text/plain"), typed("application/json; charset=latin1"), typed("application/x-www-form-urlencoded"), typed("nonsense/"),
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			(&testServer{t: t, url: s.url}).wantProblem(r)
		})
	}
}

// Values at the limits are accepted.
func TestReportsAtTheLimits(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	for _, body := range []string{
		with("title", text(200)), with("description", text(4000)), with("description", `""`),
		with("description", `"`+strings.Repeat(`\ud83d\ude00`, 4000)+`"`), // every character an escaped pair
		with("latitude", "-90"), with("longitude", "180"), with("address", ""),
		`{"title":"x","description":"","category_id":1,"privacy_level":"public"}`,
	} {
		a := s.do(call{method: "POST", path: "/reports", token: ann, body: body,
			headers: map[string]string{"Content-Type": "application/json; charset=UTF-8"}})
		if a.StatusCode != http.StatusCreated {
			t.Errorf("%.80s…: status %d: %s", body, a.StatusCode, a.body)
		}
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for query, pointers := range map[string][]string{
		"limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"}, "limit=5.0": {"limit"}, "limit=1e1": {"limit"},
		"limit&limit=2": {"limit"}, "limit=01": {"limit"}, "order=newest&order=oldest": {"order"}, "statuss=pending": {"statuss"}, "status=&status=pending": {"status"},
		"status=open": {"status"}, "category=x": {"category"}, "category=0": {"category"}, "category=1,2": {"category"}, "category=4294967297": {"category"},
		"order=up": {"order"}, "bbox=1,2,3": {"bbox"}, "bbox=1,9,3,4": {"bbox"}, "bbox=": {"bbox"},
		"cursor=AAAA": {"cursor"}, "q=": {"q"}, "q=" + strings.Repeat("x", 201): {"q"},
		"q=%00": {"q"}, "q=%ff": {"q"}, "cursor=%00": {"cursor"}, "q=%zz": {"query"},
		"limit=0&bbox=x&cursor=x&order=x&status=x": {"limit", "bbox", "cursor", "order", "status"},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			(&testServer{t: t, url: s.url}).wantProblem(refusal{
				call: call{method: "GET", path: "/reports?" + query}, status: http.StatusBadRequest, kind: "invalid-input", pointers: pointers})
		})
	}
}

// A cursor is of the list that it came with.
func TestCursorStaysInItsList(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	s.file(ann, "public")
	s.file(ann, "public")
	first, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports?limit=1&status=pending&status=resolved"}, http.StatusOK)
	if first.NextCursor == "" {
		t.Fatal("the first of two pages has no next_cursor")
	}
	for path, want := range map[string]int{
		"/reports?status=resolved&status=pending&limit=2":             http.StatusOK,
		"/reports?status=pending&status=resolved&order=newest":        http.StatusOK,
		"/reports?status=pending&status=resolved&order=oldest":        http.StatusBadRequest,
		"/reports?status=pending":                                     http.StatusBadRequest,
		"/reports?status=pending&status=resolved&category=2":          http.StatusBadRequest,
		"/reports?status=pending&status=resolved&bbox=100,-10,110,10": http.StatusBadRequest,
		"/reports?status=pending&status=resolved&q=lamp":              http.StatusBadRequest,
		"/reports/mine?status=pending&status=resolved":                http.StatusBadRequest,
	} {
		if a := s.do(call{method: "GET", path: path + "&cursor=" + first.NextCursor, token: ann}); a.StatusCode != want {
			t.Errorf("%s: status %d, want %d: %s", path, a.StatusCode, want, a.body)
		}
	}
}

// The rest of the ways to be refused, each by its own problem.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob, olga := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident), token(t, "olga", auth.Official)
	expired := sign(t, jwt.MapClaims{"sub": "ann", "role": "resident", "exp": time.Now().Add(-time.Hour).Unix()})
	id := s.file(ann, "public").ID.String()
	closed := s.file(ann, "public").ID.String()
	move := func(token, id, body, ifMatch string) call {
		c := call{method: "PATCH", path: "/reports/" + id + "/status", token: token, body: body}
		if ifMatch != "" {
			c.headers = map[string]string{"If-Match": ifMatch}
		}
		return c
	}
	vote := func(token, id string) call {
		return call{method: "POST", path: "/reports/" + id + "/vote", token: token, body: `{"vote_type":"upvote"}`}
	}
	voteAt := func(method, ifMatch string) call {
		c := call{method: method, path: "/reports/" + id + "/vote", token: bob, headers: map[string]string{"If-Match": ifMatch}}
		if method == "POST" {
			c.body = `{"vote_type":"upvote"}`
		}
		return c
	}
	post := func(token string) call { return call{method: "POST", path: "/reports", token: token, body: newReport} }
	keyed := post(ann)
	keyed.headers = map[string]string{"Idempotency-Key": "with space"}
	s.do(move(olga, closed, `{"status":"resolved"}`, ""))
	nowhere := uuid.NewString()

	for _, r := range []refusal{
		{"no token", post(""), 401, "unauthenticated", nil},
		{"expired token", post(expired), 401, "invalid-token", nil},
		{"expired token where none is needed", call{method: "GET", path: "/reports", token: expired}, 401, "invalid-token", nil},
		{"foreign token", post(ann + "x"), 401, "invalid-token", nil},
		{"mine without a token", call{method: "GET", path: "/reports/mine"}, 401, "unauthenticated", nil},
		{"wrong role", move(ann, id, `{"status":"resolved"}`, ""), 403, "forbidden", nil},
		{"wrong role for the outbox", call{method: "GET", path: "/admin/outbox/stats", token: olga}, 403, "forbidden", nil},
		{"own report", vote(ann, id), 403, "own-report", nil},
		{"own report, withdrawn", call{method: "DELETE", path: "/reports/" + id + "/vote", token: ann}, 403, "own-report", nil},
		{"no such report", call{method: "GET", path: "/reports/" + nowhere}, 404, "not-found", nil},
		{"history of none", call{method: "GET", path: "/reports/" + nowhere + "/history"}, 404, "not-found", nil},
		{"vote on none", vote(bob, nowhere), 404, "not-found", nil},
		{"move of none", move(olga, nowhere, `{"status":"resolved"}`, ""), 404, "not-found", nil},
		{"no UUID", call{method: "GET", path: "/reports/42"}, 400, "invalid-input", []string{"id"}},
		{"no such path", call{method: "GET", path: "/report"}, 404, "not-found", nil},
		{"no such method", call{method: "PUT", path: "/reports"}, 405, "method-not-allowed", nil},
		{"stale version", move(olga, id, `{"status":"resolved"}`, `"9"`), 412, "stale-version", nil},
		{"nonsense in If-Match", move(olga, id, `{"status":"resolved"}`, `9`), 400, "invalid-input", []string{"If-Match"}},
		{"stale version of a vote", voteAt("POST", `"9"`), 412, "stale-version", nil},
		{"stale version of a withdrawal", voteAt("DELETE", `"9"`), 412, "stale-version", nil},
		{"nonsense in If-Match of a vote", voteAt("POST", `9`), 400, "invalid-input", []string{"If-Match"}},
		{"illegal transition", move(olga, closed, `{"status":"pending","note":"x"}`, ""), 409, "illegal-transition", nil},
		{"no note", move(olga, id, `{"status":"rejected"}`, ""), 400, "invalid-input", []string{"/note"}},
		{"unknown status", move(olga, id, `{"status":"open"}`, ""), 400, "invalid-input", []string{"/status"}},
		{"closed report", vote(bob, closed), 409, "report-closed", nil},
		{"unknown vote", call{method: "POST", path: "/reports/" + id + "/vote", token: bob, body: `{"vote_type":"up"}`}, 400, "invalid-input", []string{"/vote_type"}},
		{"key with a space", keyed, 400, "invalid-input", []string{"Idempotency-Key"}},
		{"token for nobody", call{method: "POST", path: "/dev/token", body: `{"name":"x","role":"king"}`}, 400, "invalid-input", []string{"/role"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			(&testServer{t: t, url: s.url}).wantProblem(r)
		})
	}
}

// Whatever arrives, the answer is not a 5xx, and it keeps to the document.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{newReport, `{}`, `{"title":"\ud800"}`, with("category_id", "1e2"), with("latitude", "-0"),
		with("title", `"\u2028\ufeff"`), with("extra", `[[[[{"a":"\u0000"}]]]]`)} {
		f.Add(seed)
	}
	s := newServer(f)
	ann := token(f, "ann", auth.Resident)
	f.Fuzz(func(t *testing.T, body string) {
		one := &testServer{t: t, url: s.url}
		a := one.do(call{method: "POST", path: "/reports", token: ann, body: body})
		if a.StatusCode >= 500 {
			t.Errorf("status %d for %q: %s", a.StatusCode, body, a.body)
		}
	})
}
