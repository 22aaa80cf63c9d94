package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
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
func playDesks(t *testing.T, elsewhere, leak bool) world { //nolint:funlen // a day of two departments, in its order
	t.Helper()
	c, w := prepareStack(t), world{}
	c.switchCommentsOn()
	c.switchDepartmentsOn()
	c.photo.env["PHOTO_MODERATION"] = "before"
	c.start()
	mails, other := c.openMailServer(), openOtherSystem(t)
	c.startPhotoWorker()
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
	other.register(c, pavel)
	mails.giveAddress(olga, "olga@mail.test")
	do(olga, http.MethodPut, "/me/preferences", map[string]any{"email": []string{"report.status.updated"}})
	do(olga, http.MethodPut, "/me/digest", map[string]any{"frequency": "daily"})
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
	do(olga, http.MethodPut, "/me/follows/"+first.ID.String(), nil)
	c.photograph(ana, mona, first)
	in := draft("A hole in the road")
	in.CategoryID = 1
	roads, err := ana.CreateReport(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	monas.await(2)

	id := uuid.New()
	photos := []uuid.UUID{uuid.New(), uuid.New()}
	if elsewhere {
		var report client.Report
		report, photos = c.workElsewhere(ben, rita, mona)
		id = report.ID
		monas.await(5) // it, an answer and a dispute, too
	}
	if leak {
		execute(t, c.reportDB, `update reports set department_id = 1 where visibility = 'officials'`)
	}
	c.awaitHandled() // what comes by different queues has no order
	move(t, olga, first, "in_progress", "Seen")
	say(t, mona, first, "We come on Monday")
	c.awaitHandled()
	second := file(t, ana, "A dark corner")
	olgas.await(2)
	vote(t, ben, first, "upvote")
	c.awaitHandled()
	c.awaitOutcomes(other, 7)

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
	for _, photo := range photos {
		w["olga's photos"] = append(w["olga's photos"], c.answersOf(olga, http.MethodGet, "/photos/"+photo.String()+"/320.jpg"))
	}
	for _, path := range []string{"/reports/queue/photos", "/reports/queue/waiting", "/reports/" + first.ID.String() + "/photos", "/reports/" + id.String() + "/photos"} {
		w["olga's photos"] = append(w["olga's photos"], c.answersOf(olga, http.MethodGet, path))
	}
	w["olga about it"] = c.answersAbout(olga, concealed, true)
	w["olga's moves"] = []string{c.answersOf(olga, http.MethodGet, "/reports/moves")}
	live.await(t, 4) // two of her department, two of what she follows
	w["olga's stream"] = live.lines()
	replayed := c.listenTo(olga, "/notifications/stream", before.At)
	replayed.await(t, 4)
	w["olga's stream again"] = replayed.lines()
	w["a webhook"] = other.said()
	w["olga's mails"] = c.mailsTo("olga@mail.test", mails)
	return w
}

// switchDepartmentsOn has officials work for departments, before the stack starts.
func (c *stack) switchDepartmentsOn() {
	c.report.env["DESK_SCOPE"], c.notification.env["DESK_SCOPE"] = "department", "department"
}

// photograph has a resident add two photos to a report, of which a moderator shows one.
func (c *stack) photograph(by, mona *client.Client, report client.Report) []uuid.UUID {
	c.t.Helper()
	photos := []uuid.UUID{c.upload(by, report, smallPicture(c.t)), c.upload(by, report, smallPicture(c.t))}
	c.showPhoto(mona, report, photos[0])
	eventually.True(c.t, "the other photo is held", func() bool {
		var held int
		err := c.reportDB.QueryRow(c.t.Context(), `select count(*) from photos where state = 'held' and report_id = $1`, report.ID).Scan(&held)
		return err == nil && held == 1
	})
	return photos
}

// said returns what it was sent, in no order.
func (o *otherSystem) said() (all []string) {
	requests, _ := o.seen()
	for _, request := range requests {
		all = append(all, withoutChance(request))
	}
	slices.Sort(all)
	return slices.Compact(all) // one that is slow is sent again
}

// mailsTo returns what is mailed to an address, with the summary that is due.
func (c *stack) mailsTo(address string, mails *mailServer) (all []string) {
	c.t.Helper()
	execute(c.t, c.notificationDB, `update digests set next_at = now()`)
	execute(c.t, c.notificationDB, `update schedules set next_at = now() where name like 'digests%'`)
	eventually.True(c.t, "the summary is written, and no mail waits", func() bool {
		var left int
		err := c.notificationDB.QueryRow(c.t.Context(), `
			select (select count(*) from digests where next_at <= now()) + (select count(*) from deliveries where channel = 'email' and state = 'waiting')`).Scan(&left)
		return err == nil && left == 0
	})
	for _, m := range mails.await(0) {
		if m.to == address {
			all = append(all, withoutChance(oneTime.ReplaceAllString(m.subject+"\n"+m.text, "ONCE")))
		}
	}
	slices.Sort(all)
	return all
}

// oneTime is what is of one mail: a part of an address, a code, or when something happened.
var oneTime = regexp.MustCompile(`/[a-z]+/[\w-]{22,}|\b\d{6}\b|\d\d-\d\d-\d{4} \d\d\.\d\d`)

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

// An official of a department has a desk of that department: its filters, no acts of
// moderators, and a key that gives a report to another one, whose reports look as they do to
// residents.
func TestPageDepartmentDesk(t *testing.T) {
	t.Parallel()
	c := prepareStack(t)
	c.switchCommentsOn()
	c.switchDepartmentsOn()
	c.start()
	ana, oskar := c.signIn("Ana", "resident"), c.signIn("Oskar", "operator")
	c.nameDepartments(oskar)
	crossing, corner := file(t, ana, "A dark crossing"), file(t, ana, "A dark corner")
	in := draft("A hole in the road")
	in.CategoryID = 1
	hole, err := ana.CreateReport(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	comment(t, ana, hole, false)
	comment(t, ana, corner, false)

	desk := c.reader(c.deskOf("olga", "official", "lamps", "gone"))
	page := keys{tab: desk.open("queue", browser.Width(1366, 768))}
	page.do(browser.See(".workbench", "Departments: Lights."), browser.See(".workbench strong", "gone"),
		browser.See(".task", "A dark corner"), notListed("A hole in the road"),
		browser.Until(`[...[...document.querySelectorAll('.work-filters label')].find((label) => label.querySelector('span')?.textContent === 'Department')?.querySelectorAll('option') ?? []]
			.map(({ text }) => text.split(' ')[0]).join() === 'All,Lights'`),
		browser.Until(`!document.querySelector('nav a[href="/queue/photos"]')`))
	page.press("j")
	page.do(focusOn("A dark crossing"), browser.See(".desk-detail h2", "A dark crossing"), browser.See(".desk-detail summary", "Duplicates"),
		browser.Until(`!document.querySelector('#moderation, .more-acts .danger-quiet') && document.querySelector('.more-acts')`))
	page.checkAccessible("the desk of a department")
	page.press("?")
	page.do(browser.See(".keys-list div", "Forward to another department"), browser.Press(kb.Escape), browser.Until(`!document.querySelector('dialog')`), focusOn("A dark crossing"))
	page.press("w")
	page.do(browser.Until(`document.activeElement.matches('dialog select')`))
	page.checkAccessible("forwarding")
	page.press(kb.ArrowDown, "\t")
	page.do(browser.Until(`document.activeElement.matches('dialog input')`), browser.Insert("It is in the park"))
	page.press(kb.Enter)
	page.do(browser.See(".toast", "Roads"), browser.Until(`!document.querySelector('dialog')`), notListed("A dark crossing"),
		focusOn("A dark corner"), browser.See(".desk-detail h2", "A dark corner"))
	var work struct {
		Acts []struct{ Action, Text string }
	}
	err = c.deskOf("rita", "official", "roads").Do(t.Context(), http.MethodGet, "/reports/"+crossing.ID.String()+"/work", nil, &work)
	if err != nil || len(work.Acts) != 1 || work.Acts[0].Action != "forward" || work.Acts[0].Text != "It is in the park" {
		t.Errorf("the other department's official reads %+v, error %v", work, err)
	}

	page.do(browser.Go(c.gateway.URL+"/queue?status=all&report="+crossing.ID.String()), browser.See(".desk-detail [role=alert]", "Another department has this report"),
		browser.Until(`!document.querySelector('.desk-detail form')`), browser.Click(".desk-detail a", "Public page"), browser.See("h1", "A dark crossing"))
	// Of both it is known whose they are; comments of one's own cannot be hidden either.
	for id, works := range map[uuid.UUID]bool{hole.ID: false, corner.ID: true} {
		page.do(browser.Go(c.gateway.URL+"/reports/"+id.String()), browser.See(".comments .said", "It is dark again"),
			browser.Until(`performance.getEntriesByType('resource').some(({ name, responseEnd }) => name.endsWith('/work') && responseEnd > 0)`),
			browser.Until(fmt.Sprintf(`(document.querySelector('.status-form') !== null) === %t`, works)),
			browser.Until(`!document.querySelector('.report .danger-quiet, .photos button')`))
	}
	page.checkFaults()
}

// An operator reads and edits the codes of departments, no two of which are the same.
func TestPageDepartmentCodes(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	oskar := c.signIn("Oskar", "operator")
	c.nameDepartments(oskar)
	page := c.reader(oskar).open("ops/departments", browser.Width(1280, 800))
	codes := func(want string) browser.Action {
		return browser.Until(fmt.Sprintf(`[...document.querySelectorAll('input[maxlength="40"]')].map(({ value }) => value).join() === %q`, want))
	}
	page.do(codes("roads,lamps"), browser.Fill("Code", "Road works"), browser.Click("button", "Save departments"), browser.See("[role=alert]", "Lower-case letters"),
		browser.Fill("Code", "lamps"), browser.Click("button", "Save departments"), browser.See("[role=alert]", "Another department has this code"),
		browser.Fill("Code", "road-works"), browser.Click("button", "Save departments"), browser.See(".toast", "are saved"), codes("road-works,lamps"),
		browser.Reload(), codes("road-works,lamps"))
	page.checkFaults()
}

// nameDepartments has an operator enter two departments, one with a code of its own.
func (c *stack) nameDepartments(operator *client.Client) {
	c.t.Helper()
	departments := map[string]any{"departments": []map[string]any{
		{"id": 1, "name": "Roads", "category_ids": []int{1}}, {"id": 2, "code": "lamps", "name": "Lights", "category_ids": []int{2}},
	}}
	if err := operator.Do(c.t.Context(), http.MethodPut, "/reports/departments", departments, nil); err != nil {
		c.t.Fatal(err)
	}
}

// workElsewhere has a private report filed for another department, and worked on. It returns
// its photos, too.
func (c *stack) workElsewhere(ben, rita, mona *client.Client) (client.Report, []uuid.UUID) {
	c.t.Helper()
	t, in := c.t, draft("A landlord threatens us")
	in.PrivacyLevel, in.Visibility, in.CategoryID = "anonymous", "officials", 1
	report, err := ben.CreateReport(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	photos := c.photograph(ben, mona, report)
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
	return report, photos
}
