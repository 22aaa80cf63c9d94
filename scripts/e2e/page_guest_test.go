package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/cityconnect/cityconnect/scripts/internal/gatewaytest"
)

// guestKey signs the sessions of guests.
const guestKey = "e2e-guests-e2e-guests-e2e-guests"

// noToast waits until no message lies above what is to be pressed.
var noToast = browser.Until(`!document.querySelector('.toast')`)

// startWithGuests returns a city that has a map, and in which one reports without an
// account, and the address of the gateway as cities have it. Further settings come as
// names and values.
func startWithGuests(t *testing.T, settings ...string) (c *stack, gateway string) {
	t.Helper()
	c = prepareStack(t)
	settings = append([]string{
		"GUESTS", "on", "GUEST_KEY", guestKey,
		"MAP_BOUNDS", cityBounds, "PAGE_MAP_CENTER", "106.7995,-6.5950,15",
		"PAGE_MAP_FILE", filepath.Join(root(), "deploy", "map", "bogor.pmtiles"),
	}, settings...)
	for _, p := range []*process{c.report, c.notification, c.photo} {
		for i := 0; i < len(settings); i += 2 {
			p.env[settings[i]] = settings[i+1]
		}
	}
	c.start()
	address := func(p *process) []string { return []string{strings.TrimPrefix(p.url(), "http://")} }
	return c, gatewaytest.Start(t, address(c.report), address(c.notification), "GATEWAY_LIMITS", "off").URL
}

// A scanned code opens the form of a report. Without an account, on a phone with slow 4G,
// a report with a photo is sent with seven taps. The guest sees its progress
// live, answers a question, and says whether it is fixed; goes on at a second device by a
// code; and signs in with an account, which takes the report over. Nobody becomes a guest
// by a visit alone.
func TestPageGuest(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	c.startPhotoWorker()
	olga := c.signIn("Olga", "official")
	// A new visitor scans the code.
	page := tapping{tab: c.readerOf(shell, gateway, nil).open("new", phone, slow4G)}
	page.do(mapShown)
	page.tap("button.primary", "Next")
	page.tap("dialog button", "Use the place under the pin")
	page.tap(".categories label", "Street lights")
	page.tap("label", "What is wrong?")
	page.do(browser.Insert("Lamp is dark"))
	page.taps++ // on the button that the browser's own dialog follows
	page.do(choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`))
	page.tap("button.primary", "Next")
	page.do(browser.See(".note", "Without an account your report is anonymous"), browser.Until(`!document.querySelector('[name=privacy]')`))
	if signedIn := ask[bool](t, page.Tab, `fetch('/session').then((r) => r.status === 200)`); signedIn {
		t.Error("a visit alone has made somebody a guest")
	}
	page.checkAccessible("who sees what of a guest's report")
	page.checkNarrow("who sees what of a guest's report")
	page.tap("button.primary", "Report without an account")
	page.do(browser.See("h1", "Your report is filed"), browser.See(".note", "in this browser alone"))
	page.check(7)
	page.checkAccessible("a guest's report that was filed")
	page.do(browser.Click("a.button", "See my report"), browser.See("h1", "Lamp is dark"), browser.See(".who", "Guest"),
		browser.See(".meta", "anonymously"), browser.See(".meta", "Filed by you"), shownPhotos("1"), live)
	id := uuid.MustParse(filepath.Base(ask[string](t, page.Tab, `location.pathname`)))
	report := must(olga.Report(t.Context(), id))

	// It goes on, live, as with an account.
	askReporter(t, olga, report, "Which lamp?")
	page.do(browser.See(".asked .story", "Which lamp?"), noToast, browser.Fill("Your answer", "The one at the bridge."),
		browser.Click(".asked button.primary", ""), browser.See("[role=status]", "The city has your answer"))
	move(t, olga, must(olga.Report(t.Context(), id)), "resolved", "It has a new bulb.")
	page.do(browser.See(".timeline", "It has a new bulb."), browser.See("h2", "Is it fixed?"), noToast,
		browser.Click(".asked button", "Yes"), browser.Until(`document.querySelector('.asked [aria-pressed=true]')`))
	page.checkFaults()

	// On a second device there is the same, by a code that is read aloud.
	page.do(browser.Click(".tools button", "Menu"), browser.Click("dialog a", "Settings"), browser.See("h2", "Take it with you"),
		browser.Click("button", "Show a code"), browser.See("code", "-"))
	page.checkAccessible("a code of a guest")
	page.checkLargeText("a code of a guest")
	page.checkNarrow("a code of a guest")
	code := ask[string](t, page.Tab, `document.querySelector('.guest-code code').textContent`)
	other := c.readerOf(shell, gateway, nil).open("mine", phone, browser.Theme("light"))
	other.do(browser.Click("a", "I have a code from another device"), browser.Fill("Code", "AAAAA-AAAAA"),
		browser.Click("form button", "Show my reports here"), browser.See("[role=alert]", "There is no such code"),
		browser.Fill("Code", strings.ToLower(strings.ReplaceAll(code, "-", " "))))
	other.checkAccessible("a code is entered")
	other.checkNarrow("a code is entered")
	other.do(browser.Click("form button", "Show my reports here"), browser.See("h1", "My reports"), browser.See(".card", "Lamp is dark"), live)

	// An account takes it over when the page asks, and the first device says so.
	other.do(browser.Click(".tools button", "Menu"), browser.Click("dialog a", "Sign in"), browser.See(".note", "You report without an account here"))
	other.signIn("Maria", "Resident")
	other.do(browser.See("dialog h2", "Take over your reports?"), browser.See("dialog strong", "1 report was sent"))
	other.checkAccessible("a question whether to take reports over")
	other.checkNarrow("a question whether to take reports over")
	other.do(browser.Click("dialog button", "Take them over"), browser.Until(`!document.querySelector('dialog')`),
		browser.See(".card", "Lamp is dark"), browser.Reload(), live, browser.See(".card", "Lamp is dark"), browser.Until(`!document.querySelector('dialog')`))
	other.checkFaults()
	page.do(browser.See(".banner", "Your reports are in your account now"))
}

// Words of a guest are kept when the city has switched guests off in the meantime: it
// says so, and the report is sent by an account. An operator switches, and reads what it does.
func TestPageGuestsSwitchedOff(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	oskar := c.signIn("Oskar", "operator")
	page := c.readerOf(shell, gateway, nil).open("new", phone)
	page.do(
		mapShown, placeless, chosen("Other"), browser.Fill("What is wrong?", "Paint on the bridge"),
		choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`), next, browser.See("button.primary", "Report without an account"),
	)
	console := c.readerOf(shell, gateway, oskar).open("ops/guests", browser.Width(1280, 800), browser.Theme("light"))
	console.do(browser.See("strong", "Reporting without an account is on."), browser.Click(".panel button", "Switch off"),
		browser.Fill("Reason", "A flood"), browser.Click("dialog form button", "Switch off"), browser.See("strong", "is off"), browser.See(".meta", "A flood"))
	console.checkAccessible("guests in the console")
	console.checkFaults()
	page.do(
		browser.Until(`fetch('/guests').then((r) => r.json()).then(({ open }) => (globalThis.guestsEnded = !open)) && globalThis.guestsEnded`), // on this replica, too
		browser.Click("button.primary", "Report without an account"), browser.See(".fault", "switched off at the moment"),
		browser.Click("label.option", "Anonymous"), // to name oneself is a choice again
		browser.Click("button.primary", "Sign in to send"), browser.See("h1", "Sign in"),
	)
	page.checkAccessible("signing in where guests are switched off")
	page.signIn("Maria", "Resident")
	page.do(browser.Click("button", "Send report"), browser.See("h1", "Your report is filed"))
	eventually.True(t, "the photo has come along", func() bool {
		var photos int
		err := c.reportDB.QueryRow(t.Context(), `select count(*) from photos`).Scan(&photos)
		return err == nil && photos == 1
	})
	auditor := c.readerOf(shell, gateway, c.signIn("Audrey", "auditor")).open("ops/guests")
	auditor.do(browser.See("strong", "is off"), browser.Until(`!document.querySelector('.panel button')`))
}

// Two people share a browser: a guest who ends reads what is lost, and the next one
// sees nothing of it. What guests may not do leads to the sign-in, and on with it.
func TestPageGuestEnds(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	known, err := c.signIn("Ben", "resident").CreateReport(t.Context(), inBogor("Dark crossing", 1, 1), "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	page := c.readerOf(shell, gateway, nil).open("new", phone, browser.Theme("light"))
	page.do(
		mapShown, placeless, chosen("Other"), browser.Fill("What is wrong?", secretTitle), next,
		browser.Click("button.primary", "Report without an account"), browser.See("h1", "Your report is filed"),
		browser.Go(gateway+"/new?step=3"), live, browser.Fill("What is wrong?", "Another draft"),
		browser.Go(gateway+"/sign-in/code"), browser.See(".note", "already has 1 report of its own"),
		browser.Click(".tools button", "Menu"), browser.Click("dialog button", "End here"), browser.See("dialog li", "1 report"),
	)
	page.checkAccessible("what a guest loses")
	page.checkNarrow("what a guest loses")
	page.do(browser.Click("dialog button", "End, and lose them here"), browser.See(".who", "Sign in"), live)
	kept := ask[string](t, page.Tab, `JSON.stringify([{ ...localStorage }, { ...sessionStorage }])`)
	if strings.Contains(kept, secretTitle) || strings.Contains(kept, "Another draft") {
		t.Errorf("after the end the browser still keeps: %s", kept)
	}
	page.do(
		browser.Go(gateway+"/new?step=3"), live, browser.Until(`document.querySelector('input[required]')?.value === ''`),
		browser.Fill("What is wrong?", "A second guest"), browser.Go(gateway+"/new?step=2"), live, chosen("Other"), next,
		browser.Click("button.primary", "Report without an account"), browser.See("h1", "Your report is filed"),
		browser.Go(gateway+"/mine"), live, browser.See(".card", "A second guest"), browser.Until(`!document.body.textContent.includes(`+"'"+secretTitle+"'"+`)`),
		browser.Go(gateway+"/reports/"+known.ID.String()), live, browser.See(".votes", "You sign in first"), browser.Click("button", "Matters to me too"))
	page.signIn("Maria", "Resident")
	page.do(browser.See("dialog h2", "Take over your reports?"), browser.Click("dialog button", "Leave them"), browser.Until(`!document.querySelector('dialog')`),
		browser.See("output", "1"), browser.Reload(), live, browser.Until(`!document.querySelector('dialog')`),
		browser.Go(gateway+"/mine"), browser.See(".empty", "not filed a report"))
	page.checkFaults()
}
