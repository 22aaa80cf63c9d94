package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// fileFor has an official file an anonymous report for somebody who calls.
func fileFor(t *testing.T, official *client.Client, title string) client.Report {
	t.Helper()
	in := draft(title)
	in.PrivacyLevel, in.Source = "anonymous", "telephone"
	report, err := official.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatalf("file for somebody: %v", err)
	}
	return report
}

// enterCaller has an official enter where the caller is written to.
func enterCaller(t *testing.T, official *client.Client, report client.Report, address string) {
	t.Helper()
	var work struct {
		Intake struct{ Source, Caller string }
	}
	err := official.Do(t.Context(), http.MethodGet, "/reports/"+report.ID.String()+"/work", nil, &work)
	if err == nil {
		body := map[string]any{"report_id": report.ID, "caller": work.Intake.Caller, "address": address, "language": "en", "zone": "Asia/Jakarta"}
		err = official.Do(t.Context(), http.MethodPut, "/callers", body, nil)
	}
	if err != nil {
		t.Fatalf("enter an address: %v", err)
	}
}

// proofLink waits for the mail with the link for address.
func (s *mailServer) proofLink(address string) (m mail, link string) {
	s.t.Helper()
	eventually.True(s.t, "the link has come", func() bool {
		for _, m = range s.await(0) {
			for _, l := range m.links() {
				if m.to == address && strings.Contains(l, "/p/") {
					link = l
					return true
				}
			}
		}
		return false
	})
	return m, link
}

// Nobody but officials can tell a report that one of them filed for a caller from one that
// a resident filed without a name: not from messages, nor from webhooks, answers, tables
// or logs, however the report goes on.
func TestCounterLooksLikeAResident(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "account/counter", playCounter)
}

// playCounter has a report filed anonymously, by a resident or at the counter, and returns
// what others see of it.
func playCounter(t *testing.T, counter, leak bool) world {
	t.Helper()
	c, w := startStackWithComments(t), world{}
	w.addGateway(t, c.enterByNginx())
	ana, carl, olga, pavel := c.userOf("ana", "resident"), c.userOf("carl", "resident"), c.userOf("olga", "official"), c.userOf("pavel", "operator")
	through, feed, other := c.spyOnExchanges(), c.listenToFeed(), openOtherSystem(t)
	other.register(c, pavel)
	c.startPhotoWorker()
	by := ana
	if counter {
		by = olga
	}
	in := draft("A landlord threatens us")
	in.PrivacyLevel = "anonymous"
	if counter {
		in.Source = "counter"
	}
	report, err := by.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	if leak {
		c.plantLeak()
	}
	events := 0
	await := func() {
		events++
		feed.await(t, events)
		c.awaitOutcomes(other, events)
	}
	await()
	photo := c.upload(by, report, smallPicture(t))
	await()
	vote(t, carl, report, "upvote")
	await()
	move(t, olga, report, "in_progress", "Seen")
	await()
	move(t, olga, report, "resolved", "Done")
	await()

	// One after the other, as the access logs have them.
	w["nobody"] = c.answersAbout(c.Client, report, false)
	w["carl"] = c.answersAbout(carl, report, false)
	w["pavel"] = c.answersAbout(pavel, report, false)
	w["an auditor"] = c.answersAbout(c.userOf("paula", "auditor"), report, false)
	w["the stories of messages"] = c.stories(pavel)
	w["the feed"] = feed.lines()
	w.addPhoto(c, carl, photo, report)
	w.addOtherSystem(c, other)
	for exchange, s := range through {
		w.addExchange(exchange, s)
	}
	w.readTables(t, c.reportDB, "reporters", "counter_reports")
	w.readTables(t, c.notificationDB, "streams")
	for name, p := range map[string]*process{"report-service": c.report, "notification-service": c.notification} {
		for _, line := range p.log.messages("request") {
			if !strings.Contains(line, "/stream") && !strings.Contains(line, "/readyz") {
				w["access log of "+name] = append(w["access log of "+name], withoutChance(line))
			}
		}
	}
	return w
}

// A caller gets one link, whose page changes nothing. With its button they get mails like
// anybody who chose them, with a link that ends them, and news of nothing else. An
// operator who knows the address alone can have them erased.
func TestCallerIsWrittenTo(t *testing.T) {
	t.Parallel()
	const address = "budi@mail.test"
	c := startStack(t)
	mails := c.openMailServer()
	c.worker.start()
	olga, operator := c.signIn("Olga", "official"), c.userOf("operator", "operator")
	report := fileFor(t, olga, "Dark crossing")
	enterCaller(t, olga, report, address)
	proof, link := mails.proofLink(address)
	for _, secret := range []string{report.ID.String(), report.Title, "6.91", "telephone"} {
		if strings.Contains(proof.raw+proof.text+proof.html, secret) {
			t.Errorf("the mail to an address that is not proven has %q:\n%s", secret, proof.text)
		}
	}
	before := c.mailState()
	for range 2 {
		c.openLink(http.MethodGet, link)
	}
	if after := c.mailState(); after != before {
		t.Errorf("an opened link has changed\n%s\nto\n%s", before, after)
	}
	move(t, olga, report, "in_progress", "Before the proof")
	c.awaitHandled()
	c.click(link)
	move(t, olga, report, "resolved", "Done")
	came := mails.await(2)
	if len(came) != 2 || came[1].to != address || !strings.Contains(came[1].subject, "resolved") || !strings.Contains(came[1].text, "/reports/"+report.ID.String()) ||
		strings.Contains(came[1].text, report.Title) || !strings.Contains(came[1].raw, "List-Unsubscribe") {
		t.Errorf("want one mail after the proof, with the status, a link to the report and one that ends the mails:\n%v", came[1:])
	}

	var found struct {
		UserIDs []string `json:"user_ids"`
	}
	if err := operator.Do(t.Context(), http.MethodPost, "/admin/callers/search", map[string]string{"address": address}, &found); err != nil || len(found.UserIDs) != 1 {
		t.Fatalf("found %q, error %v", found.UserIDs, err)
	}
	request := map[string]string{"user_id": found.UserIDs[0], "confirm_user_id": found.UserIDs[0]}
	for _, path := range []string{"/admin/reports/erasures", "/admin/notifications/erasures"} {
		if err := operator.Do(t.Context(), http.MethodPost, path, request, nil); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the caller is erased", func() bool {
		var reporters, contacts int
		err := c.reportDB.QueryRow(t.Context(), `select count(*) from reporters where reporter_id = $1`, found.UserIDs[0]).Scan(&reporters)
		if err == nil {
			err = c.notificationDB.QueryRow(t.Context(), `select (select count(*) from contacts) + (select count(*) from caller_mails) + (select count(*) from deliveries where channel = 'email')`).Scan(&contacts)
		}
		return err == nil && reporters+contacts == 0
	})
}

// callAtTheCounter has the canary call the city: an official files for them, and they get
// mails under the same address.
func (c *canary) callAtTheCounter() {
	c.t.Helper()
	olga := c.userOf("other-official", "official")
	for i := range 2 { // the second link waits for its hour
		report := fileFor(c.t, olga, fmt.Sprint("Called ", i))
		enterCaller(c.t, olga, report, c.address)
		if i == 0 {
			_, link := c.mails.proofLink(c.address)
			c.click(link)
			move(c.t, olga, report, "in_progress", "Seen")
		}
	}
}
