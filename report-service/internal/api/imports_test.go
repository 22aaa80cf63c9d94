package api_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func importFile(t testing.TB, file, query string) call {
	kind := "text/csv"
	if strings.HasPrefix(file, "{") {
		kind = "application/x-ndjson"
	}
	return call{method: "POST", path: "/admin/reports/import" + query, token: token(t, "oskar", auth.Operator), body: file, headers: map[string]string{"Content-Type": kind}}
}

// oldReports are n lines of JSON, of 2024 and 2025, and how many were filed and resolved
// by month.
func oldReports(n int) (file string, filed, resolved map[string]int64) {
	filed, resolved = make(map[string]int64), make(map[string]int64)
	var lines strings.Builder
	first := time.Date(2024, 1, 1, 6, 0, 0, 0, time.UTC)
	const years = 23 * 30 * 24 * time.Hour
	for i := range n {
		at := first.Add(years / time.Duration(n) * time.Duration(i)).Truncate(time.Second)
		filed[at.Format("2006-01")]++
		rec := map[string]any{
			"number": fmt.Sprintf("OLD-%06d", i), "created_at": at.In(time.FixedZone("", 7*3600)).Format(time.RFC3339), "category": []string{"Graffiti", "2", "Waste and illegal dumping"}[i%3],
			"title": fmt.Sprintf("Something of before %d", i), "description": strings.Repeat("It was like this. ", 12), "address": "Jl. Asia Afrika 8",
			"latitude": -6.9 - float64(i%1000)/10_000, "longitude": 107.6 + float64(i%777)/10_000, "status": "pending",
		}
		if i%4 > 0 {
			end := at.Add(50 * time.Hour)
			rec["status"] = "resolved"
			rec["history"] = []map[string]any{{"status": "in_progress", "at": at.Add(time.Hour), "note": "On our way."}, {"status": "resolved", "at": end}}
			resolved[end.Format("2006-01")]++
		}
		line, _ := json.Marshal(rec) // of texts and numbers
		lines.Write(append(line, '\n'))
	}
	return lines.String(), filed, resolved
}

// Reports of the system before are in every list, with the numbers of their months, and
// nobody is notified of them. The same file changes nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := 2500
	if many, err := strconv.Atoi(os.Getenv("IMPORTED_REPORTS")); err == nil { // to measure it
		n = many
	}
	file, filed, resolved := oldReports(n)
	olga := token(t, "olga", auth.Official)
	try := func(query string, added int) {
		t.Helper()
		began := time.Now()
		got, _ := ok[reportapi.ImportedReports](s, importFile(t, file, query), http.StatusOK)
		t.Logf("%d bytes with %d reports, %d of them added: %s", len(file), n, added, time.Since(began))
		if int(got.Count) != n || int(got.Added) != added || int(got.Known) != n-added {
			t.Fatalf("import%s: %+v, want %d added", query, got, added)
		}
	}
	state := func() string {
		var state string
		if err := s.pool.QueryRow(t.Context(), `
			select (select count(*) || md5(string_agg(r::text, '' order by id)) from reports r) || (select count(*) || md5(string_agg(h::text, '' order by id)) from status_history h)
				|| (select count(*) from imported_reports) || ' ' || (select count(*) from reporters) || ' ' || (select count(*) from settings_audit)`).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	try("?dry_run=true", n)
	if empty, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports"}, http.StatusOK); len(empty.Reports) > 0 {
		t.Errorf("a dry run wrote %d reports", len(empty.Reports))
	}
	try("", n)
	once := state()
	try("", 0)
	if state() != once {
		t.Error("the second import has changed something")
	}

	var messages, reporters int
	if err := s.pool.QueryRow(t.Context(), `select (select count(*) from outbox_messages), (select count(*) from reporters)`).Scan(&messages, &reporters); err != nil || messages+reporters > 0 {
		t.Errorf("%d messages and %d reporters, want none: %v", messages, reporters, err)
	}
	numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", token: olga,
		path: "/reports/numbers?interval=month&filed_from=2024-01-01T00:00:00Z&filed_to=2026-01-01T00:00:00Z"}, http.StatusOK)
	for _, number := range numbers.Numbers {
		month := number.Begin.Format("2006-01")
		filed[month] -= number.Filed
		resolved[month] -= number.Resolved
	}
	for month, n := range filed {
		if n != 0 || resolved[month] != 0 {
			t.Errorf("%s: %d filed and %d resolved more in the file", month, n, resolved[month])
		}
	}

	last := fmt.Sprintf("Something of before %d", n-1)
	for path, tok := range map[string]string{
		"/reports": "", "/reports?status=resolved": "", "/reports/queue?order=newest": olga, "/map/points?zoom=18&bbox=107,-8,108,-6": "",
		"/open311/v2/requests.json?start_date=2025-11-01T00:00:00Z&end_date=2025-12-31T00:00:00Z": "", "/reports/export": olga, "/open-data/reports.csv": "", "/open-data/reports.geojson": "",
	} {
		a := s.do(call{method: "GET", path: path, token: tok})
		if seen := strings.Contains(string(a.body), last) || strings.Contains(string(a.body), `"clusters":[{`); a.StatusCode != http.StatusOK || !seen {
			t.Errorf("GET %s does not have the last report: %d %.300s", path, a.StatusCode, a.body)
		}
	}
	export, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(s.do(call{method: "GET", path: "/reports/export", token: olga}).body), "\ufeff"))).ReadAll()
	if err != nil || len(export) != n+1 {
		t.Errorf("the export has %d lines, want %d: %v", len(export), n+1, err)
	}
	for _, words := range []string{"old-001234", "OLD 001234", "old001234"} {
		found, _ := ok[reportapi.TaskPage](s, call{method: "GET", path: "/reports/queue?q=" + strings.ReplaceAll(words, " ", "%20"), token: olga}, http.StatusOK)
		if len(found.Reports) != 1 || found.Reports[0].Title != "Something of before 1234" {
			t.Fatalf("%q finds %+v", words, found.Reports)
		}
		work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + found.Reports[0].ID.String() + "/work", token: olga}, http.StatusOK)
		if work.ImportedNumber != "OLD-001234" || len(work.Acts) != 0 {
			t.Errorf("work: %+v", work)
		}
	}
	if residents, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports?q=old-001234"}, http.StatusOK); len(residents.Reports) != 0 {
		t.Errorf("everybody finds the number of before: %+v", residents.Reports)
	}
}

// An imported report is worked on like any other, and its reporter is nobody.
func TestWorkOnImportedReport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := "number,created_at,status,category,title,latitude,longitude,history\n" +
		`7/2024,2024-03-01T09:30:00+07:00,in_progress,"street lights and signals",Dark crossing,-6.91,107.61,"[{""status"":""in_progress"",""at"":""2024-03-02T00:00:00Z"",""note"":""Seen.""}]"` + "\n"
	ok[reportapi.ImportedReports](s, importFile(t, "\ufeff"+file, ""), http.StatusOK)
	page, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: "/reports"}, http.StatusOK)
	if len(page.Reports) != 1 || page.Reports[0].PrivacyLevel != "anonymous" || page.Reports[0].Version != 2 || page.Reports[0].CategoryID != 2 {
		t.Fatalf("%+v", page.Reports)
	}
	path := "/reports/" + page.Reports[0].ID.String()
	olga := token(t, "olga", auth.Official)
	for _, c := range []call{
		{method: "POST", path: path + "/vote", token: token(t, "ann", auth.Resident), body: `{"vote_type": "upvote"}`},
		{method: "POST", path: path + "/replies", token: olga, body: `{"text": "We have found it."}`},
		{method: "PATCH", path: path, token: olga, body: `{"category_id": 4, "reason": "It is paint."}`},
		{method: "PATCH", path: path + "/status", token: olga, body: `{"status": "resolved"}`},
	} {
		if a := s.do(c); a.StatusCode >= 300 {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
	history, _ := ok[reportapi.History](s, call{method: "GET", path: path + "/history"}, http.StatusOK)
	if len(history.History) != 5 || history.History[1].Note != "Seen." || history.History[4].Version != 6 {
		t.Errorf("history: %+v", history.History)
	}
	for _, role := range []auth.Role{auth.Official, auth.Auditor, auth.Resident} {
		c := importFile(t, file, "")
		c.token = token(t, "someone", role)
		if a := s.do(c); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", role, a.StatusCode)
		}
	}
}

// Each fault of a file is named by its line, and the file adds nothing.
func TestImportNamesFaults(t *testing.T) { //nolint:funlen // most of it is the file
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Bounds = &report.Box{West: 107, South: -7, East: 108, North: -6} })
	line := func(changed string) string {
		rec := map[string]any{"number": "N-1", "created_at": "2024-03-01T09:30:00+07:00", "status": "pending", "category": "4", "title": "Paint"}
		var change map[string]any
		if err := json.Unmarshal([]byte(changed), &change); err != nil {
			t.Fatalf("%s: %v", changed, err)
		}
		for name, value := range change {
			if rec[name] = value; value == nil {
				delete(rec, name)
			}
		}
		text, _ := json.Marshal(rec) // of texts and numbers
		return string(text)
	}
	faulty := []struct{ line, code string }{
		{line(`{}`), "number-twice"},
		{line(`{"number": ""}`), "number"},
		{line(`{"number": "` + strings.Repeat("9", 61) + `"}`), "number"},
		{line(`{"number": "a\nb"}`), "number"},
		{line(`{"number": 7}`), "type"},
		{line(`{"number": "N-2", "created_at": "01.03.2024"}`), "time"},
		{line(`{"number": "N-3", "created_at": "2024-03-01 09:30:00"}`), "time"},
		{line(`{"number": "N-4", "created_at": "2094-03-01T09:30:00Z"}`), "time"},
		{line(`{"number": "N-5", "status": "open"}`), "status"},
		{line(`{"number": "N-6", "category": "Dragons"}`), "category"},
		{line(`{"number": "N-7", "title": " "}`), "title"},
		{line(`{"number": "N-8", "title": "` + strings.Repeat("t", 201) + `"}`), "title"},
		{line(`{"number": "N-9", "description": "` + strings.Repeat("d", 4001) + `"}`), "description"},
		{line(`{"number": "N-10", "latitude": 107.6, "longitude": -6.9}`), "swapped"},
		{line(`{"number": "N-11", "latitude": 52.5, "longitude": 13.4}`), "outside"},
		{line(`{"number": "N-12", "latitude": -6.9}`), "position"},
		{line(`{"number": "N-13", "latitude": 529025, "longitude": 179000}`), "position"},
		{line(`{"number": "N-14", "status": "resolved"}`), "updated_at"},
		{line(`{"number": "N-15", "history": [{"status": "resolved", "at": "2024-03-02T00:00:00Z"}]}`), "history"},
		{line(`{"number": "N-16", "status": "resolved", "history": [{"status": "resolved", "at": "2024-02-02T00:00:00Z"}]}`), "time"},
		{line(`{"number": "N-17", "status": "done", "history": [{"status": "done", "at": "2024-03-02T00:00:00Z"}]}`), "status status"},
		{line(`{"number": "N-18", "reporter": "Ann"}`), "unknown"},
		{line(`{"number": "N-19"}`) + line(`{"number": "N-20"}`), "record"},
		{`{"number": "N-21"`, "record"},
		{"{\"number\": \"N-22\", \"title\": \"Stra\xdfe\"}", "encoding"},
		{line(`{"number": "N-23", "title": "a\u0000b"}`), "title"},
	}
	file, want := line(`{}`)+"\n", ""
	for i, f := range faulty {
		file += f.line + "\n"
		for code := range strings.FieldsSeq(f.code) {
			want += fmt.Sprintf("line %d %s\n", i+2, code)
		}
	}
	check := func(file, want string) {
		t.Helper()
		a := s.do(importFile(t, file, ""))
		var problem struct {
			Errors []struct{ Pointer, Detail, Code string }
		}
		if err := json.Unmarshal(a.body, &problem); err != nil || a.StatusCode != http.StatusBadRequest {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		got := ""
		for _, e := range problem.Errors {
			place, _, _ := strings.Cut(e.Detail, ":")
			place, _, _ = strings.Cut(place, " (")
			if got += place + " " + e.Code + "\n"; e.Pointer != strings.Replace(place, "line ", "/lines/", 1) {
				t.Errorf("pointer %s of %s", e.Pointer, e.Detail)
			}
		}
		if got != want {
			t.Errorf("faults\n%swant\n%s", got, want)
		}
	}
	check(file, want)
	check("number,created_at,status,category,title,latitude,longitude,history\n"+
		"C-1,2024-03-01T09:30:00Z,pending,4,Paint,,,\n"+
		"C-2,2024-03-01T09:30:00Z,pending,4,Paint,\"-6,9\",107.6,\n"+
		"C-3,2024-03-01T09:30:00Z,pending,4\n"+
		"C-4,2024-03-01T09:30:00Z,pending,4,\"Paint\non a wall\",,,\n"+
		"C-5,2024-03-01T09:30:00Z,pending,4,Paint,,,today\n"+
		"C-1,2024-03-01T09:30:00Z,pending,4,Paint,,,\n", "line 3 position\nline 4 cut\nline 7 history\nline 8 number-twice\n")
	check("id;title\n", "line 1 columns\nline 1 columns\nline 1 columns\nline 1 columns\nline 1 columns\nline 1 columns\n")
	check(strings.Repeat("{}\n", 300), firstFaults(100))
	var rows int
	if err := s.pool.QueryRow(t.Context(), `select (select count(*) from reports) + (select count(*) from imported_reports)`).Scan(&rows); err != nil || rows > 0 {
		t.Errorf("%d rows of files with faults: %v", rows, err)
	}
}

// firstFaults are those of n lines of faults, each of which an empty object has.
func firstFaults(n int) string {
	var all strings.Builder
	codes := []string{"number", "status", "category", "title", "time"}
	for i := range n {
		fmt.Fprintf(&all, "line %d %s\n", i/len(codes)+1, codes[i%len(codes)])
	}
	return all.String()
}
