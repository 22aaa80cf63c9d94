package e2e

import (
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

const secretTitle = "My neighbour threatens me"

// A resident's drafts and follows are not shown to the next person at the same
// browser, and are not kept there once she has signed out.
func TestPageNextPersonAtTheBrowser(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	known := file(t, c.signIn("Ben", "resident"), "Dark crossing")
	page := c.reader(nil).open("sign-in")
	page.signIn("Maria", "Resident")
	page.do(
		browser.Go(c.gateway.URL+"/reports/"+known.ID.String()),
		browser.Click("button", "Follow"), browser.See("button[data-on=true]", "Following"),
		browser.Go(c.gateway.URL+"/new"),
		placeless,
		chosen("Other"),
		browser.Fill("What is wrong?", secretTitle),
	)
	kept, err := browser.Ask[string](page.Tab, `JSON.stringify({ ...localStorage })`)
	if err != nil || !strings.Contains(kept, secretTitle) {
		t.Fatalf("the draft is not kept while she is signed in (error: %v): %s", err, kept)
	}
	page.do(browser.Click(".tools button", "Menu"), browser.Click("button", "Sign out"), browser.See(".who", "Sign in"), live)
	kept, err = browser.Ask[string](page.Tab, `JSON.stringify([{ ...localStorage }, { ...sessionStorage }])`)
	if err != nil || strings.Contains(kept, secretTitle) || strings.Contains(kept, known.ID.String()) {
		t.Errorf("after signing out the browser still keeps (error: %v): %s", err, kept)
	}

	page.do(browser.Go(c.gateway.URL + "/sign-in"))
	page.signIn("James", "Resident")
	page.do(
		browser.Go(c.gateway.URL+"/new?step=3"),
		browser.Until(`document.querySelector('input[required]')?.value === ''`),
		browser.Go(c.gateway.URL+"/mine"),
		browser.See(".empty", "not filed a report"),
	)
	if text, err := browser.Ask[string](page.Tab, `document.body.innerText`); err != nil || strings.Contains(text, known.Title) {
		t.Errorf("James's page shows what Maria follows (error: %v):\n%s", err, text)
	}
	page.checkFaults()
}

// A report that was sent and had no answer is never filed as someone else.
func TestPageFilesAsItsAuthorAlone(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	maria := c.reader(c.signIn("Maria", "resident"))
	page := maria.open("new")
	page.do(
		placeless,
		chosen("Other"),
		browser.Fill("What is wrong?", secretTitle),
		next,
		browser.Click("label.option", "Anonymous"),
	)
	c.report.kill()
	page.do(browser.Click("button", "Send report"), browser.See("[role=status]", "No answer yet"))

	// In the same browser James is signed in: her session is gone, her page is open.
	james := token(jwt.MapClaims{"sub": "james", "name": "James"})
	if err := maria.SignIn(james); err != nil {
		t.Fatal(err)
	}
	c.report.start()
	page.do(browser.Until(`document.querySelector('.who')?.textContent === 'James'`), live)
	page.do(browser.Go(c.gateway.URL+"/new?step=3"), browser.Until(`document.querySelector('input[required]')?.value === ''`))
	second := maria.open("new?step=3")
	second.do(browser.Until(`document.querySelector('input[required]')?.value === ''`))

	var filed int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports`).Scan(&filed); err != nil || filed != 0 {
		t.Errorf("filed %d times (error: %v), want never", filed, err)
	}
}

// When an official's session ends by itself, the note that she was writing is
// there once she has signed in again; nobody else sees it.
func TestPageKeepsNoteOfOfficial(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	report := file(t, c.signIn("Ana", "resident"), "Dark crossing")
	const note = "A crew is on its"
	olga := c.reader(c.As("official-olga", token(jwt.MapClaims{"sub": "official-olga", "name": "Olga", "role": "official"})))
	page := olga.open("reports/" + report.ID.String())
	page.do(browser.Fill("Reply, shown to everyone", note))
	c.endSession(olga)
	page.do(
		browser.See(".banner", "Your session has ended"),
		browser.Until(`!document.querySelector('textarea')`),
		browser.Click(".banner a", "Sign in"),
	)
	page.signIn("Olga", "Official")
	page.do(browser.Until(`document.querySelector('textarea')?.value === '` + note + `'`))
}

// signIn signs in at the development form, which is shown.
func (p tab) signIn(name, role string) {
	p.t.Helper()
	p.do(
		browser.Fill("Name", name),
		browser.Click(".chip", role),
		browser.Click("button.primary", "Sign in"),
		browser.See(".who", name),
		live,
	)
}
