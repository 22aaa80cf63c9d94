package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// A firm cannot tell a report with a name from an anonymous one: not by a mail, by the message
// that asks for it, by the job, the page, the photos, or what it is answered when it says
// something.
func TestTwoWorldsOfAFirm(t *testing.T) {
	t.Parallel()
	compareWorlds(t, "firm:named/anonymous", playFirm)
}

// playFirm sends a report to a firm, which says that it is done, and returns what the firm can
// obtain. In the other world the report has no name; the leak has the size of the description
// depend on that.
func playFirm(t *testing.T, anonymous, leak bool) world {
	t.Helper()
	c, w := startStack(t), world{}
	c.startPhotoWorker()
	mails := c.openMailServer()
	c.worker.start()
	const address = "office@lampu.test"
	author, olga := c.userOf(bene.id, "resident"), c.userOf("olga", "official")
	firms := c.setFirms(c.userOf("pavel", "operator"), olga, map[string]string{"name": "Lampu Jaya", "address": address})
	in := draft("A dark crossing")
	if in.PrivacyLevel = "public"; anonymous {
		in.PrivacyLevel = "anonymous"
	}
	report, err := author.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	if v := c.verdictOn(author, report, c.upload(author, report, smallPicture(t))); v.State != "ready" {
		t.Fatalf("the photo is %s, %s", v.State, v.Reason)
	}
	if leak {
		c.plantLeak()
	}
	wire := c.spyOn(topology.Exchange())
	body := map[string]any{"firm_id": firms[0], "text": "The third lamp."}
	if err := olga.Do(t.Context(), http.MethodPost, "/reports/"+report.ID.String()+"/firm", body, nil); err != nil {
		t.Fatal(err)
	}
	m, link := mails.firmLink(address, "Please repair")
	w["mail"] = []string{withoutTimes(link, m.subject), withoutTimes(link, m.text), withoutTimes(link, m.html)}
	seen, _ := wire.all()
	for _, d := range seen {
		if d.RoutingKey == string(event.FirmNoticeKey) {
			w["message"] = append(w["message"], describeDelivery(d))
		}
	}
	page := c.reader(nil).open("j/"+linkToken(link), phone)
	page.do(browser.See(".note", "The third lamp."), browser.Until(`document.querySelector('.thumbnails img')?.complete`))
	w["page"] = []string{withoutTimes(link, ask[string](t, page.Tab, `document.title + document.querySelector('main').innerText`)),
		withoutTimes(link, ask[string](t, page.Tab, `[...document.querySelectorAll('main img, main a')].map((e) => e.src ?? e.href).join()`))}
	firm := c.As("", linkToken(link))
	for _, op := range []operation{
		{http.MethodGet, "/reports/job", nil, ""},
		{http.MethodPost, "/reports/job", map[string]string{"said": "done", "text": "New lamp."}, ""},
		{http.MethodGet, "/reports/" + report.ID.String(), nil, ""}, {http.MethodGet, "/reports/" + report.ID.String() + "/photos", nil, ""},
		{http.MethodGet, "/reports/" + report.ID.String() + "/work", nil, ""}, {http.MethodGet, "/reports/mine/data", nil, ""},
	} {
		w["answers"] = append(w["answers"], c.answerTo(firm, op))
	}
	move(t, olga, report, "resolved", "Done")
	w["answers after the end"] = []string{c.answersOf(firm, http.MethodGet, "/reports/job")}
	return w
}

// withoutTimes is text of a page or mail without what is random in it.
func withoutTimes(link, text string) string {
	return withoutChance(strings.ReplaceAll(text, linkToken(link), "LINK"))
}
