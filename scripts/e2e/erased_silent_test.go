package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Nobody can tell the reports of an erased person, and of a caller who was erased, from
// those of somebody who hides their name and never answers: officials work on all of them,
// by every operation that there is, until questions and verdicts have expired.
func TestErasedLooksSilent(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "erased/silent", playErasure)
}

// playErasure lets a resident and a caller file, and has an operator erase them, or others.
// It returns what officials and others see and do. With leak, the erased reporters are
// missing in the database, as they were once.
func playErasure(t *testing.T, erased, leak bool) world { //nolint:funlen // every operation, one after the other
	t.Helper()
	c, w := startStackWithComments(t), world{}
	ann, olga, pavel := c.userOf("ann", "resident"), c.userOf("olga", "official"), c.userOf("pavel", "operator")
	c.setAreas(pavel)
	c.setAssets(pavel)
	through, feed, other := c.spyOnExchanges(), c.listenToFeed(), openOtherSystem(t)
	other.register(c, pavel)
	events := 0
	await := func(n int) {
		t.Helper()
		events += n
		feed.await(t, events)
		c.awaitOutcomes(other, events)
	}
	fileAs := func(user *client.Client, title, privacy string) client.Report {
		t.Helper()
		in := draft(title)
		in.Asset = "lamps/L-7"
		if in.PrivacyLevel = client.PrivacyLevel(privacy); user == olga {
			in.Source = "telephone"
		}
		report, err := user.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
		if err != nil {
			t.Fatalf("file a report: %v", err)
		}
		await(1)
		return report
	}
	named := fileAs(ann, "A dark crossing", "public")
	asked, resolved, fresh := fileAs(ann, "A landlord threatens us", "anonymous"), fileAs(ann, "A dark corner", "anonymous"), fileAs(ann, "A dark stair", "anonymous")
	called := fileAs(olga, "A dark door", "anonymous")
	reports := []client.Report{named, asked, resolved, fresh, called}
	askReporter(t, olga, asked, "Which door?")
	for _, report := range []client.Report{resolved, called} {
		move(t, olga, report, "resolved", "Done")
		await(1)
	}
	comment(t, ann, fresh, true)
	await(1)
	c.awaitHandled()

	var caller string
	if err := c.reportDB.QueryRow(t.Context(), `select reporter_id from reporters where report_id = $1`, called.ID).Scan(&caller); err != nil {
		t.Fatal(err)
	}
	if erased {
		c.erase(pavel, "ann", caller)
	} else {
		if err := ann.Do(t.Context(), http.MethodPut, "/reports/"+named.ID.String()+"/privacy", map[string]string{"privacy_level": "anonymous"}, nil); err != nil {
			t.Fatal(err)
		}
		c.erase(pavel, "zoe", event.NewCaller())
	}
	await(1)
	if leak {
		if _, err := c.reportDB.Exec(t.Context(), `delete from reporters where reporter_id ~ '^(erased|caller):'`); err != nil {
			t.Fatal(err)
		}
	}
	c.awaitHandled()

	observers := map[string]*client.Client{"nobody": c.Client, "an auditor": c.userOf("paula", "auditor"), "olga": olga}
	look := func(when string) {
		for name, user := range observers {
			for _, report := range reports {
				for _, path := range []string{"", "/history", "/work", "/dialogue", "/outlook", "/comments", "/photos", "/preview"} {
					w[name+" "+when] = append(w[name+" "+when], c.answersOf(user, http.MethodGet, "/reports/"+report.ID.String()+path))
				}
			}
			for _, path := range []string{"/reports", "/map/points?zoom=3&bbox=-180,-90,180,90", "/map/assets?asset=lamps/L-7", "/open-data/reports.csv", "/reports/export", "/reports/queue", "/reports/queue/counts", "/reports/queue/waiting",
				"/open311/v2/requests.json", "/open311/v2/servicerequestupdates.json", "/reports/queue?not_answered=true", "/reports/queue?waiting=true", "/reports/numbers?interval=day"} {
				w[name+" "+when] = append(w[name+" "+when], c.answersOf(user, http.MethodGet, path))
			}
		}
	}
	does := func(method, path string, body any) {
		w["what olga does"] = append(w["what olga does"], c.answerTo(olga, operation{method, path, body, path}))
		c.awaitHandled()
	}
	look("after the erasure")
	// Questions are taken, and a reminder and the end come by themselves.
	for _, report := range reports {
		does(http.MethodPost, "/reports/"+report.ID.String()+"/questions", map[string]string{"text": "Since when?"})
		does(http.MethodPost, "/reports/"+report.ID.String()+"/questions", map[string]string{"text": "Since when?"})
	}
	look("while questions are open")
	for _, sql := range []string{`update questions set remind_at = now()`, `update questions set remind_at = null, ends_at = now()`} {
		if _, err := c.reportDB.Exec(t.Context(), sql+` where state = 'open'`); err != nil {
			t.Fatal(err)
		}
		c.runSchedule(pavel, "reports", "questions")
		eventually.True(t, "the questions are announced", func() bool {
			var due int
			err := c.reportDB.QueryRow(t.Context(), `select count(*) from questions where state = 'open' and coalesce(remind_at, ends_at) <= now()`).Scan(&due)
			return err == nil && due == 0
		})
		c.awaitHandled()
	}
	look("when questions have expired")
	for _, report := range reports {
		path := "/reports/" + report.ID.String()
		does(http.MethodPatch, path+"/status", map[string]string{"status": "in_progress", "note": "Seen"})
		does(http.MethodPost, path+"/replies", map[string]string{"text": "We come on Monday"})
		does(http.MethodPatch, path+"/status", map[string]string{"status": "resolved", "note": "Done"})
	}
	if _, err := c.reportDB.Exec(t.Context(), `update verdicts set until = now() where ended_at is null`); err != nil {
		t.Fatal(err)
	}
	look("when verdicts have expired")
	// Later reports are hidden and shown again while webhooks and the feed are on their way:
	// which words these have is chance. The feed has the events of the webhooks.
	eventually.True(t, "every webhook is sent", func() bool {
		var due int
		err := c.notificationDB.QueryRow(t.Context(), `select count(*) from deliveries where channel = 'webhook' and state = 'waiting'`).Scan(&due)
		return err == nil && due == 0
	})
	w.addOtherSystem(c, other)
	// Everything else that there is, in whatever state it leaves the report.
	for _, report := range reports {
		w["what olga may do"] = append(w["what olga may do"], c.answersAbout(olga, report, true)...)
		c.awaitHandled()
	}
	look("at the end")

	w["the stories of messages"] = c.stories(pavel)
	delete(w, "log of the worker")
	for exchange, s := range through {
		if exchange != topology.LiveExchange() { // what comes in one batch there is chance
			w.addExchange(exchange, s)
		}
	}
	slices.Sort(w["the feed"]) // several messages are under way at a time
	slices.Sort(w["the other system"])
	// Without those that know people, and in which operators write what they did.
	w.readTables(t, c.reportDB, "reporters", "commenters", "erasures", "idempotency_keys")
	return w
}

// erase has an operator erase people from both databases, and waits until nothing is left.
func (c *stack) erase(operator *client.Client, people ...string) {
	c.t.Helper()
	for _, database := range []string{"reports", "notifications"} {
		path := "/admin/" + database + "/erasures"
		for _, id := range people {
			if err := operator.Do(c.t.Context(), http.MethodPost, path, map[string]string{"user_id": id, "confirm_user_id": id}, nil); err != nil {
				c.t.Fatalf("erase: %v", err)
			}
		}
		eventually.True(c.t, fmt.Sprint("nothing is left in ", database), func() bool {
			var list struct{ Erasures []erasure }
			done := 0
			if operator.Do(c.t.Context(), http.MethodGet, path, nil, &list) == nil {
				for _, e := range list.Erasures {
					if e.State == "done" {
						done++
					}
				}
			}
			return done == len(people)
		})
	}
}
