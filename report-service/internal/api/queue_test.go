package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// setDepartments gives lamps to one department, and roads to another.
func (s *testServer) setDepartments() {
	s.t.Helper()
	const body = `{"departments":[{"id":7,"name":"Lights","category_ids":[2]},{"id":8,"name":"Roads","category_ids":[1]}]}`
	ok[reportapi.Departments](s, call{method: "PUT", path: "/reports/departments", token: token(s.t, "pavel", auth.Operator), body: body}, http.StatusOK)
}

// fileAbout files a report of a category with a title.
func (s *testServer) fileAbout(token string, category int, title string) uuid.UUID {
	s.t.Helper()
	body := strings.NewReplacer("Dark lamp", title, `"category_id":2`, fmt.Sprintf(`"category_id":%d`, category)).Replace(newReport)
	rep, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: token, body: body}, http.StatusCreated)
	return rep.ID
}

// queue returns the titles that a query shows, over pages of two.
func (s *testServer) queue(token, query string) (titles []string) {
	s.t.Helper()
	cursor := ""
	for {
		page, _ := ok[reportapi.TaskPage](s, call{method: "GET", path: "/reports/queue?limit=2&" + query + cursor, token: token}, http.StatusOK)
		for _, r := range page.Reports {
			titles = append(titles, r.Title)
		}
		if page.NextCursor == "" {
			return titles
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// queueMap returns the titles of the reports on the queue's map, sorted.
func (s *testServer) queueMap(token, filters string) (titles []string) {
	s.t.Helper()
	points, _ := ok[reportapi.MapPoints](s, call{method: "GET", path: "/reports/queue/map?zoom=14&bbox=107,-7,108,-6&" + filters, token: token}, http.StatusOK)
	for _, p := range points.Points {
		titles = append(titles, p.Title)
	}
	slices.Sort(titles)
	return titles
}

func TestQueue(t *testing.T) { //nolint:funlen // every part of the queue, one after the other
	t.Parallel()
	s := newServer(t)
	s.setDepartments()
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	ids := make(map[string]uuid.UUID)
	for i, title := range []string{"a lamp", "a hole", "a dog", "another lamp"} {
		ids[title] = s.fileAbout(ann, []int{2, 1, 9, 2}[i], title)
	}
	assign := func(title, body string) {
		t.Helper()
		ok[reportapi.Work](s, call{method: "PUT", path: "/reports/" + ids[title].String() + "/assignment", token: olga, body: body}, http.StatusOK)
	}
	assign("a lamp", `{"assignee":{"id":"olga","name":"Olga"}}`)
	assign("a dog", `{"assignee":{"id":"oskar","name":"Oskar"},"department_id":7}`)
	ok[reportapi.VoteResult](s, call{method: "POST", path: "/reports/" + ids["a dog"].String() + "/vote", token: token(t, "ben", auth.Resident), body: `{"vote_type":"upvote"}`}, http.StatusOK)
	ok[reportapi.Report](s, call{method: "PATCH", path: "/reports/" + ids["a hole"].String() + "/status", token: olga, body: `{"status":"in_progress"}`}, http.StatusOK)

	for query, want := range map[string][]string{
		"":                           {"a lamp", "a hole", "a dog", "another lamp"},
		"order=newest":               {"another lamp", "a dog", "a hole", "a lamp"},
		"order=changed":              {"a hole", "a dog", "another lamp", "a lamp"},
		"order=score&status=pending": {"a dog", "another lamp", "a lamp"},
		"status=in_progress":         {"a hole"},
		"category=2":                 {"a lamp", "another lamp"},
		"department=7":               {"a lamp", "a dog", "another lamp"},
		"department=8&department=7":  {"a lamp", "a hole", "a dog", "another lamp"},
		"assignee=me":                {"a lamp"},
		"assignee=oskar&q=dog":       {"a dog"},
		"assignee=none&department=7": {"another lamp"},
		"bbox=107,-7,108,-6&q=hole":  {"a hole"},
		"bbox=10,-7,11,-6":           nil,
		"filed_from=2001-01-01T00:00:00Z&filed_to=2002-01-01T00:00:00Z": nil,
		"filed_from=2001-01-01T00:00:00%2B07:00&category=9":             {"a dog"},
		"q=!": nil,
	} {
		got := s.queue(olga, query)
		if !slices.Equal(got, want) {
			t.Errorf("queue?%s: %q, want %q", query, got, want)
		}
		filters := strings.NewReplacer("order=newest", "", "order=changed", "", "order=score&", "").Replace(query)
		counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts?" + filters, token: olga}, http.StatusOK)
		if counts.Total != int64(len(want)) {
			t.Errorf("queue/counts?%s: total %d, want %d", filters, counts.Total, len(want))
		}
		if strings.Contains(query, "bbox") {
			continue
		}
		slices.Sort(want)
		if got := s.queueMap(olga, filters); !slices.Equal(got, want) {
			t.Errorf("queue/map?%s: %q, want %q", filters, got, want)
		}
	}
	for order, want := range map[string][]string{
		"changed": {"a hole", "a dog", "another lamp", "a lamp"},
		"score":   {"a dog", "another lamp", "a hole", "a lamp"},
	} { // everybody has these, page by page
		var got []string
		for path := "/reports?limit=3&order=" + order; path != ""; {
			page, _ := ok[reportapi.ReportPage](s, call{method: "GET", path: path}, http.StatusOK)
			for _, r := range page.Reports {
				got = append(got, r.Title)
			}
			if path = ""; page.NextCursor != "" {
				path = "/reports?limit=3&order=" + order + "&cursor=" + page.NextCursor
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("reports?order=%s: %q, want %q", order, got, want)
		}
	}
	counts, _ := ok[reportapi.QueueCounts](s, call{method: "GET", path: "/reports/queue/counts?status=pending&assignee=none", token: olga}, http.StatusOK)
	if want := []reportapi.StatusCount{{Status: "in_progress", Count: 1}, {Status: "pending", Count: 1}}; !slices.Equal(counts.Statuses, want) {
		t.Errorf("statuses of what nobody has: %v, want %v", counts.Statuses, want)
	}
	if want := []reportapi.AssigneeCount{{Count: 1}, {ID: "oskar", Name: "Oskar", Count: 1}, {ID: "olga", Name: "olga", Count: 1}}; !slices.Equal(counts.Assignees, want) {
		t.Errorf("assignees of what is pending: %v, want %v", counts.Assignees, want)
	}
	for _, wrong := range []string{"department=0", "department=x", "filed_from=today", "order=best", "assignee=", "cursor=AAAA", "status=odd"} {
		if a := s.do(call{method: "GET", path: "/reports/queue?" + wrong, token: olga}); a.StatusCode != http.StatusBadRequest {
			t.Errorf("queue?%s: %d %s, want 400", wrong, a.StatusCode, a.body)
		}
	}
}

// Officials can see assignments and who made them. A repeated assignment changes
// nothing.
func TestAssignment(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.setDepartments()
	olga := token(t, "olga", auth.Official)
	path := "/reports/" + s.fileAbout(token(t, "ann", auth.Resident), 2, "a lamp").String()
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if w := work.Report; !w.Routed || w.DepartmentName != "Lights" || w.Assignee.ID != "" || len(work.Acts) != 0 {
		t.Errorf("a new report: %+v, want it with the department of its category", work)
	}
	for _, body := range []string{`{"assignee":{"id":"oskar","name":"oskar"},"department_id":8}`, `{"assignee":{"id":"oskar","name":"Another name"},"department_id":8}`, `{}`} {
		work, _ = ok[reportapi.Work](s, call{method: "PUT", path: path + "/assignment", token: olga, body: body}, http.StatusOK)
	}
	ok[reportapi.Report](s, call{method: "PATCH", path: path + "/status", token: token(t, "oskar", auth.Official), body: `{"status":"rejected","note":"it is bright"}`}, http.StatusOK)
	work, _ = ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	got := ""
	for _, a := range work.Acts {
		got += fmt.Sprintf("%s %s [%s] %s>%s; ", a.By.Name, a.Action, a.Assignee.Name, a.DepartmentName, a.Text)
	}
	if want := "olga assign [oskar] Roads>; olga assign [] >; oskar move [] >it is bright; "; got != want {
		t.Errorf("acts %q\nwant %q", got, want)
	}
	if a := s.do(call{method: "PUT", path: path + "/assignment", token: olga, body: `{"department_id":99}`}); a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "/department_id") {
		t.Errorf("an unknown department: %d %s", a.StatusCode, a.body)
	}
	nowhere := "/reports/" + uuid.NewString()
	for _, c := range []call{
		{method: "GET", path: nowhere + "/work"},
		{method: "PUT", path: nowhere + "/assignment", body: `{}`},
		{method: "POST", path: nowhere + "/notes", body: `{"text":"hm"}`},
	} {
		c.token = olga
		if a := s.do(c); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s: %d, want 404", c.method, c.path, a.StatusCode)
		}
	}
}

// Departments are replaced as a whole: a removed one has no reports.
func TestDepartments(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.setDepartments()
	olga, pavel := token(t, "olga", auth.Official), token(t, "pavel", auth.Operator)
	path := "/reports/" + s.fileAbout(token(t, "ann", auth.Resident), 2, "a lamp").String()
	ok[reportapi.Work](s, call{method: "PUT", path: path + "/assignment", token: olga, body: `{"department_id":8}`}, http.StatusOK)
	const swapped = `{"departments":[{"id":7,"name":"Roads","category_ids":[]},{"id":9,"name":"Lights","category_ids":[2,3]}]}`
	for range 2 {
		got, _ := ok[reportapi.Departments](s, call{method: "PUT", path: "/reports/departments", token: pavel, body: swapped}, http.StatusOK)
		if len(got.Departments) != 2 || got.Departments[0].Name != "Roads" || !slices.Equal(got.Departments[1].CategoryIds, []int32{2, 3}) {
			t.Errorf("departments %+v", got)
		}
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if work.Report.DepartmentID != 9 || !work.Report.Routed {
		t.Errorf("the report is with %+v, want 9, by its category", work.Report)
	}
	for _, wrong := range []string{
		`{"departments":[{"id":1,"name":"A","category_ids":[4711]}]}`,
		`{"departments":[{"id":1,"name":"A","category_ids":[1]},{"id":2,"name":"B","category_ids":[1]}]}`,
	} {
		if a := s.do(call{method: "PUT", path: "/reports/departments", token: pavel, body: wrong}); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", wrong, a.StatusCode, a.body)
		}
	}
	if a := s.do(call{method: "PUT", path: "/reports/departments", token: olga, body: swapped}); a.StatusCode != http.StatusForbidden {
		t.Errorf("an official replaces the departments: %d, want 403", a.StatusCode)
	}
}

// An internal note reaches officials, and nobody and nothing else: no other
// role, no answer for everyone, no message. One table has it.
func TestInternalNotesStayInternal(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	path := "/reports/" + s.file(ann, "anonymous").ID.String()
	const secret = "kenari-4b1d"
	for _, c := range []call{
		{method: "POST", path: path + "/notes", body: `{"text":"  the landlord is ` + secret + ` "}`},
		{method: "PUT", path: path + "/assignment", body: `{"assignee":{"id":"` + secret + `","name":"` + secret + `"}}`},
		{method: "PATCH", path: path + "/status", body: `{"status":"resolved"}`},
	} {
		c.token = olga
		if a := s.do(c); a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: path + "/work", token: olga}, http.StatusOK)
	if len(work.Acts) != 3 || work.Acts[0].Text != "the landlord is "+secret || work.Report.Notes != 1 {
		t.Errorf("officials see %+v, want the note", work)
	}
	if strings.Contains(s.logs.String(), secret) {
		t.Error("the log has it")
	}
	for role, reader := range map[string]string{"nobody": "", "the reporter": ann, "an operator": token(t, "pavel", auth.Operator)} {
		for _, p := range []string{
			path, path + "/history", path + "/work", "/reports", "/reports/mine", "/reports?q=" + secret, "/reports/queue", "/reports/queue/counts",
			"/reports/departments", "/categories", "/admin/outbox/messages?status=pending", "/admin/outbox/audit", "/admin/outbox/stats",
		} {
			a := s.do(call{method: "GET", path: p, token: reader})
			if strings.Contains(string(a.body), secret) {
				t.Errorf("GET %s shows %s what is internal: %s", p, role, a.body)
			}
			if internal := strings.Contains(p, "/work") || strings.Contains(p, "/queue"); internal && a.StatusCode/100 != 4 {
				t.Errorf("GET %s as %s: %d, want it refused", p, role, a.StatusCode)
			}
		}
	}
	for _, table := range []string{"outbox_messages", "status_history", "idempotency_keys", "outbox_audit", "votes", "reporters"} {
		var rows int
		if err := s.pool.QueryRow(t.Context(), `select count(*) from `+table+` t where t::text like '%`+secret+`%'`).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows of %s have it (error %v)", rows, table, err)
		}
	}
}
