package api_test

import (
	"net/http"
	"testing"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// Operators see the jobs, let them rest and go on, and run them; all of it is
// audited, and nobody else may.
func TestSchedules(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, sql := range []string{
		`insert into schedules (name, spec, catch_up, last_due, next_at) values ('overdue', 'every 1m0s', 'last', now(), now() + interval '1 minute')`,
		`insert into schedule_runs (job, period, due_at, state, done, total, started_at, ended_at)
			select 'overdue', n::text, now() - n * interval '1 minute', 'done', 1, 1, now(), now() from generate_series(1, 3) n`,
		`insert into schedule_runs (job, period, due_at, state, failures, error) values ('overdue', '4', now() - interval '4 minutes', 'failed', 22, 'no luck')`,
	} {
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	pavel, olga := token(t, "pavel", auth.Operator), token(t, "olga", auth.Official)
	const path = "/admin/reports/schedules"
	list, _ := ok[reportapi.ScheduleList](s, call{method: "GET", path: path, token: pavel}, http.StatusOK)
	if len(list.Schedules) != 1 || list.Schedules[0].Latest.Period != "1" || list.Schedules[0].Paused {
		t.Errorf("schedules are %+v, want one whose last run is 1", list)
	}
	first, _ := ok[reportapi.ScheduleRunPage](s, call{method: "GET", path: path + "/overdue/runs?limit=3", token: pavel}, http.StatusOK)
	rest, _ := ok[reportapi.ScheduleRunPage](s, call{method: "GET", path: path + "/overdue/runs?limit=3&cursor=" + first.NextCursor, token: pavel}, http.StatusOK)
	if len(first.Runs) != 3 || len(rest.Runs) != 1 || rest.Runs[0].Error != "no luck" || rest.NextCursor != "" {
		t.Errorf("pages of runs are %+v and %+v, want 3 and the failed one", first, rest)
	}

	operate := func(action, body, token string, want int) {
		t.Helper()
		got := s.do(call{method: "POST", path: path + "/" + action, token: token, body: body})
		if got.StatusCode != want {
			t.Errorf("%s is answered with %d, want %d: %s", action, got.StatusCode, want, got.body)
		}
	}
	operate("overdue/pause", `{"reason":"too many"}`, pavel, http.StatusNoContent)
	operate("overdue/pause", `{"reason":"too many"}`, pavel, http.StatusNoContent)
	operate("overdue/run", `{"reason":"now"}`, pavel, http.StatusConflict)
	operate("overdue/resume", `{"reason":"few"}`, pavel, http.StatusNoContent)
	operate("overdue/run", `{"reason":"once more","period":"4"}`, pavel, http.StatusNoContent)
	operate("overdue/run", `{"reason":"once more","period":"4"}`, pavel, http.StatusConflict)
	operate("other/pause", `{"reason":"why"}`, pavel, http.StatusNotFound)
	operate("overdue/pause", `{}`, pavel, http.StatusBadRequest)
	operate("overdue/pause", `{"reason":"too many"}`, olga, http.StatusForbidden)

	audit, _ := ok[reportapi.ScheduleAudit](s, call{method: "GET", path: path + "/audit", token: pavel}, http.StatusOK)
	if len(audit.Acts) != 3 || audit.Acts[0].Action != "schedule_run" || audit.Acts[0].Period != "4" ||
		audit.Acts[0].Reason != "once more" || audit.Acts[2].Actor != "pavel" {
		t.Errorf("the audit is %+v, want a pause, a resume and a run", audit)
	}
}

// Operators set when the city works; officials read it, and let a report wait for
// an answer.
func TestCalendarAndWaiting(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ann, olga, pavel := token(t, "ann", auth.Resident), token(t, "olga", auth.Official), token(t, "pavel", auth.Operator)
	const path = "/reports/calendar"
	const body = `{"zone":"Asia/Jakarta","shifts":[{"day":"monday","from":"13:00","to":"24:00"},{"day":"monday","from":"08:00","to":"12:00"}],
		"holidays":["2026-12-25","2026-01-01","2026-12-25"],"targets":[{"category_id":2,"hours":48}]}`
	set, _ := ok[reportapi.Calendar](s, call{method: "PUT", path: path, token: pavel, body: body}, http.StatusOK)
	if len(set.Shifts) != 2 || set.Shifts[0].From != "08:00" || set.Shifts[1].To != "24:00" ||
		len(set.Holidays) != 2 || set.Holidays[0] != "2026-01-01" || len(set.Targets) != 1 || set.Targets[0].Hours != 48 {
		t.Errorf("the calendar is %+v, want what was set, in order", set)
	}
	for name, bad := range map[string]string{
		"zone":     `{"zone":"Local","shifts":[{"day":"monday","from":"08:00","to":"12:00"}],"holidays":[],"targets":[]}`,
		"shift":    `{"zone":"UTC","shifts":[{"day":"monday","from":"12:00","to":"12:00"}],"holidays":[],"targets":[]}`,
		"overlap":  `{"zone":"UTC","shifts":[{"day":"monday","from":"08:00","to":"12:00"},{"day":"monday","from":"11:00","to":"12:00"}],"holidays":[],"targets":[]}`,
		"holiday":  `{"zone":"UTC","shifts":[{"day":"monday","from":"08:00","to":"12:00"}],"holidays":["2026-02-30"],"targets":[]}`,
		"category": `{"zone":"UTC","shifts":[{"day":"monday","from":"08:00","to":"12:00"}],"holidays":[],"targets":[{"category_id":999,"hours":1}]}`,
		"twice":    `{"zone":"UTC","shifts":[{"day":"monday","from":"08:00","to":"12:00"}],"holidays":[],"targets":[{"category_id":2,"hours":1},{"category_id":2,"hours":2}]}`,
		"no shift": `{"zone":"UTC","shifts":[],"holidays":[],"targets":[]}`,
	} {
		if got := s.do(call{method: "PUT", path: path, token: pavel, body: bad}); got.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: answered with %d, want 400: %s", name, got.StatusCode, got.body)
		}
	}
	if got := s.do(call{method: "PUT", path: path, token: olga, body: body}); got.StatusCode != http.StatusForbidden {
		t.Errorf("an official sets the calendar: answered with %d, want 403", got.StatusCode)
	}
	ok[reportapi.Calendar](s, call{method: "GET", path: path, token: olga}, http.StatusOK)

	id := s.fileAbout(ann, 2, "a lamp").String()
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + id + "/work", token: olga}, http.StatusOK)
	if work.Report.DueAt.IsZero() || work.Report.Waiting {
		t.Errorf("officials see %+v, want a time until when it is to be finished", work.Report)
	}
	outlook := call{method: "GET", path: "/reports/" + id + "/outlook", token: ann}
	if got, _ := ok[reportapi.Outlook](s, outlook, http.StatusOK); !got.DueAt.Equal(work.Report.DueAt) || got.DepartmentName != "" {
		t.Errorf("the reporter sees %+v, want what officials see: %+v", got, work.Report)
	}
	for reader, want := range map[string]int{"": http.StatusUnauthorized, token(t, "ben", auth.Resident): http.StatusNotFound, olga: http.StatusNotFound} {
		outlook.token = reader
		s.wantStatus(want, outlook)
	}
	outlook.token = ann
	question, _ := ok[reportapi.Question](s, call{method: "POST", path: "/reports/" + id + "/questions", token: olga, body: `{"text":"which lamp?"}`}, http.StatusCreated)
	work, _ = ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + id + "/work", token: olga}, http.StatusOK)
	if !work.Report.DueAt.IsZero() || !work.Report.Waiting || work.Report.Question == nil || len(work.Acts) != 1 || work.Acts[0].Text != "" {
		t.Errorf("officials see %+v, want that it waits for an answer", work)
	}
	if _, err := s.pool.Exec(t.Context(), `
		with d as (insert into departments (id, name) values (7, 'Lights') returning id)
		update categories set department_id = d.id from d where categories.id = 2`); err != nil {
		t.Fatal(err)
	}
	if got, _ := ok[reportapi.Outlook](s, outlook, http.StatusOK); !got.DueAt.IsZero() || got.DepartmentName != "Lights" {
		t.Errorf("the reporter sees %+v, want the department, and no end while the city waits", got)
	}
	s.wantStatus(http.StatusNoContent, call{method: "DELETE", path: "/reports/" + id + "/questions/" + question.ID.String(), token: olga})
	work, _ = ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + id + "/work", token: olga}, http.StatusOK)
	if work.Report.DueAt.IsZero() || work.Report.Waiting || len(work.Acts) != 2 {
		t.Errorf("officials see %+v, want that the clock runs again", work)
	}
	if got := s.queue(olga, "order=due&overdue=1"); len(got) != 0 {
		t.Errorf("overdue are %v, want none", got)
	}
	if got := s.queue(olga, "order=due"); len(got) != 1 {
		t.Errorf("the queue has %v, want the report", got)
	}
}
