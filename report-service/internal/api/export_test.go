package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// An export has every report once, over its parts, and does not tell who filed
// it. What looks like a formula is text.
func TestExport(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann-canary", auth.Resident), token(t, "olga", auth.Official)
	s.fileAbout(ann, 2, "=HYPERLINK(1) says Bob")
	s.file(ann, "anonymous")
	if _, err := s.pool.Exec(t.Context(), `
		with new as (
			insert into reports (id, title, description, category_id, privacy_level, status, version, created_at, updated_at)
			select gen_random_uuid(), 'Lamp, "dark" ' || n, '', 1, 'public', 'resolved', 1, now() - interval '1 day', now()
			from generate_series(1, 2500) n returning id
		)
		insert into reporters select id, 'ann-canary', 'ann-canary' from new`); err != nil {
		t.Fatal(err)
	}
	read := func(query string) [][]string {
		t.Helper()
		a := s.do(call{method: "GET", path: "/reports/export?" + query, token: olga})
		if a.StatusCode != http.StatusOK {
			t.Fatalf("export: %d %s", a.StatusCode, a.body)
		}
		text, ok := strings.CutPrefix(string(a.body), "\uFEFF")
		if !ok {
			t.Errorf("the export begins with %.20q, want a byte order mark", text)
		}
		r := csv.NewReader(strings.NewReader(text))
		if strings.Contains(query, "separator=semicolon") || strings.Contains(query, "separator=%3B") {
			r.Comma = ';'
		} else if strings.Contains(query, "separator=tab") {
			r.Comma = '\t'
		}
		lines, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(a.body), "canary") {
			t.Error("the export tells who filed a report")
		}
		return lines
	}
	all := read("")
	seen := make(map[string]bool)
	for _, line := range all[1:] {
		seen[line[0]] = true
	}
	if len(all) != 2503 || len(seen) != 2502 {
		t.Errorf("%d lines about %d reports, want 2503 about 2502", len(all), len(seen))
	}
	titles := fmt.Sprint(all[1][6], all[2501][6])
	if !strings.HasPrefix(titles, `Lamp, "dark" `) || !strings.HasSuffix(titles, "'=HYPERLINK(1) says Bob") {
		t.Errorf("titles %q, want the oldest first and no formula", titles)
	}
	if lines := read("status=pending&category=2"); len(lines) != 3 {
		t.Errorf("%d lines with filters, want 3", len(lines))
	}
	for _, separator := range []string{"comma", ",", "semicolon", "%3B", "tab"} {
		if lines := read("status=pending&category=2&separator=" + separator); len(lines) != 3 || len(lines[1]) != 20 || lines[0][0] != "id" {
			t.Errorf("with separator %s: %q, want 3 lines of 20 cells", separator, lines)
		}
	}
	if a := s.do(call{method: "GET", path: "/reports/export?separator=x", token: olga}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown separator: %d, want 400", a.StatusCode)
	}
	if a := s.do(call{method: "GET", path: "/reports/export", token: ann}); a.StatusCode != http.StatusForbidden {
		t.Errorf("a resident exports: %d, want 403", a.StatusCode)
	}
}

// The periods of figures begin at midnight in the city.
func TestNumbersOfTheCitysDay(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	early, late := s.fileAbout(ann, 2, "before seven in Bogor"), s.fileAbout(ann, 1, "in the evening")
	for id, at := range map[uuid.UUID]string{early: "2026-03-01T06:59:59+07:00", late: "2026-03-01T23:59:59+07:00"} {
		if _, err := s.pool.Exec(t.Context(), `update status_history set changed_at = $2 where report_id = $1`, id, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.pool.Exec(t.Context(), `insert into calendar (zone, week, holidays) values ('Asia/Jakarta', '[[],[],[],[],[],[],[]]', '{}')`); err != nil {
		t.Fatal(err)
	}
	for interval, want := range map[string]string{
		"day": "2026-03-01T00:00:00+07:00", "week": "2026-02-23T00:00:00+07:00", "month": "2026-03-01T00:00:00+07:00",
	} {
		numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", token: olga,
			path: "/reports/numbers?filed_from=2026-01-01T00:00:00%2B07:00&filed_to=2026-12-01T00:00:00+07:00&interval=" + interval}, http.StatusOK)
		if len(numbers.Numbers) != 2 {
			t.Fatalf("by %s: %+v, want both reports in one period", interval, numbers)
		}
		for _, n := range numbers.Numbers {
			if got := n.Begin.Format(time.RFC3339); got != want || n.Filed != 1 {
				t.Errorf("by %s: %d in the period from %s, want 1 from %s", interval, n.Filed, got, want)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	lamp, hole := s.fileAbout(ann, 2, "a lamp"), s.fileAbout(ann, 1, "a hole")
	for _, body := range []string{`{"status":"resolved"}`, `{"status":"in_progress","note":"not yet"}`, `{"status":"resolved"}`} {
		ok[reportapi.Report](s, call{method: "PATCH", path: "/reports/" + lamp.String() + "/status", token: olga, body: body}, http.StatusOK)
	}
	if _, err := s.pool.Exec(t.Context(), `update status_history set changed_at = '2026-01-31T23:00Z' where report_id = $1`, hole); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), `update status_history set changed_at = '2026-02-02T00:00Z' where report_id = $1`, lamp); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                     "2026-01-01 1: 1 0 0; 2026-02-01 2: 1 2 0; ",
		"&interval=week":       "2026-01-26 1: 1 0 0; 2026-02-02 2: 1 2 0; ",
		"&category=1":          "2026-01-01 1: 1 0 0; ",
		"&bbox=0,0,1,1":        "",
		"&q=lamp&interval=day": "2026-02-02 2: 1 2 0; ",
	} {
		numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", token: olga,
			path: "/reports/numbers?filed_from=2026-01-01T00:00:00Z&filed_to=2026-12-01T00:00:00Z" + query}, http.StatusOK)
		got := ""
		for _, n := range numbers.Numbers {
			got += fmt.Sprintf("%s %d: %d %d %d; ", n.Begin.Format("2006-01-02"), n.CategoryID, n.Filed, n.Resolved, n.Rejected)
		}
		if got != want {
			t.Errorf("numbers%s: %q, want %q", query, got, want)
		}
	}
	numbers, _ := ok[reportapi.Numbers](s, call{method: "GET", token: olga,
		path: "/reports/numbers?filed_from=2026-01-01T00:00:00Z&filed_to=2026-12-01T00:00:00Z"}, http.StatusOK)
	if len(numbers.Departments) != 1 || numbers.Departments[0].OpenAtEnd != 1 || numbers.OpenAtEnd != 1 {
		t.Errorf("open at the end are %d, of the departments %+v, want one of none", numbers.OpenAtEnd, numbers.Departments)
	}
	if a := s.do(call{method: "GET", token: olga, path: "/reports/numbers?interval=day&filed_from=2020-01-01T00:00:00Z"}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("too many days: %d, want 400", a.StatusCode)
	}
}
