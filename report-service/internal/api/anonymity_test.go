package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// An anonymous reporter, whose id, name and e-mail are found wherever they
// leak, files reports and does everything a resident can do to them. They must
// stand in two tables, and nowhere in what others are answered, in the outbox,
// the log or the metrics.
func TestAnonymousReporterStaysUnknown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	canary := sign(t, jwt.MapClaims{"sub": "canary-id-5e1f", "name": "Canary Name-77aa", "email": "canary@mail-c0de.example",
		"role": "resident", "exp": time.Now().Add(time.Hour).Unix()})
	tracked := &tracker{s: s, secrets: []string{"canary-id-5e1f", "Canary Name-77aa", "canary@mail-c0de.example", canary}}

	body := strings.Replace(newReport, "public", "anonymous", 1)
	filed, a := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: canary, body: body,
		headers: map[string]string{"Idempotency-Key": "canary-key"}}, http.StatusCreated)
	if !filed.Mine || filed.ReporterName != "" {
		t.Errorf("the reporter is answered %s; want it to be mine, without a name", a.body)
	}
	path := "/reports/" + filed.ID.String()
	mine, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports/mine", token: canary}, http.StatusOK)
	if len(mine.Reports) != 1 || !mine.Reports[0].Mine {
		t.Errorf("/reports/mine shows %+v; want the anonymous report, too", mine)
	}
	said, a := ok[reportapi.Comment](s, call{method: "POST", path: path + "/comments", token: canary, body: anonymous,
		headers: map[string]string{"Idempotency-Key": "canary-key"}}, http.StatusCreated)
	if !said.Mine || said.AuthorName != "" {
		t.Errorf("the author of a comment is answered %s; want it to be mine, without a name", a.body)
	}
	s.do(call{method: "POST", path: path + "/vote", token: canary, body: `{"vote_type":"upvote"}`}) // refused
	ok[reportapi.Report](s, call{method: "PATCH", path: path, token: canary, body: `{"title":"Lamp is dark","address":"Over here"}`}, http.StatusOK)
	withdrawn := "/reports/" + s.file(canary, "anonymous").ID.String()
	ok[reportapi.Report](s, call{method: "DELETE", path: withdrawn, token: canary}, http.StatusOK)
	s.do(call{method: "POST", path: "/reports", token: canary, body: `{"name":"broken"}`}) // refused

	for _, reader := range []string{"", token(t, "bob", auth.Resident), token(t, "olga", auth.Official), token(t, "otto", auth.Operator)} {
		for _, c := range append(everything(path), everything(withdrawn)...) {
			c.token = reader
			a := s.do(c)
			tracked.look(c.method+" "+c.path, a.body)
			for name, values := range a.Header {
				tracked.look(name, []byte(strings.Join(values, " ")))
			}
		}
	}
	tracked.look("the log", []byte(s.logs.String()))
	tracked.lookIntoTables("reporters", "commenters")
}

// everything is a request to each operation that deals with reports.
func everything(path string) []call {
	return []call{
		{method: "GET", path: path},
		{method: "GET", path: "/reports"},
		{method: "GET", path: "/reports?q=canary"},
		{method: "GET", path: "/reports/mine"},
		{method: "GET", path: path + "/history"},
		{method: "GET", path: path + "/comments"},
		{method: "POST", path: path + "/comments", body: anonymous},
		{method: "POST", path: path + "/vote", body: `{"vote_type":"upvote"}`},
		{method: "DELETE", path: path + "/vote"},
		{method: "PATCH", path: path + "/status", body: `{"status":"in_progress"}`},
		{method: "PATCH", path: path + "/status", body: `{"status":"resolved"}`, headers: map[string]string{"If-Match": `"1"`}},
		{method: "PATCH", path: path, body: `{"address":"Over there","reason":"It is there"}`},
		{method: "PATCH", path: path, body: `{"title":"Mine"}`},
		{method: "GET", path: "/reports?figures=true&id=" + strings.TrimPrefix(path, "/reports/")},
		{method: "PUT", path: path + "/privacy", body: `{"privacy_level":"anonymous"}`},
		{method: "DELETE", path: path},
		{method: "GET", path: "/reports/queue?withdrawn=true"},
		{method: "PUT", path: path + "/verdict", body: `{"fixed":false,"text":"No"}`},
		{method: "POST", path: path + "/verdict/decision", body: `{"note":"It is"}`},
		{method: "GET", path: "/reports/queue?disputed=true"},
		{method: "GET", path: "/admin/outbox/stats"},
		{method: "GET", path: "/admin/outbox/messages?status=pending"},
		{method: "GET", path: "/admin/outbox/audit"},
		{method: "GET", path: "/admin/reports/reconciliation/messages"},
		{method: "GET", path: "/categories"},
		{method: "GET", path: "/health"},
	}
}

// A tracker looks for secrets where they must not be.
type tracker struct {
	s       *testServer
	secrets []string
}

func (k *tracker) look(where string, content []byte) {
	k.s.t.Helper()
	for _, secret := range k.secrets {
		if bytes.Contains(content, []byte(secret)) || bytes.Contains(content, fmt.Appendf(nil, "%x", secret)) { // as bytea is shown
			k.s.t.Errorf("%s tells %q: %s", where, secret, content)
		}
	}
}

// lookIntoTables looks into every row of the database but of private.
func (k *tracker) lookIntoTables(private ...string) {
	k.s.t.Helper()
	for _, table := range k.column(`select table_name::text from information_schema.tables where table_schema = 'public'`) {
		rows := strings.Join(k.column(`select t::text from `+table+` t`), "\n")
		if slices.Contains(private, table) {
			if !strings.Contains(rows, k.secrets[0]) {
				k.s.t.Errorf("%s does not know the reporter; is this test looking at all?", table)
			}
			continue
		}
		k.look(table, []byte(rows))
	}
}

func (k *tracker) column(sql string) []string {
	k.s.t.Helper()
	rows, err := k.s.pool.Query(k.s.t.Context(), sql)
	if err != nil {
		k.s.t.Fatal(err)
	}
	defer rows.Close()
	var values []string
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			k.s.t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		k.s.t.Fatal(err)
	}
	return values
}
