package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// A bad request and the problem that must answer it.
type bad struct {
	name, method, path string
	token              string // "" is anonymous
	body               string
	header             []string // alternates names and values
	status             int
	problem            string
	pointer            string // of a fault that the answer must have, "" for none
}

// badReport is a bad way to file a report.
func badReport(name, token, body, pointer string) bad {
	return bad{name: name, method: "POST", path: "/reports", token: token, body: body, status: 400, problem: "invalid-input", pointer: pointer}
}

// Every way to be wrong has its own documented answer, and none is our fault.
func TestBadInputToReportService(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	report, rejected := file(t, ana, "Dark crossing"), file(t, ana, "Rejected")
	move(t, olga, rejected, "rejected", "Not ours")
	at, closed := "/reports/"+report.ID.String(), "/reports/"+rejected.ID.String()
	const good = `{"title":"T","description":"","category_id":2,"privacy_level":"public"`
	key := []string{"Idempotency-Key", uuid.NewString()}
	if _, err := ana.CreateReport(t.Context(), draft("Keyed"), key...); err != nil {
		t.Fatal(err)
	}
	a, b, o := ana.Token(), ben.Token(), olga.Token()
	expired := token(jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()})

	c.checkAll([]bad{
		badReport("unknown field", a, good+`,"surprise":1}`, "/surprise"),
		badReport("wrong type", a, strings.Replace(good, `"T"`, `7`, 1)+`}`, "/title"),
		badReport("missing field", a, `{"title":"T","description":"","category_id":2}`, "/privacy_level"),
		badReport("4,001 characters", a, strings.Replace(good, `"description":""`, `"description":"`+strings.Repeat("ä", 4001)+`"`, 1)+`}`, "/description"),
		badReport("latitude 91", a, good+`,"latitude":91,"longitude":0}`, "/latitude"),
		badReport("latitude alone", a, good+`,"latitude":9}`, ""),
		badReport("latitude beyond numbers", a, good+`,"latitude":1e999,"longitude":0}`, ""),
		badReport("blank title", a, strings.Replace(good, `"T"`, `"  "`, 1)+`}`, "/title"),
		badReport("NUL in the title", a, strings.Replace(good, `"T"`, `"a\u0000b"`, 1)+`}`, "/title"),
		badReport("NUL in the address", a, good+`,"address":"\u0000"}`, "/address"),
		badReport("unknown category", a, strings.Replace(good, `:2`, `:9999`, 1)+`}`, "/category_id"),
		badReport("category beyond numbers", a, strings.Replace(good, `:2`, `:99999999999999999999`, 1)+`}`, "/category_id"),
		badReport("unknown privacy level", a, strings.Replace(good, "public", "secret", 1)+`}`, "/privacy_level"),
		badReport("an array", a, `[]`, ""),
		badReport("null", a, `null`, ""),
		{"broken JSON", "POST", "/reports", a, good, nil, 400, "malformed-body", ""},
		{"two documents", "POST", "/reports", a, good + `}{}`, nil, 400, "malformed-body", ""},
		{"not UTF-8", "POST", "/reports", a, strings.Replace(good, "T", "\xff", 1) + `}`, nil, 400, "malformed-body", ""},
		{"no body", "POST", "/reports", a, "", nil, 400, "malformed-body", ""},
		{"nested without end", "POST", "/reports", a, strings.Repeat("[", 60_000), nil, 400, "malformed-body", ""},
		{"body over the limit", "POST", "/reports", a, `{"title":"` + strings.Repeat("x", 70_000) + `"}`, nil, 413, "body-too-large", ""},
		{"wrong content type", "POST", "/reports", a, good + `}`, []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type", ""},
		{"idempotency key with another body", "POST", "/reports", a, good + `}`, key, 422, "idempotency-key-reused", ""},
		{"no token", "POST", "/reports", "", good + `}`, nil, 401, "unauthenticated", ""},
		{"expired token", "POST", "/reports", expired, good + `}`, nil, 401, "invalid-token", ""},
		{"wrong role", "PATCH", at + "/status", a, `{"status":"resolved"}`, nil, 403, "forbidden", ""},
		{"stale If-Match", "PATCH", at + "/status", o, `{"status":"resolved"}`, []string{"If-Match", `"99"`}, 412, "stale-version", ""},
		{"illegal transition", "PATCH", closed + "/status", o, `{"status":"resolved","note":"n"}`, nil, 409, "illegal-transition", ""},
		{"reopening without a note", "PATCH", closed + "/status", o, `{"status":"pending"}`, nil, 400, "invalid-input", "/note"},
		{"rejecting without a note", "PATCH", at + "/status", o, `{"status":"rejected"}`, nil, 400, "invalid-input", "/note"},
		{"unknown status", "PATCH", at + "/status", o, `{"status":"lost"}`, nil, 400, "invalid-input", "/status"},
		{"self-vote", "POST", at + "/vote", a, `{"vote_type":"upvote"}`, nil, 403, "own-report", ""},
		{"vote on a closed report", "POST", closed + "/vote", b, `{"vote_type":"upvote"}`, nil, 409, "report-closed", ""},
		{"no such report", "GET", "/reports/" + uuid.NewString(), "", "", nil, 404, "not-found", ""},
		{"vote on no report", "POST", "/reports/" + uuid.NewString() + "/vote", b, `{"vote_type":"upvote"}`, nil, 404, "not-found", ""},
		{"id is none", "GET", "/reports/7/history", "", "", nil, 400, "invalid-input", "id"},
		{"limit too high", "GET", "/reports?limit=1000", "", "", nil, 400, "invalid-input", "limit"},
		{"broken cursor", "GET", "/reports?cursor=x", "", "", nil, 400, "invalid-input", "cursor"},
		{"box of three sides", "GET", "/reports?bbox=1,2,3", "", "", nil, 400, "invalid-input", "bbox"},
		{"NUL in the search", "GET", "/reports?q=a%00b", "", "", nil, 400, "invalid-input", "q"},
		{"unknown method", "PUT", "/reports", a, "{}", nil, 405, "method-not-allowed", ""},
		{"unknown path", "GET", "/reports/mine/none", a, "", nil, 404, "not-found", ""},
		{"resident at the outbox", "GET", "/admin/outbox/stats", a, "", nil, 403, "forbidden", ""},
		{"official at the outbox", "GET", "/admin/outbox/messages", o, "", nil, 403, "forbidden", ""},
	})
}

func TestBadInputToNotificationService(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	anas, report := watch(t, ana), file(t, ana, "Dark crossing")
	vote(t, ben, report, "upvote")
	anas.await(1)
	page, err := ana.Notifications(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	hers, a, b := "/notifications/"+page.Notifications[0].ID.String(), ana.Token(), ben.Token()
	cookie := []string{"Cookie", "cityconnect_session=" + a, "Sec-Fetch-Site", "cross-site"}

	c.checkAll([]bad{
		{"foreign notification", "PATCH", hers, b, `{"read":true}`, nil, 404, "not-found", ""},
		{"no such notification", "PATCH", "/notifications/" + uuid.NewString(), a, `{"read":true}`, nil, 404, "not-found", ""},
		{"id is none", "PATCH", "/notifications/7", a, `{"read":true}`, nil, 400, "invalid-input", "id"},
		{"wrong type", "PATCH", hers, a, `{"read":"yes"}`, nil, 400, "invalid-input", "/read"},
		{"unknown field", "PATCH", hers, a, `{"read":true,"seen":true}`, nil, 400, "invalid-input", "/seen"},
		{"broken JSON", "PATCH", hers, a, `{`, nil, 400, "malformed-body", ""},
		{"wrong content type", "PATCH", hers, a, `{"read":true}`, []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type", ""},
		{"body over the limit", "POST", "/notifications/read-all", a, `{"last_event_id":"` + strings.Repeat("x", 70_000) + `"}`, nil, 413, "body-too-large", ""},
		{"broken cursor in a body", "POST", "/notifications/read-all", a, `{"last_event_id":"7"}`, nil, 400, "invalid-input", "/last_event_id"},
		{"limit 0", "GET", "/notifications?limit=0", a, "", nil, 400, "invalid-input", "limit"},
		{"broken cursor", "GET", "/notifications?cursor=v1.x", a, "", nil, 400, "invalid-input", "cursor"},
		{"unread is none", "GET", "/notifications?unread=maybe", a, "", nil, 400, "invalid-input", "unread"},
		{"no token", "GET", "/notifications", "", "", nil, 401, "unauthenticated", ""},
		{"stream without a token", "GET", "/notifications/stream", "", "", nil, 401, "unauthenticated", ""},
		{"stream with rubbish", "GET", "/notifications/stream", "rubbish", "", nil, 401, "invalid-token", ""},
		{"another site uses the cookie", "POST", "/notifications/read-all", "", "", cookie, 403, "cross-site", ""},
		{"session without a token", "POST", "/session", "", "", nil, 401, "unauthenticated", ""},
		{"unknown method", "PUT", "/notifications", a, "{}", nil, 405, "method-not-allowed", ""},
		{"unknown path", "GET", "/notifications/none/at/all", a, "", nil, 404, "not-found", ""},
		{"resident at the dead letters", "GET", "/admin/dlq/stats", a, "", nil, 403, "forbidden", ""},
		{"anonymous at the dead letters", "GET", "/admin/dlq/messages", "", "", nil, 401, "unauthenticated", ""},
	})
}

// checkAll sends every request and checks its answer and its documentation.
func (c *stack) checkAll(all []bad) {
	explained := c.read("/docs/problems")
	for _, tt := range all {
		c.t.Run(tt.name, func(t *testing.T) {
			problem := c.ask(t, tt)
			if problem.Status != tt.status || problem.Name() != tt.problem {
				t.Fatalf("got %d %s (%v), want %d %s", problem.Status, problem.Name(), problem, tt.status, tt.problem)
			}
			if problem.Title == "" || problem.TraceID == "" {
				t.Errorf("the problem lacks a title or a trace: %+v", problem)
			}
			told := tt.pointer == ""
			for _, fault := range problem.Errors {
				told = told || fault.Pointer == tt.pointer
			}
			if !told {
				t.Errorf("no fault at %q in %+v", tt.pointer, problem.Errors)
			}
			if problem.Type != "/docs/problems#"+tt.problem || !strings.Contains(explained, `<h2 id="`+tt.problem+`">`) {
				t.Errorf("%s does not lead to an explanation of %s at the gateway", problem.Type, tt.problem)
			}
		})
	}
}

// read returns what the gateway shows a browser at path.
func (c *stack) read(path string) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.gateway.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: status %d, error %v", path, res.StatusCode, err)
	}
	return string(body)
}

// ask sends the request as it stands, past the client's own care.
func (c *stack) ask(t *testing.T, b bad) *client.Error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), b.method, c.gateway.URL+b.path, strings.NewReader(b.body))
	if err != nil {
		t.Fatal(err)
	}
	if b.body != "" || b.method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	for i := 0; i < len(b.header); i += 2 {
		req.Header.Set(b.header[i], b.header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	problem := &client.Error{}
	body, err := io.ReadAll(resp.Body)
	if errors.Is(err, io.ErrUnexpectedEOF) { // the tests' gateway was still sending what the service has refused
		err = nil
	}
	if err != nil || json.Unmarshal(body, problem) != nil || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d with %s (error: %v): no problem details", resp.StatusCode, body, err)
	}
	if problem.Status != resp.StatusCode {
		t.Errorf("the problem says %d, the answer %d", problem.Status, resp.StatusCode)
	}
	return problem
}
