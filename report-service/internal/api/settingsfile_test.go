package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

const settingsPath = "/admin/reports/settings"

// putSettings replaces a city's settings as an operator does.
func putSettings(t testing.TB, file, query, match string) call {
	return call{method: "PUT", path: settingsPath + query, token: token(t, "oskar", auth.Operator), body: file, headers: map[string]string{"If-Match": match}}
}

// setUpCity gives a city settings of every kind, also a category that is retired.
func setUpCity(t *testing.T, s *testServer) {
	t.Helper()
	operator := token(t, "oskar", auth.Operator)
	for _, c := range []call{
		{method: "PUT", path: "/reports/areas", headers: map[string]string{"If-Match": "*", "Content-Type": "application/geo+json"}, body: `{"type": "FeatureCollection", "features": [
			{"type": "Feature", "properties": {"code": "west", "names": {"en": "West", "id": "Barat"}}, "geometry": {"type": "Polygon", "coordinates": [[[106.7,-6.7],[106.8,-6.7],[106.8,-6.5],[106.7,-6.5],[106.7,-6.7]]]}},
			{"type": "Feature", "properties": {"code": "east", "names": {"en": "East", "id": "Timur"}}, "geometry": {"type": "Polygon", "coordinates": [[[106.8,-6.7],[106.9,-6.7],[106.9,-6.5],[106.8,-6.5],[106.8,-6.7]]]}}]}`},
		{method: "PUT", path: "/reports/categories", headers: map[string]string{"If-Match": "*"}, body: `{"categories": [
			{"texts": [{"language": "en", "name": "Lifts"}, {"language": "id", "name": "Lift"}]}, {"texts": [{"language": "en", "name": "Gone"}, {"language": "id", "name": "Hilang"}]},
			{"id": 2, "icon": "lamp", "texts": [{"language": "en", "name": "Lamps", "hint": "Tell us the number.", "group": "Streets"}, {"language": "id", "name": "Lampu"}],
				"signposts": [{"area": "west", "texts": [{"language": "en", "text": "Ask the port.", "link": "https://port.example.org"}, {"language": "id", "text": "Tanya pelabuhan."}]}]}]}`},
		{method: "PUT", path: "/reports/categories", headers: map[string]string{"If-Match": "*"}, body: `{"categories": [
			{"id": 2, "icon": "lamp", "texts": [{"language": "en", "name": "Lamps", "hint": "Tell us the number.", "group": "Streets"}, {"language": "id", "name": "Lampu"}]},
			{"id": 12, "texts": [{"language": "en", "name": "Lifts"}, {"language": "id", "name": "Lift"}]}]}`},
		{method: "PUT", path: "/reports/departments", body: `{"departments": [{"id": 4, "name": "Roads", "category_ids": [2, 13], "routes": [{"area": "east"}]}, {"id": 9, "code": "port", "name": "Port", "category_ids": [], "routes": [{"area": "west", "category_id": 12}]}]}`},
		{method: "PUT", path: "/reports/calendar", body: `{"zone": "Asia/Jakarta", "shifts": [{"day": "monday", "from": "08:00", "to": "16:00"}], "holidays": ["2027-01-01"], "targets": [{"category_id": 12, "hours": 24}, {"category_id": 2, "hours": 8}]}`},
		{method: "PUT", path: "/reports/templates", body: `{"templates": [{"id": 3, "title": "Seen", "text": "We have seen it.", "status": "in_progress"}]}`},
	} {
		if c.token = operator; c.path == "/reports/templates" { // which are the officials' own
			c.token = token(t, "olga", auth.Official)
		}
		if a := s.do(c); a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
}

// The settings of a city make an empty one equal, in one step.
func TestSettingsMove(t *testing.T) {
	t.Parallel()
	s, empty := newServer(t), newServer(t)
	setUpCity(t, s)
	get := func(s *testServer) (string, string) {
		a := s.do(call{method: "GET", path: settingsPath, token: token(t, "audrey", auth.Auditor)})
		return string(a.body), a.Header.Get("ETag")
	}
	file, tag := get(s)
	before, _ := get(empty)

	would, _ := ok[reportapi.SettingsChanges](empty, putSettings(t, file, "?dry_run=true", "*"), http.StatusOK)
	if after, _ := get(empty); after != before {
		t.Error("a dry run has changed something")
	}
	did, a := ok[reportapi.SettingsChanges](empty, putSettings(t, file, "", "*"), http.StatusOK)
	if len(did.Changes) != len(would.Changes) || len(did.Changes) < 9 || a.Header.Get("ETag") != tag {
		t.Errorf("%+v, but a dry run said %+v; ETag %s, want %s", did, would, a.Header.Get("ETag"), tag)
	}
	if got, gotTag := get(empty); got != file || gotTag != tag {
		t.Errorf("moved with %s\n%s\nwant %s\n%s", gotTag, got, tag, file)
	}
	for _, path := range []string{"/categories", "/reports/departments", "/reports/calendar", "/reports/templates", "/reports/areas"} {
		read := call{method: "GET", path: path, token: token(t, "olga", auth.Official)}
		there, here := empty.do(read), s.do(read)
		if clean := func(b []byte) string { return strings.ReplaceAll(string(b), `"located":false`, `"located":true`) }; clean(there.body) != clean(here.body) {
			t.Errorf("GET %s: %s, want %s", path, there.body, here.body)
		}
	}
	again, _ := ok[reportapi.SettingsChanges](empty, putSettings(t, file, "", tag), http.StatusOK)
	if len(again.Changes) != 0 {
		t.Errorf("the same settings changed %+v", again.Changes)
	}
	if a := empty.do(putSettings(t, file, "", `"other"`)); a.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("settings of another revision: %d, want 412", a.StatusCode)
	}
	if a := empty.do(putSettings(t, before, "", "*")); a.StatusCode != http.StatusOK {
		t.Errorf("and back: %d %s", a.StatusCode, a.body)
	}
}

// A fault anywhere is named where it is, and nothing is replaced.
func TestSettingsAreWholeOrNot(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	setUpCity(t, s)
	file := string(s.do(call{method: "GET", path: settingsPath, token: token(t, "oskar", auth.Operator)}).body)
	for pointer, change := range map[string]func(f map[string]any){
		"/areas/0/properties/names": func(f map[string]any) {
			item(f["areas"], 0)["properties"].(map[string]any)["names"] = map[string]any{"en": "X"}
		},
		"/categories/1/texts": func(f map[string]any) { item(f["categories"], 0)["texts"] = item(f["categories"], 1)["texts"] },
		"/categories/0/signposts/0/area": func(f map[string]any) {
			item(f["categories"], 0)["signposts"] = []any{map[string]any{"area": "nowhere", "texts": []any{map[string]any{"language": "en", "text": "x"}}}}
		},
		"/categories/1/retired":           func(f map[string]any) { item(f["categories"], 0)["retired"] = true },
		"/departments":                    func(f map[string]any) { item(f["departments"], 0)["category_ids"] = []any{777} },
		"/departments/1/name":             func(f map[string]any) { item(f["departments"], 1)["name"] = item(f["departments"], 0)["name"] },
		"/calendar/zone":                  func(f map[string]any) { f["calendar"].(map[string]any)["zone"] = "Asia/Nowhere" },
		"/templates/1/id":                 func(f map[string]any) { f["templates"] = []any{item(f["templates"], 0), item(f["templates"], 0)} },
		"/calendar/targets/0/category_id": func(f map[string]any) { item(f["calendar"].(map[string]any)["targets"], 0)["category_id"] = 0 },
	} {
		var changed map[string]any
		if err := json.Unmarshal([]byte(file), &changed); err != nil {
			t.Fatal(err)
		}
		change(changed)
		body, _ := json.Marshal(changed) // of JSON
		a := s.do(putSettings(t, string(body), "", "*"))
		if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), `"pointer":"`+pointer) {
			t.Errorf("%s: %d %s", pointer, a.StatusCode, a.body)
		}
	}
	if after := s.do(call{method: "GET", path: settingsPath, token: token(t, "oskar", auth.Operator)}); string(after.body) != file {
		t.Errorf("settings with faults left %s", after.body)
	}
	for _, role := range []auth.Role{auth.Official, auth.Auditor, auth.Resident} {
		c := putSettings(t, file, "", "*")
		c.token = token(t, "someone", role)
		if a := s.do(c); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", role, a.StatusCode)
		}
	}
}

func item(list any, i int) map[string]any { return list.([]any)[i].(map[string]any) }
