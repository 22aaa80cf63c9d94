package api_test

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

var openPaths = []string{"/open-data/reports.csv", "/open-data/reports.geojson", "/open-data/reports.atom"}

// Open data has every public report once, over its parts, and tells nobody who filed it,
// also its reporter.
func TestOpenData(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann-canary", auth.Resident), token(t, "olga", auth.Official)
	s.fileAbout(ann, 2, "=HYPERLINK(1) says Bob")
	pasted := s.fileAbout(ann, 2, "Jalan Raya Pajajaran-Tajurhalang & 'Blok C' <b> 🚧")
	if _, err := s.pool.Exec(t.Context(), `update reports set description = $2 where id = $1`, pasted, "dari WhatsApp:\n“gelap”, \u2028lampu\tmati; =1+1"); err != nil {
		t.Fatal(err)
	}
	s.file(ann, "public")
	hidden := s.file(ann, "anonymous").ID
	s.hide(olga, hidden, "a name")
	if _, err := s.pool.Exec(t.Context(), `
		with new as (
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			select gen_random_uuid(), 'Lamp, "dark" ' || n, '', 1, 'public', 'resolved', 1, now() - interval '1 day', now() - interval '1 day'
			from generate_series(1, 2500) n returning id
		)
		insert into reporters select id, 'ann-canary', 'ann-canary' from new`); err != nil {
		t.Fatal(err)
	}
	read := func(path string) []byte {
		t.Helper()
		nobody, own := s.do(call{method: "GET", path: path}), s.do(call{method: "GET", path: path, token: ann})
		if nobody.StatusCode != http.StatusOK || string(nobody.body) != string(own.body) {
			t.Fatalf("%s: %d %.200s; the reporter gets %.200s", path, nobody.StatusCode, nobody.body, own.body)
		}
		if strings.Contains(string(nobody.body), "canary") || strings.Contains(string(nobody.body), hidden.String()) {
			t.Errorf("%s tells who filed a report, or has a hidden one", path)
		}
		return nobody.body
	}

	lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(read(openPaths[0])), "\uFEFF"))).ReadAll()
	if err != nil || len(lines) != 2504 || lines[0][6] != "title" || lines[2501][6] != "'=HYPERLINK(1) says Bob" {
		t.Errorf("%d lines, error %v; want 2504 with the oldest first and no formula", len(lines), err)
	}
	if got := lines[2502]; got[6] != `Jalan Raya Pajajaran-Tajurhalang & 'Blok C' <b> 🚧` || got[7] != "dari WhatsApp:\n“gelap”, \u2028lampu\tmati;' =1+1" {
		t.Errorf("pasted text is %q, want it whole and without a formula", got[6:8])
	}
	var features reportapi.OpenReports
	if err := json.Unmarshal(read(openPaths[1]), &features); err != nil || len(features.Features) != 2503 || features.Type != reportapi.FeatureCollection {
		t.Fatalf("%d features, error %v; want 2503", len(features.Features), err)
	}
	seen := make(map[string]bool)
	for _, f := range features.Features {
		seen[f.ID.String()] = true
	}
	last := features.Features[2502]
	if len(seen) != 2503 || last.Geometry == nil || len(last.Geometry.Coordinates) != 2 || features.Features[0].Geometry != nil || last.Properties.Category == "" {
		t.Errorf("%d ids, the last is %+v; want 2503, the last with a point and the first without", len(seen), last)
	}
	var feed struct {
		ID      string `xml:"http://www.w3.org/2005/Atom id"`
		Updated string `xml:"http://www.w3.org/2005/Atom updated"`
		Entries []struct {
			ID      string `xml:"http://www.w3.org/2005/Atom id"`
			Updated string `xml:"http://www.w3.org/2005/Atom updated"`
			Point   string `xml:"http://www.georss.org/georss point"`
		} `xml:"http://www.w3.org/2005/Atom entry"`
	}
	if err := xml.Unmarshal(read(openPaths[2]), &feed); err != nil || len(feed.Entries) != 100 || feed.Entries[0].ID != "urn:uuid:"+last.ID.String() ||
		feed.Updated != feed.Entries[0].Updated || feed.Entries[0].Point == "" {
		t.Errorf("feed %.300v, error %v; want the 100 that changed last", feed, err)
	}
}

// Numbers near the equator have no exponent, which readers of CSV and Atom do not know, and a
// report is found by its id, in any list, and by a link to it.
func TestNumbersAndIDs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	near := regexp.MustCompile(`"latitude":[^,]*`).ReplaceAllString(newReport, `"latitude":0.00003`)
	filed, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: near}, http.StatusCreated)
	s.file(ann, "public")
	id := filed.ID.String()
	for _, sought := range []string{id, strings.ToUpper(id), "https://city.example.org/reports/" + id + "?lang=id", "see " + id + "."} {
		for _, path := range append([]string{"/reports", "/reports/mine", "/reports/queue", "/reports/export"}, openPaths...) {
			a := s.do(call{method: "GET", path: path + "?q=" + url.QueryEscape(sought), token: map[bool]string{true: olga, false: ann}[strings.HasPrefix(path, "/reports/queue") || strings.HasPrefix(path, "/reports/export")]})
			body := string(a.body)
			if a.StatusCode != http.StatusOK || strings.Count(body, id) == 0 || strings.Contains(body, "107.6") && strings.Count(body, "0.00003") == 0 || strings.Contains(body, "e-05") {
				t.Errorf("%s with %q: %d %s", path, sought, a.StatusCode, body)
			}
			if path == "/reports/export" && !strings.Contains(body, `"`+report.Reference(filed.ID)+`"`) {
				t.Errorf("the export has no number: %s", body)
			}
		}
	}
	if a := s.do(call{method: "GET", path: "/reports?q=0198c0de-0000-7000-8000-000000000001"}); strings.Contains(string(a.body), id) {
		t.Error("another id finds it")
	}
}

// Open data has the filters of the list, and refuses what is none.
func TestOpenDataFilters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann := token(t, "ann", auth.Resident)
	lamp, hole := s.fileAbout(ann, 2, "a lamp"), s.fileAbout(ann, 1, "a hole")
	for _, path := range openPaths {
		for query, has := range map[string][2]bool{
			"":                               {true, true},
			"category=2":                     {true, false},
			"q=hole":                         {false, true},
			"q=%3F":                          {false, false},
			"status=resolved":                {false, false},
			"bbox=0,0,1,1&category=2":        {false, false},
			"status=pending&status=resolved": {true, true},
		} {
			a := s.do(call{method: "GET", path: path + "?" + query})
			got := [2]bool{strings.Contains(string(a.body), lamp.String()), strings.Contains(string(a.body), hole.String())}
			if a.StatusCode != http.StatusOK || got != has {
				t.Errorf("%s?%s: %d with the lamp and the hole %v, want %v", path, query, a.StatusCode, got, has)
			}
		}
		for _, query := range []string{"status=broken", "category=x", "bbox=1", "order=score", "separator=x", "cursor=x"} {
			if query == "separator=x" && path != openPaths[0] {
				continue
			}
			if a := s.do(call{method: "GET", path: path + "?" + query}); a.StatusCode != http.StatusBadRequest {
				t.Errorf("%s?%s: %d, want 400", path, query, a.StatusCode)
			}
		}
	}
}

// A client that has the open data gets it again once anything in it has changed, and not
// before.
func TestOpenDataIsReadAgainOnceItChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, bob, olga := token(t, "ann", auth.Resident), token(t, "bob", auth.Resident), token(t, "olga", auth.Official)
	report := "/reports/" + s.file(ann, "public").ID.String()
	other := "/reports/" + s.file(ann, "public").ID.String()
	always := map[string]string{"If-Match": "*"}
	tags := make(map[string]string)
	check := func(what string) {
		t.Helper()
		for _, path := range openPaths {
			a := s.do(call{method: "GET", path: path, headers: map[string]string{"If-None-Match": tags[path]}})
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: %d, want 200", path, what, a.StatusCode)
			}
			tags[path] = a.Header.Get("ETag")
			a = s.do(call{method: "GET", path: path, headers: map[string]string{"If-None-Match": tags[path]}})
			if a.StatusCode != http.StatusNotModified || len(a.body) != 0 {
				t.Errorf("%s, nothing after %s: %d with %d bytes, want 304", path, what, a.StatusCode, len(a.body))
			}
		}
	}
	check("at first")
	for _, c := range []call{
		{method: "POST", path: report + "/vote", token: bob, body: `{"vote_type":"upvote"}`},
		{method: "PATCH", path: report + "/status", token: olga, body: `{"status":"in_progress"}`},
		{method: "PATCH", path: report, token: olga, body: `{"category_id":1,"reason":"It is a hole"}`, headers: always},
		{method: "PATCH", path: report + "/words", token: olga, body: `{"title":"Something dark","reason":"a name"}`, headers: always},
		{method: "PUT", path: report + "/hidden", token: olga, body: `{"reason":"personal_data"}`, headers: always},
		{method: "DELETE", path: report + "/hidden", token: olga},
		{method: "DELETE", path: other, token: ann, headers: always},
	} {
		if a := s.do(c); a.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
		check(c.method + " " + c.path)
	}
	if a := s.setCategories("*", two); a.StatusCode != http.StatusOK {
		t.Fatalf("replace categories: %d %s", a.StatusCode, a.body)
	}
	check("other names of categories")
}
