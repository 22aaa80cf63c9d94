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

// updateForm is an update as FixMyStreet's client sends it.
func updateForm(key string, id uuid.UUID, update, status, description string) url.Values {
	return url.Values{
		"api_key": {key}, "jurisdiction_id": {"bogor.go.id"}, "service_request_id": {id.String()}, "update_id": {update},
		"updated_datetime": {"2026-11-27T12:00:00Z"}, "status": {status}, "description": {description},
		"email": {"kanari@surel.test"}, "first_name": {"Kanari"}, "last_name": {"Surel"}, "phone": {"0811-kanari"}, "media_url": {"https://fms.example/kanari.jpg"},
	}
}

// update sends an update, and returns its id, or what is wrong with it.
func (s *testServer) update(form url.Values) (status int, said string) {
	s.t.Helper()
	a := s.do(call{method: "POST", path: "/open311/v2/servicerequestupdates.json", body: form.Encode(), headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	var list []struct {
		UpdateID    string `json:"update_id"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal(a.body, &list); err != nil || len(list) != 1 {
		s.t.Fatalf("%d %s, error %v", a.StatusCode, a.body, err)
	}
	return a.StatusCode, list[0].UpdateID + list[0].Description
}

// count returns the number that a query finds.
func (s *testServer) count(sql string, args ...any) (n int) {
	s.t.Helper()
	if err := s.pool.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Updates are acts of the connection, each taken once, also days later and when other acts
// came in between. The list of updates has them by the ids of the answers.
func TestUpdatesAreActsOfTheConnection(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	path, olga := "/reports/"+rep.ID.String(), token(t, "olga", auth.Official)
	ids := map[string]string{}
	send := func(update, status, description string) {
		t.Helper()
		code, id := s.update(updateForm(key, rep.ID, update, status, description))
		if before, again := ids[update]; code != http.StatusOK || id == "" || again && id != before {
			t.Fatalf("update %s: %d %q, before %q", update, code, id, before)
		}
		ids[update] = id
	}
	send("1", "OPEN", "")
	send("2", "OPEN", "The crew has looked at it.")
	send("3", "IN_PROGRESS", "The crew is there.")
	send("4", "FIXED", "A new bulb.")
	send("5", "CLOSED", "Thank you.")
	send("3", "IN_PROGRESS", "The crew is there.") // late
	s.wantStatus(http.StatusOK, call{method: "PATCH", path: path + "/status", token: olga, body: `{"status":"in_progress","note":"Dark again"}`})
	if _, err := s.pool.Exec(t.Context(), `delete from idempotency_keys`); err != nil { // as a day later
		t.Fatal(err)
	}
	send("4", "FIXED", "A new bulb.")
	send("4", "FIXED", "Other words.")
	send("1", "NO_FURTHER_ACTION", "Never.")
	if ids["1"] != "1" {
		t.Errorf("an update that did nothing is %q in the answer", ids["1"])
	}
	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	var made []string
	for _, h := range history.History[1:] {
		made = append(made, string(h.ToStatus)+" "+h.Note+" by "+h.DepartmentName)
	}
	if got := strings.Join(made, ", "); got != "pending The crew has looked at it. by Lights, in_progress The crew is there. by Lights, "+
		"resolved A new bulb. by Lights, resolved Thank you. by Lights, in_progress Dark again by " {
		t.Errorf("history %s", got)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	for i, want := range []string{"reply Work orders", "move Work orders", "move Work orders", "reply Work orders", "move olga"} {
		if a := work.Acts[i]; string(a.Action)+" "+a.By.Name != want {
			t.Errorf("act %d is %s of %s, want %s", i, a.Action, a.By.Name, want)
		}
	}
	if n := s.count(`select count(*) from outbox_messages where routing_key = 'report.status.updated'`); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
	listed := string(s.do(call{method: "GET", path: "/open311/v2/servicerequestupdates.json?service_request_id=" + rep.ID.String()}).body)
	for _, update := range []string{"2", "3", "4", "5"} {
		if strings.Count(listed, `"update_id":"`+ids[update]+`"`) != 1 {
			t.Errorf("update %s is not once %s in %s", update, ids[update], listed)
		}
	}
	other := s.file(token(t, "bob", auth.Resident), "anonymous")
	if code, id := s.update(updateForm(key, other.ID, "1", "IN_PROGRESS", "")); code != http.StatusOK || id != other.ID.String()+"-2" {
		t.Errorf("the same number at another report: %d %s", code, id)
	}
	if code, id := s.update(updateForm(s.connect("Another system", 7, false), rep.ID, "1", "OPEN", "Mine")); code != http.StatusOK || !strings.HasPrefix(id, rep.ID.String()) {
		t.Errorf("the same number of another connection: %d %s", code, id)
	}
}

// The same update, sent 20 times at once, is one act and one event, and each gets its id.
func TestSameUpdateAtOnceIsTakenOnce(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	for _, sent := range []struct{ update, status string }{{"a move", "IN_PROGRESS"}, {"a reply", "IN_PROGRESS"}} {
		acts, events := s.count(`select count(*) from status_history`), s.count(`select count(*) from outbox_messages`)
		ids := make([]string, 20)
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() {
				var status int
				if status, ids[i] = s.update(updateForm(key, rep.ID, sent.update, sent.status, "The crew is there.")); status != http.StatusOK {
					t.Errorf("%s: %d %s", sent.update, status, ids[i])
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("%s: the ids are %v", sent.update, ids)
			}
		}
		if acts, events = s.count(`select count(*) from status_history`)-acts, s.count(`select count(*) from outbox_messages`)-events; acts != 1 || events != 1 {
			t.Errorf("%s: %d acts and %d events, want one of each", sent.update, acts, events)
		}
	}
}

// A key opens what its connection reaches, and nothing else: all else does not exist, and
// leaves nothing behind.
func TestUpdatesWithinTheScope(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	withPrivate, olga := s.connect("Work orders too", 7, true), token(t, "olga", auth.Official)
	private, hidden := s.file(token(t, "ann", auth.Resident), "public"), s.file(token(t, "ann", auth.Resident), "public")
	s.wantStatus(http.StatusOK, call{method: "PUT", path: "/reports/" + private.ID.String() + "/visibility", token: olga, body: `{"visibility":"officials","reason":"It names somebody"}`})
	s.wantStatus(http.StatusOK, call{method: "PUT", path: "/reports/" + hidden.ID.String() + "/hidden", token: olga, body: `{"reason":"It names somebody"}`})
	withdrawn := s.file(token(t, "ann", auth.Resident), "public")
	s.wantStatus(http.StatusOK, call{method: "DELETE", path: "/reports/" + withdrawn.ID.String(), token: token(t, "ann", auth.Resident)})
	elsewhere := s.connect("Roads", 8, true)
	revoked := s.connect("Before", 7, true)
	list, _ := ok[reportapi.Connections](s, call{method: "GET", path: "/admin/reports/connections", token: token(t, "oskar", auth.Operator)}, http.StatusOK)
	s.wantStatus(http.StatusNoContent, call{method: "DELETE", path: "/admin/reports/connections/" + list.Connections[0].ID.String(), token: token(t, "oskar", auth.Operator)})
	events := s.count(`select count(*) from outbox_messages`)
	none := "service_request_id: there is no such request"
	for name, tt := range map[string]struct {
		key  string
		id   uuid.UUID
		code int
		said string
	}{
		"another department": {elsewhere, rep.ID, 404, none}, "a private one": {key, private.ID, 404, none},
		"a hidden one": {withPrivate, hidden.ID, 404, none}, "a withdrawn one": {withPrivate, withdrawn.ID, 404, none}, "an unknown one": {key, uuid.New(), 404, none},
		"a revoked key":        {revoked, rep.ID, 403, "api_key: must be a key of this city that is not revoked"},
		"an application's key": {s.makeKey("FixMyStreet").Key, rep.ID, 403, "api_key: must be the key of a department's connection"},
		"an official's token":  {olga, rep.ID, 403, "api_key: must be the key of a department's connection"},
	} {
		for _, description := range []string{"The crew is there.", ""} {
			if code, said := s.update(updateForm(tt.key, tt.id, name, "IN_PROGRESS", description)); code != tt.code || !strings.HasPrefix(said, tt.said) {
				t.Errorf("%s: %d %s, want %d %s", name, code, said, tt.code, tt.said)
			}
		}
	}
	if a := s.do(call{method: "POST", path: "/open311/v2/servicerequestupdates.xml", token: key, body: "a=b", headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}); a.StatusCode != 403 {
		t.Errorf("the key in a header: %d %s", a.StatusCode, a.body)
	}
	if n := s.count(`select count(*) from outbox_messages`) - events; n != 0 || s.count(`select count(*) from connection_updates`) != 0 {
		t.Errorf("%d events of refused updates", n)
	}
	if code, said := s.update(updateForm(withPrivate, private.ID, "1", "IN_PROGRESS", "")); code != 200 {
		t.Errorf("a private one in scope: %d %s", code, said)
	}
}

// Of the sender of an update nothing is kept, and neither is the id in the other system.
func TestUpdatesNameNobody(t *testing.T) {
	t.Parallel()
	s, key, rep := withConnection(t, false)
	for i, status := range []string{"OPEN", "IN_PROGRESS", "FIXED", "DONE", "IN_PROGRESS"} {
		f := updateForm(key, rep.ID, fmt.Sprintf("kanari-%d", i), status, "Seen")
		if i == 4 {
			f.Set("api_key", "ccx_kanari")
		}
		s.update(f)
	}
	tables, err := s.pool.Query(t.Context(), `select quote_ident(table_name) from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if len(names) < 30 || s.count(`select count(*) from connection_updates`) != 3 {
		t.Fatalf("%d tables: the test proves nothing", len(names))
	}
	for _, name := range names {
		if n := s.count(`select count(*) from ` + name + ` r where r::text ~* 'kanari|surel|fms\.example' or r::text ~ (encode('anari', 'hex') || '|' || encode('surel', 'hex'))`); n > 0 {
			t.Errorf("%d rows of %s have the sender", n, name)
		}
	}
	if logs := s.logs.String(); strings.Contains(strings.ToLower(logs), "kanari") || strings.Contains(logs, "surel") || strings.Contains(logs, key) {
		t.Error("the log has the sender, or the key")
	}
}
