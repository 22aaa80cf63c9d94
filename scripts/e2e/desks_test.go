package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// deskOf returns a client of an official of departments.
func (c *stack) deskOf(id, role string, departments ...string) *client.Client {
	return c.As(id, token(jwt.MapClaims{"sub": id, "role": role, "departments": departments}))
}

// An official of one department cannot tell whether there is a private report of another,
// whatever is done to it.
func TestTwoOfficialsWorlds(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "department/department", playDesks)
}

// playDesks lets a city of two departments work, and returns what an official of the one can
// obtain. In the other world the other department has a private report; the leak brings it
// to the official's department for a moment.
func playDesks(t *testing.T, other, leak bool) world {
	t.Helper()
	c, w := prepareStack(t), world{}
	c.switchCommentsOn()
	c.report.env["DESK_SCOPE"], c.notification.env["DESK_SCOPE"] = "department", "department"
	c.start()
	ana, ben, pavel := c.userOf("ana", "resident"), c.userOf("ben", "resident"), c.userOf("pavel", "operator")
	olga, rita, mona := c.deskOf("olga", "official", "lights"), c.deskOf("rita", "official", "roads"), c.deskOf("mona", "moderator")
	departments := map[string]any{"departments": []map[string]any{
		{"id": 1, "name": "Lights", "category_ids": []int{2}}, {"id": 2, "name": "Roads", "category_ids": []int{1}},
	}}
	do := func(user *client.Client, method, path string, body any) {
		t.Helper()
		if err := user.Do(t.Context(), method, path, body, nil); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	do(pavel, http.MethodPut, "/reports/departments", departments)
	c.setAreas(pavel)
	olgas, monas, live := watch(t, olga), watch(t, mona), c.listenTo(olga, "/notifications/stream", "")
	var before struct {
		At string `json:"last_event_id"`
	}
	if err := olga.Do(t.Context(), http.MethodGet, "/notifications", nil, &before); err != nil {
		t.Fatal(err)
	}
	first := file(t, ana, "A dark crossing")
	olgas.await(1)
	monas.await(1)
	in := draft("A hole in the road")
	in.CategoryID = 1
	roads, err := ana.CreateReport(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	monas.await(2)

	id := uuid.New()
	if other {
		id = c.workElsewhere(ben, rita, mona).ID
		monas.await(5) // it, an answer and a dispute, too
	}
	if leak {
		execute(t, c.reportDB, `update reports set department_id = 1 where visibility = 'officials'`)
	}
	move(t, olga, first, "in_progress", "Seen")
	second := file(t, ana, "A dark corner")
	olgas.await(2)
	c.awaitHandled()

	do(olga, http.MethodPut, "/reports/views", map[string]any{"views": []map[string]string{{"name": "All", "filters": "order=due"}}})
	concealed := client.Report{ID: id}
	for _, query := range []string{"", "?hidden=true", "?withdrawn=true", "?disputed=true", "?waiting=true", "?not_answered=true", "?overdue=1", "?q=landlord", "?q=" + id.String(),
		"?id=" + id.String(), "?department=2", "?assignee=rita", "?order=due", "?order=changed", "?order=score", "?area=south", "?category=1"} {
		for _, path := range []string{"/reports/queue", "/reports/queue/counts", "/reports/export", "/reports/numbers"} {
			w["olga's lists"] = append(w["olga's lists"], c.answersOf(olga, http.MethodGet, path+query))
		}
	}
	for _, path := range []string{"/reports/me", "/reports/mine/data", "/reports/queue/map?zoom=18&bbox=107,-7,108,-6", "/notifications", "/notifications/unread-count",
		"/me/follows", "/me/data", "/reports/" + roads.ID.String() + "/work", "/reports/" + roads.ID.String() + "/dialogue", "/reports/" + first.ID.String() + "/work"} {
		w["olga"] = append(w["olga"], c.answersOf(olga, http.MethodGet, path))
	}
	for _, op := range []operation{
		{http.MethodPost, "/reports/moves", json.RawMessage(`{"status":"resolved","reports":[{"id":"` + id.String() + `"},{"id":"` + roads.ID.String() + `"},{"id":"` + second.ID.String() + `"}]}`), ""},
		{http.MethodPut, "/reports/" + second.ID.String() + "/duplicate-of", json.RawMessage(`{"original":"` + id.String() + `"}`), ""},
		{http.MethodPost, "/callers/state", json.RawMessage(`{"report_id":"` + id.String() + `"}`), ""},
		{http.MethodPut, "/me/follows/" + id.String(), nil, ""},
	} {
		w["olga"] = append(w["olga"], c.answerTo(olga, op))
	}
	w["olga about it"] = c.answersAbout(olga, concealed, true)
	w["olga's moves"] = []string{c.answersOf(olga, http.MethodGet, "/reports/moves")}
	w["olga's stream"] = live.lines()
	replayed := c.listenTo(olga, "/notifications/stream", before.At)
	replayed.await(t, 2)
	w["olga's stream again"] = replayed.lines()
	return w
}

// A moderator has the desk, and what officials see of a report's page.
func TestPageModeratorHasTheDesk(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	filed := file(t, c.signIn("Ana", "resident"), "A dark crossing")
	page := c.reader(c.signIn("Mona", "moderator")).open("", browser.Width(390, 844))
	page.do(browser.Click("nav a", "Queue"), browser.See(".task", filed.Title), browser.Click(".task a", filed.Title),
		browser.Click(".desk-detail summary", "Duplicates and moderation"), browser.See("#moderation", "Visibility"))
	page.checkFaults()
}

// workElsewhere has a private report filed for another department, and worked on.
func (c *stack) workElsewhere(ben, rita, mona *client.Client) client.Report {
	c.t.Helper()
	t, in := c.t, draft("A landlord threatens us")
	in.PrivacyLevel, in.Visibility, in.CategoryID = "anonymous", "officials", 1
	report, err := ben.CreateReport(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	path := "/reports/" + report.ID.String()
	for _, body := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, path + "/notes", map[string]string{"text": "The landlord again"}},
		{http.MethodPut, path + "/assignment", map[string]any{"assignee": map[string]string{"id": "rita", "name": "Rita"}}},
		{http.MethodPost, "/reports/moves", map[string]any{"status": "in_progress", "note": "The landlord is known", "reports": []map[string]any{{"id": report.ID}}}},
	} {
		if err := rita.Do(t.Context(), body.method, body.path, body.body, nil); err != nil {
			t.Fatalf("%s %s: %v", body.method, body.path, err)
		}
	}
	say(t, rita, report, "We come on Monday")
	askReporter(t, rita, report, "Which door?")
	answerQuestion(t, ben, report, "The back door")
	move(t, rita, report, "resolved", "The landlord has left")
	giveVerdict(t, ben, report, false, "The landlord is back")
	if err := mona.Do(t.Context(), http.MethodGet, path+"/work", nil, nil); err != nil {
		t.Fatalf("a moderator reads about it: %v", err)
	}
	return report
}
