package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

const keys = "/admin/reports/open311/keys"

// makeKey makes a key of an application as an operator.
func (s *testServer) makeKey(name string) reportapi.MadeOpen311Key {
	s.t.Helper()
	made, _ := ok[reportapi.MadeOpen311Key](s, call{method: "POST", path: keys, token: token(s.t, "olu", auth.Operator), body: `{"name":"` + name + `"}`}, http.StatusCreated)
	return made
}

// post files a request with a form, and returns the answer in JSON.
func (s *testServer) post(form url.Values) (status int, filed []struct {
	ID uuid.UUID `json:"service_request_id"`
}, body string,
) {
	s.t.Helper()
	a := s.do(call{method: "POST", path: "/open311/v2/requests.json", body: form.Encode(), headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	if a.StatusCode == http.StatusOK {
		if err := json.Unmarshal(a.body, &filed); err != nil {
			s.t.Fatal(err)
		}
	}
	return a.StatusCode, filed, string(a.body)
}

func openForm(key, description string) url.Values {
	return url.Values{
		"api_key": {key}, "service_code": {"2"}, "lat": {"-6.9147"}, "long": {"107.6098"}, "description": {description},
		"email": {"kanari@surel.test"}, "first_name": {"Kanari"}, "last_name": {"Surel"}, "phone": {"0811-kanari"},
	}
}

// Operators make and revoke keys, auditors see them, nobody else does; a key is shown once
// and files until it is revoked. The audit says who did what.
func TestOpen311Keys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	olu := token(t, "olu", auth.Operator)
	made := s.makeKey("FixMyStreet")
	if status, _, body := s.post(openForm(made.Key, "Dark")); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for range 2 { // the second changes nothing
		if a := s.do(call{method: "DELETE", path: keys + "/" + made.ID.String(), token: olu}); a.StatusCode != http.StatusNoContent {
			t.Errorf("revoke: %d %s", a.StatusCode, a.body)
		}
	}
	if a := s.do(call{method: "DELETE", path: keys + "/" + uuid.NewString(), token: olu}); a.StatusCode != http.StatusNotFound {
		t.Errorf("revoke an unknown one: %d", a.StatusCode)
	}
	if status, _, body := s.post(openForm(made.Key, "Dark again")); status != http.StatusForbidden {
		t.Errorf("with a revoked key: %d %s", status, body)
	}
	for _, role := range []auth.Role{auth.Operator, auth.Auditor} {
		list, a := ok[reportapi.Open311Keys](s, call{method: "GET", path: keys, token: token(t, "someone", role)}, http.StatusOK)
		if !list.Enabled || len(list.Keys) != 1 || list.Keys[0].RevokedAt.IsZero() || list.Keys[0].Reports != 1 || strings.Contains(string(a.body), made.Key) {
			t.Errorf("the list is %s", a.body)
		}
	}
	for _, role := range []auth.Role{auth.Resident, auth.Official, auth.Auditor} {
		if a := s.do(call{method: "POST", path: keys, token: token(t, "other", role), body: `{"name":"x"}`}); a.StatusCode != http.StatusForbidden {
			t.Errorf("a key for %s: %d", role, a.StatusCode)
		}
	}
	acts, _ := ok[reportapi.SettingsAudit](s, call{method: "GET", path: "/admin/reports/settings/audit", token: olu}, http.StatusOK)
	if len(acts.Acts) != 2 || acts.Acts[0].Setting != "open311" || fmt.Sprint(acts.Acts[0].Detail["keys_revoked"]) != "[FixMyStreet]" || acts.Acts[1].Actor != "olu" {
		t.Errorf("the audit has %+v", acts)
	}
	var kept int
	if err := s.pool.QueryRow(t.Context(), `select count(*) from open311_keys k where k::text like '%' || $1 || '%'`, made.Key).Scan(&kept); err != nil || kept > 0 {
		t.Errorf("the key is kept as it is, error %v", err)
	}
}

// The same form, sent 20 times at once, is one report, whose id all get. That of another
// sender is another.
func TestSameRequestAtOnceIsFiledOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key := s.makeKey("FixMyStreet").Key
	ids := make([]uuid.UUID, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			status, filed, body := s.post(openForm(key, "Dark lamp"))
			if status != http.StatusOK {
				t.Errorf("%d %s", status, body)
				return
			}
			ids[i] = filed[0].ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] || id == uuid.Nil {
			t.Fatalf("the ids are %v", ids)
		}
	}
	other := openForm(key, "Dark lamp")
	other.Set("email", "other@surel.test")
	if _, filed, body := s.post(other); len(filed) != 1 || filed[0].ID == ids[0] {
		t.Errorf("of another sender: %s", body)
	}
	var reports int
	if err := s.pool.QueryRow(t.Context(), `select count(*) from reports`).Scan(&reports); err != nil || reports != 2 {
		t.Errorf("%d reports, error %v; want 2", reports, err)
	}
}

// A report of an application is anonymous to all, officials too, who read the application's
// name. Nobody is notified of what becomes of it, and nothing of the sender is kept.
func TestApplicationFilesAnonymously(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	olga := token(t, "olga", auth.Official)
	key := s.makeKey("FixMyStreet").Key
	_, filed, body := s.post(openForm(key, "Dark lamp\nSince Monday"))
	if len(filed) != 1 {
		t.Fatal(body)
	}
	path := "/reports/" + filed[0].ID.String()
	rep, _ := ok[reportapi.Report](s, call{method: "GET", path: path, token: olga}, http.StatusOK)
	if rep.Title != "Dark lamp" || rep.Description != "Since Monday" || rep.PrivacyLevel != "anonymous" || rep.ReporterName != "" {
		t.Errorf("the report is %+v", rep)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if work.Application != "FixMyStreet" {
		t.Errorf("officials read %q", work.Application)
	}
	if a := s.do(call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress","note":"Seen"}`}); a.StatusCode != http.StatusOK {
		t.Errorf("move it: %d %s", a.StatusCode, a.body)
	}
	s.wantStatus(http.StatusCreated, call{method: "POST", path: path + "/questions", token: olga, body: questionBody}) // as if the reporter were silent
	for _, table := range []string{"reports", "reporters", "idempotency_keys", "outbox_messages", "open311_reports", "status_history"} {
		var rows int
		err := s.pool.QueryRow(t.Context(), `select count(*) from `+table+` r where r::text ilike '%kanari%' or r::text ilike '%surel%' or r::text like '%'||encode('kanari','hex')||'%'`).Scan(&rows)
		if err != nil || rows > 0 {
			t.Errorf("%d rows of %s have the sender, error %v", rows, table, err)
		}
	}
	var reporters int
	if err := s.pool.QueryRow(t.Context(), `select count(*) from reporters`).Scan(&reporters); err != nil || reporters > 0 {
		t.Errorf("%d reporters, error %v: whoever is one is notified", reporters, err)
	}
	if strings.Contains(s.logs.String(), "kanari") || strings.Contains(s.logs.String(), key) {
		t.Error("the log has the sender, or the key")
	}
}

// Open311 has what everybody sees, as the page shows it, and follows what officials do:
// a hidden or withdrawn report is nowhere, and comes back only when it is shown again.
func TestOpen311ShowsWhatEverybodySees(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	rep, withdrawn := s.file(ann, "anonymous"), s.file(ann, "public")
	path := "/reports/" + rep.ID.String()
	act := func(method, path, who, body string) {
		t.Helper()
		if a := s.do(call{method: method, path: path, token: who, body: body}); a.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, a.StatusCode, a.body)
		}
	}
	act("DELETE", "/reports/"+withdrawn.ID.String(), ann, "")
	act("PATCH", path+"/status", olga, `{"status":"rejected","note":"Not ours"}`)
	seen := func(id uuid.UUID) (places int) {
		for _, read := range []string{
			"requests.json", "requests.xml", "requests/" + id.String() + ".json", "tokens/" + id.String() + ".xml", "servicerequestupdates.xml",
			"requests.json?service_request_id=" + id.String(), "requests.xml?status=closed", "requests.json?lat=-6.9&long=107.6&radius=100", "requests.json?q=dark&service_code=2",
			"servicerequestupdates.json?service_request_id=" + id.String(),
		} {
			body := string(s.do(call{method: "GET", path: "/open311/v2/" + read, token: ann}).body)
			if strings.Contains(body, id.String()) {
				places++
			}
			if strings.Contains(body, "ann") {
				t.Errorf("%s names the reporter: %s", read, body)
			}
		}
		return places
	}
	if n := seen(rep.ID); n != 10 {
		t.Errorf("the report is in %d of 10 places", n)
	}
	if n := seen(withdrawn.ID); n != 0 {
		t.Errorf("a withdrawn report is in %d places", n)
	}
	a := s.do(call{method: "GET", path: "/open311/v2/requests/" + rep.ID.String() + ".json"})
	for _, want := range []string{`"status":"closed"`, `"status_notes":"Not ours"`, `"lat":-6.9,`, `"agency_responsible":null`, `"expected_datetime":null`, `"service_name":"Street lights and signals"`} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("no %s in %s", want, a.body)
		}
	}
	act("PUT", path+"/hidden", olga, `{"reason":"It names somebody"}`)
	if n := seen(rep.ID); n != 0 {
		t.Errorf("a hidden report is in %d places", n)
	}
	act("DELETE", path+"/hidden", olga, "")
	if n := seen(rep.ID); n != 10 {
		t.Errorf("a report that is shown again is in %d of 10 places", n)
	}
}

// A city that takes no part has no address of Open311. Its operators may make keys.
func TestOpen311IsOff(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Open311On = false })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/open311/discovery.xml", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("answered %s", res.Status)
	}
	s.makeKey("FixMyStreet")
	if list, _ := ok[reportapi.Open311Keys](s, call{method: "GET", path: keys, token: token(t, "olu", auth.Operator)}, http.StatusOK); list.Enabled || len(list.Keys) != 1 {
		t.Errorf("the list is %+v", list)
	}
}

// A list of 1,000 reports as XML, from the request to its last byte. Each is of another
// address: one alone would have to wait.
func BenchmarkOpen311Requests(b *testing.B) {
	s := newServer(b)
	_, err := s.pool.Exec(b.Context(), `
		insert into reports (id, title, description, category_id, latitude, longitude, address, privacy_level, status, score, version, created_at, updated_at)
		select gen_random_uuid(), 'Hole ' || n, repeat('since some days, and nobody came. ', 6), 1 + n % 11, -6.9, 107.6, 'Jalan ' || n, 'anonymous', 'pending', 0, 1,
			now() - n * interval '1 minute', now() from generate_series(1, 5000) n`)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		a := s.do(call{method: "GET", path: "/open311/v2/requests.xml", headers: map[string]string{"X-Forwarded-For": fmt.Sprintf("10.0.%d.%d", n/250, n%250)}})
		if a.StatusCode != http.StatusOK || strings.Count(string(a.body), "<request>") != 1000 {
			b.Fatalf("%d with %d bytes", a.StatusCode, len(a.body))
		}
	}
}
