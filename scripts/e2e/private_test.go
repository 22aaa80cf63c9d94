package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// Nobody but its reporter and officials can tell a report that only the city sees from a
// hidden one: not one that was filed so, nor one that officials have restricted, and not
// while they work on it. The worlds differ in nothing but how the report is concealed.
func TestPrivateLooksLikeHidden(t *testing.T) {
	t.Parallel()
	filed := func(visibility client.Visibility) client.NewReport {
		in := draft("A landlord threatens us")
		in.PrivacyLevel, in.Visibility = "anonymous", visibility
		return in
	}
	conceal := func(path string, body map[string]string) func(*testing.T, *client.Client, client.Report) {
		return func(t *testing.T, olga *client.Client, report client.Report) {
			t.Helper()
			if err := olga.Do(t.Context(), http.MethodPut, "/reports/"+report.ID.String()+path, body, nil); err != nil {
				t.Fatalf("conceal a report: %v", err)
			}
		}
	}
	worlds := make(map[string]world)
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) { // returns when all are over
		for name, concealed := range map[string]struct {
			in      client.NewReport
			by      func(*testing.T, *client.Client, client.Report)
			private bool
		}{
			"hidden":     {filed("public"), conceal("/hidden", map[string]string{"reason": "It names somebody"}), false},
			"filed so":   {filed("officials"), func(*testing.T, *client.Client, client.Report) {}, true},
			"restricted": {filed("public"), conceal("/visibility", map[string]string{"visibility": "officials"}), true},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := playConcealed(t, concealed.in, concealed.by, concealed.private)
				mu.Lock()
				defer mu.Unlock()
				worlds[name] = w
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, name := range []string{"filed so", "restricted"} {
		if worlds["hidden"].differsFrom(t, worlds[name]) {
			t.Errorf("a report that is %s can be told from a hidden one", name)
		}
	}
}

// playConcealed has a report filed that others must not see, and officials work on it if
// it is private. It returns what the others see from when it is concealed.
func playConcealed(t *testing.T, in client.NewReport, conceal func(*testing.T, *client.Client, client.Report), private bool) world {
	t.Helper()
	c, w := startStackWithComments(t), world{}
	ana, carl, olga, pavel := c.userOf("ana", "resident"), c.userOf("carl", "resident"), c.userOf("olga", "official"), c.userOf("pavel", "operator")
	carls := file(t, carl, "A dark square")
	report, err := ana.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatalf("file a report: %v", err)
	}
	conceal(t, olga, report)
	c.awaitHandled()
	feed, other, scoped := c.listenToFeed(), openOtherSystem(t), openOtherSystem(t)
	other.register(c, pavel)
	scoped.enter(pavel, "private")
	anas, carls2 := watch(t, ana), watch(t, carl)
	follow(t, carl, report)

	if private {
		c.workInPrivate(anas, scoped, ana, olga, report)
	}
	vote(t, olga, carls, "upvote")
	carls2.await(1)
	feed.await(t, 1)
	c.awaitOutcomes(other, 1)
	c.awaitHandled()

	for name, user := range map[string]*client.Client{"nobody": c.Client, "carl": carl, "pavel": pavel, "an auditor": c.userOf("paula", "auditor")} {
		w[name] = c.answersAbout(user, report, name == "nobody" || name == "carl")
	}
	for _, path := range []string{"/me/follows", "/notifications", "/notifications/unread-count"} {
		w["carl"] = append(w["carl"], c.answersOf(carl, "GET", path))
	}
	w["the feed"] = feed.lines()
	w.addOtherSystem(c, other)
	delete(w, "log of the worker") // which sends to the system with the scope, too
	w["the log of deliveries"] = []string{c.answersOf(pavel, "GET", other.path+"/deliveries")}
	return w
}

// workInPrivate has the city and the reporter go through all that can be done, and makes
// sure that the reporter and the system with the scope get to know of it.
func (c *stack) workInPrivate(anas *screen, scoped *otherSystem, ana, olga *client.Client, report client.Report) {
	c.t.Helper()
	move(c.t, olga, report, "in_progress", "The landlord was seen")
	say(c.t, olga, report, "We come on Monday")
	correct(c.t, olga, report)
	askReporter(c.t, olga, report, "Which door?")
	answerQuestion(c.t, ana, report, "The back door")
	move(c.t, olga, report, "resolved", "The landlord has left")
	giveVerdict(c.t, ana, report, false, "The landlord is back")
	anas.await(5) // two statuses, a reply, a correction and a question
	scoped.await(5)
	requests, _ := scoped.seen()
	for _, request := range requests {
		if !strings.Contains(request, `"private":true`) {
			c.t.Errorf("the other system is not told that it is private: %s", request)
		}
	}
}

// answersOf returns what user is answered, whatever the status.
func (c *stack) answersOf(user *client.Client, method, path string) string {
	c.t.Helper()
	return c.answerTo(user, operation{method, path, nil, path})
}

func (c *stack) answerTo(user *client.Client, op operation) string {
	c.t.Helper()
	status, answer, err := op.send(c.t.Context(), c.gateway.URL, user.Token())
	if err != nil {
		c.t.Errorf("%s %s: %v", op.method, op.path, err)
	}
	return withoutChance(fmt.Sprint(op.method, " ", op.path, " ", status, " ", string(answer)))
}

// answersAbout returns what user is answered to everything that can be asked about a
// report and all of them, and with writes to what can be done to it.
func (c *stack) answersAbout(user *client.Client, report client.Report, writes bool) (all []string) {
	c.t.Helper()
	for _, op := range c.describe(c.report).operations(map[string][]string{"id": {report.ID.String()}, "name": {"320.jpg"}}) {
		_, template, _ := strings.Cut(op.template, " ")
		about := strings.HasPrefix(template, "/reports") || strings.HasPrefix(template, "/map") || strings.HasPrefix(template, "/open-data") || strings.HasPrefix(template, "/photos")
		if about && (op.method == http.MethodGet || writes && strings.Contains(template, "{id}")) {
			all = append(all, c.answerTo(user, op))
		}
	}
	for _, path := range []string{"/reports?q=landlord", "/reports?order=changed", "/map/points?zoom=18&bbox=107,-7,108,-6&q=landlord"} {
		all = append(all, c.answersOf(user, http.MethodGet, path))
	}
	return all
}
