package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

// borders is a file of two areas, of which the report newReport is in the second.
const borders = `{"type":"FeatureCollection","features":[
	{"type":"Feature","properties":{"code":"west","names":{"en":"West","id":"Barat"}},"geometry":{"type":"Polygon","coordinates":[[[106,-7],[107,-7],[107,-6],[106,-6],[106,-7]]]}},
	{"type":"Feature","properties":{"code":"east","names":{"en":"East","id":"Timur"}},"geometry":{"type":"Polygon","coordinates":[[[107,-7],[108,-7],[108,-6],[107,-6],[107,-7]]]}}]}`

// setAreas replaces the areas as an operator does, and returns the answer.
func (s *testServer) setAreas(ifMatch, body string) answer {
	s.t.Helper()
	return s.do(call{method: "PUT", path: "/reports/areas", token: token(s.t, "pavel", auth.Operator), body: body,
		headers: map[string]string{"If-Match": ifMatch, "Content-Type": "application/geo+json"}})
}

// The file that an operator uploads decides in which area a report is, for everybody who
// reads the report, and can be read and uploaded again.
func TestCityHasAreas(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga, pavel := token(t, "ann", auth.Resident), token(t, "olga", auth.Official), token(t, "pavel", auth.Operator)
	none, before := ok[reportapi.AreaSettings](s, call{method: "GET", path: "/reports/areas", token: pavel}, http.StatusOK)
	if len(none.Features) != 0 || !none.Located {
		t.Errorf("a new city has the areas %+v, want none", none)
	}
	// With a byte order mark, and a hole of nothing.
	a := s.setAreas(before.Header.Get("ETag"), "\ufeff"+strings.Replace(borders, "]]]}}]}", "]],[]]}}]}", 1))
	if a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), `"left_out":1`) {
		t.Fatalf("status %d: %s; want one part left out", a.StatusCode, a.body)
	}
	if stale := s.setAreas(before.Header.Get("ETag"), borders); stale.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("the list of before: status %d, want 412: %s", stale.StatusCode, stale.body)
	}
	anonymous := strings.Replace(newReport, `"privacy_level":"public"`, `"privacy_level":"anonymous"`, 1)
	filed, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: anonymous}, http.StatusCreated)
	if read, _ := ok[reportapi.Report](s, call{method: "GET", path: "/reports/" + filed.ID.String()}, http.StatusOK); filed.Area != "east" || read.Area != "east" {
		t.Errorf("the report is filed in %q and read in %q, want east", filed.Area, read.Area)
	}
	for code, n := range map[string]int{"east": 1, "west": 0, "nowhere": 0} {
		for _, path := range []string{"/reports?area=", "/reports/queue?area="} {
			if page, _ := ok[reportapi.TaskPage](s, call{method: "GET", path: path + code, token: olga}, http.StatusOK); len(page.Reports) != n {
				t.Errorf("%s%s shows %d reports, want %d", path, code, len(page.Reports), n)
			}
		}
	}
	if counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts", token: olga}, http.StatusOK); fmt.Sprint(counts.Areas) != "[{east 1}]" {
		t.Errorf("counts %v, want one in the east", counts.Areas)
	}
	if numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", path: "/reports/numbers", token: olga}, http.StatusOK); len(numbers.Areas) != 1 || numbers.Areas[0].Area != "east" || numbers.Areas[0].Filed != 1 || numbers.Areas[0].OpenAtEnd != 1 {
		t.Errorf("numbers %+v, want one of the east", numbers.Areas)
	}
	if export := s.do(call{method: "GET", path: "/reports/export", token: olga}); !strings.HasSuffix(strings.TrimSpace(string(export.body)), `"east","public","`+report.Reference(filed.ID)+`","","",""`) {
		t.Errorf("the export is %s, want a line of the east", export.body)
	}
	// An official corrects it into the other area.
	moved, _ := ok[reportapi.Report](s, call{method: "PATCH", path: "/reports/" + filed.ID.String(), token: olga, headers: map[string]string{"If-Match": "*"},
		body: `{"latitude":-6.5,"longitude":106.5,"reason":"There"}`}, http.StatusOK)
	if moved.Area != "west" {
		t.Errorf("corrected, the report is in %q, want west", moved.Area)
	}
	// The file that is read is uploaded again without a change.
	kept := s.do(call{method: "GET", path: "/reports/areas", token: pavel})
	if again := s.setAreas(kept.Header.Get("ETag"), string(kept.body)); again.StatusCode != http.StatusOK || again.Header.Get("ETag") != kept.Header.Get("ETag") {
		t.Errorf("uploaded again: status %d, tag %s, want the one of before, %s: %s", again.StatusCode, again.Header.Get("ETag"), kept.Header.Get("ETag"), again.body)
	}
}

// Everybody reads names in their language and borders, and asks for them once.
func TestAreasInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.setAreas("*", borders)
	get := func(query, language, tag string) answer {
		return s.do(call{method: "GET", path: "/areas" + query, headers: map[string]string{"Accept-Language": language, "If-None-Match": tag}})
	}
	for language, name := range map[string]string{"id": `"Barat"`, "de": `"West"`} {
		a := get("", language, "")
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "application/geo+json" || !strings.Contains(string(a.body), name) ||
			!strings.Contains(string(a.body), `{"type":"MultiPolygon","coordinates":[[[[106,-7],`) {
			t.Errorf("in %s: status %d: %s", language, a.StatusCode, a.body)
		}
		if again := get("", language, a.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("in %s: status %d for what the caller has, want 304", language, again.StatusCode)
		}
		if names := get("?geometry=none", language, a.Header.Get("ETag")); names.StatusCode != http.StatusOK || !strings.Contains(string(names.body), `"geometry":null`) {
			t.Errorf("in %s: names alone: status %d: %s", language, names.StatusCode, names.body)
		}
	}
}

// A faulty file is refused with the place of each fault, and changes nothing.
func TestAreasAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	open := strings.Replace(borders, ",[106,-7]]]", "]]", 1)
	a := s.setAreas("*", strings.Replace(open, `"East"`, `""`, 1))
	for _, want := range []string{`/features/0/geometry/coordinates/0/3`, `feature 0 (\"west\"), ring 0, point 3: the ring is not closed`, `/features/1/properties/names/en`} {
		if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), want) {
			t.Errorf("status %d: %s, want 400 with %s", a.StatusCode, a.body, want)
		}
	}
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"not JSON":  {`{"type":`, http.StatusBadRequest},
		"too large": {borders + strings.Repeat(" ", 5<<20), http.StatusRequestEntityTooLarge},
		"just so":   {borders + strings.Repeat(" ", 5<<20-len(borders)), http.StatusOK},
	} {
		if a := s.setAreas("*", tt.body); a.StatusCode != tt.want {
			t.Errorf("%s: status %d, want %d: %.200s", name, a.StatusCode, tt.want, a.body)
		}
	}
	put := call{method: "PUT", path: "/reports/areas", token: token(t, "pavel", auth.Operator), body: borders, headers: map[string]string{"If-Match": "*"}}
	if a := s.do(put); a.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("as JSON: status %d, want 415", a.StatusCode)
	}
	put.token, put.headers["Content-Type"] = token(t, "olga", auth.Official), "application/geo+json"
	if a := s.do(put); a.StatusCode != http.StatusForbidden {
		t.Errorf("by an official: status %d, want 403", a.StatusCode)
	}
}
