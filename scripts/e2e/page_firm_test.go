package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// firmLink returns the last mail to a firm that says so, and its link.
func (s *mailServer) firmLink(address, says string) (m mail, link string) {
	s.t.Helper()
	eventually.True(s.t, "the firm has its mail", func() bool {
		for _, each := range s.await(0) {
			if each.to == address && strings.Contains(each.text, says) {
				m, link = each, regexp.MustCompile(`https://\S+/j/ccj_[A-Z2-7]{26}`).FindString(each.text)
			}
		}
		return link != ""
	})
	return m, link
}

// linkToken returns the end of a firm's link.
func linkToken(link string) string { return link[strings.LastIndex(link, "/")+1:] }

// setFirms gives the department of lamps a list of firms, and returns their ids.
func (c *stack) setFirms(operator, official *client.Client, firms ...map[string]string) (ids []uuid.UUID) {
	c.t.Helper()
	departments := map[string]any{"departments": []map[string]any{{"id": 7, "name": "Lights", "category_ids": []int{2}}}}
	var set struct {
		Firms []struct {
			ID uuid.UUID `json:"id"`
		} `json:"firms"`
	}
	err := operator.Do(c.t.Context(), http.MethodPut, "/reports/departments", departments, nil)
	if err == nil && firms != nil {
		err = official.Do(c.t.Context(), http.MethodPut, "/reports/firms?department_id=7", map[string]any{"firms": firms}, &set)
	}
	if err != nil {
		c.t.Fatalf("set firms: %v", err)
	}
	for _, f := range set.Firms {
		ids = append(ids, f.ID)
	}
	return ids
}

// A forwarding is a report that a firm has got, and what opens it.
type forwarding struct {
	*stack
	report, other client.Report
	link          string
}

// changes is what a link might change.
func (f forwarding) changes() (all string) {
	f.t.Helper()
	err := f.reportDB.QueryRow(f.t.Context(), `
		select concat((select string_agg(to_jsonb(j)::text, '' order by j.id) from firm_jobs j), (select count(*) from report_acts), (select count(*) from photos),
			(select string_agg(status || version, '' order by id) from reports))`).Scan(&all)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// checkUnchanged has the link used in ways that must change nothing: by robots, for the other
// report and, once it has ended, for its own.
func (f forwarding) checkUnchanged(ended bool) {
	f.t.Helper()
	before := f.changes()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodGet} {
		f.openLink(method, f.link)
	}
	firm := f.As("", linkToken(f.link))
	said := map[string]string{"said": "done", "text": "New lamp."}
	tries := []operation{
		{http.MethodPatch, "/reports/" + f.report.ID.String() + "/status", map[string]string{"status": "resolved"}, ""},
		{http.MethodPut, "/reports/" + f.other.ID.String() + "/photos/" + uuid.NewString() + "?purpose=after", nil, ""},
		{http.MethodGet, "/reports/" + f.other.ID.String() + "/work", nil, ""},
	}
	if ended {
		tries = append(tries, operation{http.MethodGet, "/reports/job", nil, ""}, operation{http.MethodPost, "/reports/job", said, ""},
			operation{http.MethodPut, "/reports/" + f.report.ID.String() + "/photos/" + uuid.NewString() + "?purpose=after", nil, ""})
	}
	for _, try := range tries {
		if err := firm.Do(f.t.Context(), try.method, try.path, try.body, nil); client.StatusOf(err)/100 != 4 {
			f.t.Errorf("%s %s by a link, ended %t: %v, want a refusal", try.method, try.path, ended, err)
		}
	}
	if after := f.changes(); after != before {
		f.t.Errorf("a link changes something, ended %t:\n%s\n%s", ended, before, after)
	}
}

// An official forwards a report to a firm, which accepts it and is done, with a photo, on a
// phone and without an account, in both languages; one key then resolves it, which ends the
// link. Neither mails nor page have anything of the reporter.
func TestPageFirm(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startPhotoWorker()
	mails := c.openMailServer()
	c.worker.start()
	const id, name, own, address = "Id-7c1f40-Kanari", "Nama 93e2b7 Kanari", "5d08ac.kanari@surel.test", "office@lampu.test"
	canary := c.As(id, token(jwt.MapClaims{"sub": id, "name": name, "email": own, "role": "resident"}))
	mails.giveAddress(canary, own)
	leaks := newLeakDetector(t, id, name, own, "Olga-Kanari")
	olga := c.As("Olga-Kanari", token(jwt.MapClaims{"sub": "Olga-Kanari", "name": "Olga-Kanari", "role": "official"}))
	c.setFirms(c.userOf("pavel", "operator"), olga)
	report := file(t, canary, "Dark crossing")
	desk := keys{tab: c.reader(olga).open("queue?report="+report.ID.String(), browser.Width(1366, 768))}
	desk.do(browser.See(".desk-detail .story", "Since Monday"))
	desk.press("w")
	desk.do(browser.Click("summary", "Firms of this department"),
		browser.Fill("A firm on each line: name, address of mail", "Lampu Jaya, "+address), browser.Click("button", "Save the list"),
		browser.Choose("Department or firm", "Firm: Lampu Jaya"),
		browser.Fill("For the firm", "The third lamp."), browser.Click("dialog button.primary", "Forward"), browser.See(".toast", "Lampu Jaya"))
	m, link := mails.firmLink(address, "Please repair")
	leaks.check("the mail to a firm", []byte(strings.Join([]string{m.from, m.raw, m.subject, m.text, m.html}, "\n")))
	f := forwarding{c, report, file(t, canary, "Another dark crossing"), link}
	f.checkUnchanged(false)

	page := c.reader(nil).open("j/"+linkToken(link), phone)
	page.do(browser.See("h1", "Dark crossing"), browser.See(".note", "The third lamp."))
	page.checkAccessible("a report for a firm")
	page.checkNarrow("a report for a firm")
	page.do(browser.Click("label", "We take it"), browser.Click("button.primary", "Send"), browser.See("[role=status]", "The city has it"))
	page.do(inIndonesian, browser.Click("label", "Sudah selesai"), choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`),
		browser.Fill("Satu baris untuk kota", "Lampu baru."), browser.Click("button.primary", "Kirim"), browser.See("[role=status]", "Kota sudah menerimanya"))
	page.checkAccessible("a report for a firm, in Indonesian")
	page.checkNarrow("a report for a firm, in Indonesian")
	leaks.check("the page of a firm", []byte(ask[string](t, page.Tab, `document.documentElement.outerHTML`)))
	page.checkFaults()

	desk.do(browser.Reload(), browser.See(".desk-detail .note", "Lampu Jaya is done."), browser.See(".acts", "Lampu baru."))
	desk.press("r")
	desk.do(browser.See(".desk-detail h2", "Another dark crossing"))
	c.checkStatuses("resolved", 1)
	f.checkUnchanged(true)
	page.do(browser.Reload(), browser.See("h1", "Tautan sudah berakhir"))
	desk.checkFaults()
	t.Logf("searched %d places for %d forms", leaks.calls, len(leaks.forms))
}
