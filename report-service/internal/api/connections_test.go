package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// connect makes a connection of the department, and returns its key.
func (s *testServer) connect(name string, department int, private bool) string {
	s.t.Helper()
	made, _ := ok[reportapi.MadeConnection](s, call{method: "POST", path: "/admin/reports/connections", token: token(s.t, "oskar", auth.Operator),
		body: fmt.Sprintf(`{"name":%q,"department_id":%d,"private":%t}`, name, department, private)}, http.StatusCreated)
	if !strings.HasPrefix(made.Key, "ccx_") || len(made.Key) != len("ccx_")+26 {
		s.t.Fatalf("key %q, want ccx_ and 26 letters of 5 bits", made.Key)
	}
	return made.Key
}

// withConnection returns a city with the departments of TestAuthorisation, and a report of
// theirs.
func withConnection(t *testing.T, private bool, options ...func(*parts)) (s *testServer, key string, rep reportapi.Report) {
	t.Helper()
	s = newServer(t, options...)
	s.setDepartments()
	return s, s.connect("Work orders", 7, private), s.file(token(t, "ann", auth.Resident), "public")
}

// An act of a connection is done once for each key; everybody reads whose system did it, and
// officials which.
func TestConnectionWorks(t *testing.T) {
	t.Parallel()
	_, set := withFiles(t)
	s, key, rep := withConnection(t, false, set)
	path, olga := "/reports/"+rep.ID.String(), token(t, "olga", auth.Official)
	ask := func(method, below, body string, headers map[string]string) answer {
		t.Helper()
		a := s.do(call{method: method, path: path + below, token: key, body: body, headers: headers})
		if a.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", method, below, a.StatusCode, a.body)
		}
		return a
	}
	once := func(k string) map[string]string { return map[string]string{"Idempotency-Key": k} }
	ask("PUT", "/external-ref", `{"number":" WO-2026/12 ","url":"https://orders.example/12","state":"Crew booked"}`, once("1"))
	ask("PATCH", "/status", `{"status":"in_progress"}`, once("2"))
	ask("PATCH", "/status", `{"status":"pending"}`, once("3"))
	ask("PATCH", "/status", `{"status":"in_progress"}`, once("2")) // late
	ask("POST", "/replies", `{"text":"The crew comes on Monday."}`, once("2"))
	ask("POST", "/replies", `{"text":"The crew comes on Monday."}`, once("2"))
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	upload := "/photos/" + uuid.NewString()
	for range 2 {
		ask("PUT", upload+"?purpose=after", photo.String(), map[string]string{"Content-Type": "image/jpeg"})
	}
	if a := s.do(call{method: "PUT", path: path + "/photos/" + uuid.NewString(), token: key, body: photo.String(), headers: map[string]string{"Content-Type": "image/jpeg"}}); a.StatusCode != http.StatusForbidden {
		t.Errorf("a photo that is not of the finished work: %d %s, want 403", a.StatusCode, a.body)
	}
	ask("PUT", "/external-ref", `{"number":"WO-2026/12","state":"Done"}`, nil)
	ask("PUT", "/external-ref", `{"number":" WO-2026/12 ","url":"https://orders.example/12","state":"Crew booked"}`, once("1")) // late

	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	var made []string
	for _, h := range history.History[1:] {
		made = append(made, string(h.ToStatus)+" "+h.Note+" by "+h.DepartmentName)
	}
	if got := strings.Join(made, ", "); got != "in_progress  by Lights, pending  by Lights, pending The crew comes on Monday. by Lights" {
		t.Errorf("history %s", got)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	var acts []string
	for _, a := range work.Acts {
		acts = append(acts, string(a.Action)+" "+a.Text+" by "+a.By.Name)
	}
	if got := strings.Join(acts, ", "); got != "external_ref WO-2026/12 Crew booked by Work orders, move  by Work orders, move  by Work orders, "+
		"reply The crew comes on Monday. by Work orders, add_photo  by Work orders, external_ref WO-2026/12 Done by Work orders" {
		t.Errorf("acts %s", got)
	}
	if e := work.Report.ExternalRef; e == nil || e.Number != "WO-2026/12" || e.URL != "" || e.State != "Done" || e.System != "Work orders" {
		t.Errorf("external_ref %+v", e)
	}
	if a := s.do(call{method: "GET", path: "/reports/queue?q=wo-2026-12", token: olga}); !bytes.Contains(a.body, []byte(rep.ID.String())) {
		t.Errorf("the queue does not find the number: %s", a.body)
	}
	if a := s.do(call{method: "GET", path: "/reports/export", token: olga}); !bytes.Contains(a.body, []byte(`"WO-2026/12","Done"`)) {
		t.Errorf("the export has %s", a.body)
	}
	for _, everybody := range []string{path, path + "/history", "/reports", "/reports/mine/data", "/open-data/reports.csv", "/open311/v2/requests.xml"} {
		a := s.do(call{method: "GET", path: everybody, token: token(t, "ann", auth.Resident)})
		if bytes.Contains(a.body, []byte("WO-")) || bytes.Contains(a.body, []byte("Work orders")) {
			t.Errorf("residents read of the other system at %s: %s", everybody, a.body)
		}
	}
}

// A connection lists its reports page by page, and those that have no number yet.
func TestConnectionLists(t *testing.T) {
	t.Parallel()
	s, key, first := withConnection(t, false)
	ids := []uuid.UUID{first.ID}
	for range 2 {
		ids = append(ids, s.file(token(t, "bob", auth.Resident), "anonymous").ID)
	}
	s.do(call{method: "PUT", path: "/reports/" + ids[1].String() + "/external-ref", token: key, body: `{"number":"7"}`})
	s.do(call{method: "PATCH", path: "/reports/" + ids[2].String() + "/status", token: key, body: `{"status":"in_progress"}`})
	list := func(query string) (found []uuid.UUID, next string) {
		t.Helper()
		page, _ := ok[reportapi.ConnectedReports](s, call{method: "GET", path: "/reports/connection" + query, token: key}, http.StatusOK)
		for _, r := range page.Reports {
			found = append(found, r.ID)
		}
		return found, page.NextCursor
	}
	for query, want := range map[string][]uuid.UUID{
		"": ids, "?without_number=true": {ids[0], ids[2]}, "?status=in_progress": {ids[2]}, "?updated_from=2999-01-01T00:00:00Z": nil,
	} {
		if got, _ := list(query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s lists %s, want %s", query, got, want)
		}
	}
	moment := time.Now().UTC().Format(time.RFC3339Nano)
	ok[reportapi.Work](s, call{method: "PUT", path: "/reports/" + ids[1].String() + "/assignment", token: token(t, "olga", auth.Official), body: `{"department_id":7}`}, http.StatusOK)
	if got, _ := list("?updated_from=" + moment); fmt.Sprint(got) != fmt.Sprint(ids[1:2]) {
		t.Errorf("a report that became the department's is not among those that changed: %s", got)
	}
	page, next := list("?limit=2")
	rest, end := list("?limit=2&cursor=" + next)
	if fmt.Sprint(append(page, rest...)) != fmt.Sprint(ids) || end != "" {
		t.Errorf("pages %s and %s", page, rest)
	}
}

// A connection reads nothing that depends on who filed a report, and whether others read the
// name: two reports that differ in that alone are equal to it.
func TestConnectionKnowsNoReporter(t *testing.T) {
	t.Parallel()
	s, key, _ := withConnection(t, false)
	named, nameless := s.file(token(t, "ann", auth.Resident), "public").ID, s.file(token(t, "kanari", auth.Resident), "anonymous").ID
	for _, c := range []call{
		{method: "GET", path: "/connection"}, {method: "GET", path: "/history"}, {method: "PATCH", path: "/status", body: `{"status":"in_progress"}`},
		{method: "PUT", path: "/external-ref", body: `{"number":"1"}`}, {method: "GET", path: "/connection"},
	} {
		var answers []string
		for _, id := range []uuid.UUID{named, nameless} {
			a := s.do(call{method: c.method, path: "/reports/" + id.String() + c.path, token: key, body: c.body})
			var fields any
			if len(a.body) > 0 {
				if err := json.Unmarshal(a.body, &fields); err != nil {
					t.Fatal(err)
				}
			}
			answers = append(answers, fmt.Sprint(a.StatusCode, withoutChance(fields)))
		}
		if answers[0] != answers[1] || strings.Contains(answers[0], "ann") {
			t.Errorf("%s %s: %s, and of an anonymous one %s", c.method, c.path, answers[0], answers[1])
		}
	}
}

// withoutChance leaves out what differs between any two reports.
func withoutChance(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = withoutChance(v[name])
			if name == "id" || name == "number" || strings.HasSuffix(name, "_at") {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutChance(v[i])
		}
	}
	return v
}

// A key that was revoked, or whose department is gone, opens nothing, and what was done with
// it stays.
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	other := s.connect("Other system", 7, false)
	oskar := token(t, "oskar", auth.Operator)
	s.do(call{method: "PUT", path: "/reports/" + rep.ID.String() + "/external-ref", token: key, body: `{"number":"1"}`})
	list := func() []reportapi.Connection {
		found, _ := ok[reportapi.Connections](s, call{method: "GET", path: "/admin/reports/connections", token: oskar}, http.StatusOK)
		return found.Connections
	}
	opens := func(key string) int {
		return s.do(call{method: "GET", path: "/reports/connection", token: key}).StatusCode
	}
	for range 2 { // again changes nothing
		if a := s.do(call{method: "DELETE", path: "/admin/reports/connections/" + list()[1].ID.String(), token: oskar}); a.StatusCode != http.StatusNoContent {
			t.Fatalf("revoke: %d %s", a.StatusCode, a.body)
		}
	}
	if opens(key) != http.StatusUnauthorized || opens(other) != http.StatusOK || opens("ccx_") != http.StatusUnauthorized {
		t.Errorf("the revoked key %d, the other %d, none %d", opens(key), opens(other), opens("ccx_"))
	}
	if a := s.do(call{method: "PUT", path: "/reports/departments", token: oskar, body: `{"departments":[]}`}); a.StatusCode != http.StatusOK {
		t.Fatalf("remove departments: %d %s", a.StatusCode, a.body)
	}
	for _, c := range list() {
		if c.RevokedAt.IsZero() || c.DepartmentName != "" || opens(other) != http.StatusUnauthorized {
			t.Errorf("without its department: %+v", c)
		}
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + rep.ID.String() + "/work", token: token(t, "olga", auth.Official)}, http.StatusOK)
	if work.Report.ExternalRef == nil || work.Report.ExternalRef.System != "Work orders" {
		t.Errorf("external_ref %+v", work.Report.ExternalRef)
	}
	for body, pointer := range map[string]string{
		`{"name":" ","department_id":7}`: "/name", `{"name":"x","department_id":99}`: "/department_id",
	} {
		if a := s.do(call{method: "POST", path: "/admin/reports/connections", token: oskar, body: body}); a.StatusCode != http.StatusBadRequest || !bytes.Contains(a.body, []byte(pointer)) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	var stored string
	if err := s.pool.QueryRow(t.Context(), `select string_agg(to_jsonb(k)::text, '') from connections k`).Scan(&stored); err != nil || strings.Contains(stored, key[4:]) {
		t.Errorf("the database has a key: %s, %v", stored, err)
	}
}

// A number has an address that a browser may open, or none.
func TestExternalRefIsChecked(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	for body, pointer := range map[string]string{
		`{"number":"  "}`: "/number", `{"number":"1","url":"javascript:alert(1)"}`: "/url", `{"number":"1","url":"//x"}`: "/url",
		`{"number":"1","url":"https://user:secret@x/"}`: "/url", `{"number":"` + strings.Repeat("1", 61) + `"}`: "/number",
		`{"number":"1","state":"` + strings.Repeat("x", 61) + `"}`: "/state",
	} {
		a := s.do(call{method: "PUT", path: "/reports/" + rep.ID.String() + "/external-ref", token: key, body: body})
		if a.StatusCode != http.StatusBadRequest || !bytes.Contains(a.body, []byte(`"`+pointer+`"`)) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
}
