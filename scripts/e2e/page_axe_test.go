package e2e

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
	"github.com/google/uuid"
)

// axe is the npm package axe-core 4.14.1 (MPL-2.0), as it is.
//
//go:embed testdata/axe.min.js
var axe string

// Every screen is free of what axe finds, in both themes and languages, in a window and
// on a phone, where nothing scrolls sideways. Themes change colours, languages words and
// widths places, never each other's: two looks at a screen see all six.
func TestPageAccessible(t *testing.T) { //nolint:funlen // every screen, one after the other
	t.Parallel()
	c := startStack(t)
	c.awaitConsumers()
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	olga, oskar := c.signIn("Olga", "official"), c.signIn("Oskar", "operator")
	report := file(t, ana, "Dark crossing with a title that is long enough for a phone to break its line")
	vote(t, ben, report, "upvote")
	move(t, olga, report, "in_progress", "A crew is on its way.")
	another := "reports/" + file(t, ben, "Another one").ID.String()
	c.publish(c.channel(), event.VoteReceivedKey, c.message(event.VoteReceivedKey, uuid.New(), "ana", `{"no": "vote"}`))

	webhook := c.fillConsole(oskar, ben)
	setLamps(t, oskar)
	detail := "reports/" + report.ID.String()
	panel := browser.Click(".bell", "Notifications")
	c.checkScreens(
		look{"list", ana, "", []browser.Action{browser.See(".card", "Another one"), dotShown}},
		look{"list of nobody", nil, "", []browser.Action{browser.See(".card", "Another one")}},
		look{"no results", ana, "?q=nonesuch", []browser.Action{browser.See(".empty", "Try fewer filters")}},
		look{"own report", ana, detail, []browser.Action{browser.See(".timeline", "A crew is on its way."), dotShown}},
		look{"another's report", ben, detail, []browser.Action{browser.See("button", "Follow")}},
		look{"hiding one's name", ben, another, dialog("Hide my name")},
		look{"correcting", ben, another, []browser.Action{browser.Click("button", "Correct"), browser.See("dialog label", "What is wrong?")}},
		look{"withdrawing", ben, another, dialog("Withdraw")},
		look{"reporting abuse", ana, another, dialog("Report abuse")},
		look{"hiding a report", olga, another, dialog("Hide the report")},
		look{"showing it to the city alone", olga, another, dialog("Show it to the city alone")},
		look{"redacting words", olga, another, dialog("Redact words")},
		look{"official's report", olga, detail, []browser.Action{browser.See("form", "Reply")}},
		look{"new", ana, "new", []browser.Action{mapShown}},
		look{"new, without a place", ana, "new", []browser.Action{browser.Click("button.primary", "Next"), browser.See("dialog button", "Go on without a place")}},
		look{"new, what", ana, "new?step=2", []browser.Action{browser.See(".categories label", "Graffiti")}},
		look{"new, words", ana, "new?step=3", []browser.Action{browser.See("label", "What is wrong?")}},
		look{"new, privacy", ana, "new?step=4", []browser.Action{browser.Click("label.option", "Anonymous"), browser.See(".who-sees", "your name")}},
		look{"nowhere", ana, "nowhere", []browser.Action{browser.See("h1", "no such page")}},
		look{"no such report", ana, "reports/" + uuid.NewString(), []browser.Action{browser.See("h1", "no such report")}},
		look{"another's screen", ana, "queue", []browser.Action{browser.See("h1", "Not for your role")}},
		look{"mine", ana, "mine", []browser.Action{browser.See(".card", "Dark crossing")}},
		look{"settings without an address", ana, "settings", []browser.Action{browser.See("label", "Your address")}},
		look{"settings", ben, "settings", []browser.Action{browser.Click("label.chip", "Every week"), browser.Click("label.check", "Quiet hours"), browser.See("label", "From")}},
		look{"removing an address", ben, "settings", dialog("Remove the address")},
		look{"erasing one's account", ben, "settings", dialog("Erase my account")},
		look{"erasing it for ever", ben, "settings", append(dialog("Erase my account"), browser.Click("dialog button.danger", "Erase"), browser.See("dialog h2", "for ever"))},
		look{"sign-in", nil, "sign-in", []browser.Action{browser.See("label", "Name")}},
		look{"menu", ana, "", []browser.Action{browser.Click("button", "Menu"), browser.See("legend", "Appearance")}},
		look{"notifications", olga, "", []browser.Action{panel, browser.See(".group a", "Another one")}},
		look{"console", oskar, "ops", []browser.Action{browser.See(".light", "Open: 1")}},
		look{"queues", oskar, "ops/queues", []browser.Action{browser.Click(".pools th button", "queue.")}},
		look{"pausing a queue", oskar, "ops/queues", append([]browser.Action{browser.Click(".pools th button", "queue.")}, dialog("Pause")...)},
		look{"outbox", oskar, "ops/outbox", []browser.Action{browser.See("dt", "Waiting")}},
		look{"reconciliation", oskar, "ops/reconciliation", []browser.Action{browser.See(".rows strong", "a message")}},
		look{"publishing again", oskar, "ops/reconciliation", dialog("Publish")},
		look{"story", oskar, "ops/reconciliation", []browser.Action{browser.Click(".rows a", "Story"), browser.See("h2", "Story")}},
		look{"search", oskar, "ops/search?q=vote", []browser.Action{browser.See("[role=status]", "found")}},
		look{"dead letters", oskar, "ops/dead-letters", []browser.Action{browser.See(".rows strong", "1 message")}},
		look{"replay", oskar, "ops/dead-letters", []browser.Action{browser.Click(".rows button", "Replay"), browser.See("label", "Canary")}},
		look{"note", oskar, "ops/dead-letters", dialog("Add a note")},
		look{"discarding", oskar, "ops/dead-letters", dialog("Discard")},
		look{"dead letter", oskar, "ops/dead-letters/1", []browser.Action{browser.See("pre", "vote")}},
		look{"edit", oskar, "ops/dead-letters/1", []browser.Action{browser.Click("button", "Edit"), browser.See("label", "Body")}},
		look{"webhooks", oskar, "ops/webhooks", []browser.Action{browser.See(".rows a", "Other system")}},
		look{"schedules", oskar, "ops/schedules", []browser.Action{browser.See(".rows strong", "retention"), browser.Click("summary", "Earlier runs"), browser.Until(`document.querySelector('details[open]')`)}},
		look{"pausing a job", oskar, "ops/schedules", dialog("Pause")},
		look{"new webhook", oskar, "ops/webhooks", []browser.Action{browser.Click("button", "Add an endpoint"), browser.Click("summary", "Which reports"), browser.See("label", "Area")}},
		look{"webhook", oskar, webhook, []browser.Action{browser.See(".rows a", "webhook.test")}},
		look{"new secret", oskar, webhook, []browser.Action{browser.Click("button", "New secret"), browser.See("label", "Hours")}},
		look{"deleting a webhook", oskar, webhook, dialog("Delete")},
		look{"recover", oskar, webhook, []browser.Action{browser.Click("button", "Recover"), browser.See("label", "From")}},
		look{"delivery", oskar, webhook, []browser.Action{browser.Click(".rows a", "webhook.test"), browser.Click("summary", "Request and answer"), browser.See("pre", "webhook-id")}},
		look{"categories", oskar, "ops/categories", []browser.Action{browser.Click("button", "Add a category"), browser.Click("button", "Save categories"), browser.See(".fault", "fill this in")}},
		look{"areas", oskar, "ops/areas", []browser.Action{browser.See(".empty", "Upload the first file")}},
		look{"things", oskar, "ops/assets", []browser.Action{browser.See(".rows strong", "lamps")}},
		look{"sheets of codes", oskar, "ops/assets", append(dialog("Sheets of codes"), browser.Until(`document.querySelector('.code-sheet')?.naturalWidth > 0`))},
		look{"removing a layer", oskar, "ops/assets", dialog("Remove")},
		look{"signposts", oskar, "ops/categories", []browser.Action{browser.Click("button", "Add a category"), browser.Click("button", "Add a signpost for an area"), browser.See("label", "Where to turn")}},
		look{"connections", oskar, "ops/connections", []browser.Action{browser.See(".empty", "no connections")}},
		look{"Open311", oskar, "ops/open311", []browser.Action{browser.See(".empty", "no keys")}},
		look{"new key", oskar, "ops/open311", []browser.Action{browser.Fill("Name of the application", "Lamps"), browser.Click("button", "Make a key"), browser.See("dialog h2", "Key")}},
		look{"revoking a key", oskar, "ops/open311", dialog("Revoke")},
		look{"city", oskar, "ops/city", []browser.Action{browser.See("code", "CITY_NAME"), browser.See("figcaption", "Preview")}},
		look{"people", oskar, "ops/people", []browser.Action{browser.See(".rows strong", "Oskar")}},
		look{"erasure", oskar, "ops/people", []browser.Action{browser.Click("button", "Erase a person"), browser.See("label", "The same id again")}},
		look{"departments", oskar, "ops/departments", []browser.Action{browser.Click("button", "Add a department"), browser.See("legend", "Gets the reports of")}},
		look{"calendar", oskar, "ops/calendar", []browser.Action{browser.Click("button", "Add hours to Monday"), browser.See("legend", "Monday")}},
		look{"e-mail", oskar, "ops/email", []browser.Action{browser.See(".rows strong", "5.1.1")}},
		look{"replays", oskar, "ops/replays", []browser.Action{browser.See(".empty", "replayed")}},
		look{"audit", oskar, "ops/audit", []browser.Action{browser.See(".rows a", "Endpoint added")}},
	)
}

// The officials' screens are as free of faults as the others.
func TestPageWorkbenchAccessible(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing with a title that is long enough for a phone to break its line")
	move(t, olga, report, "in_progress", "A crew is on its way.")
	pane := "queue?report=" + file(t, ana, "Another one").ID.String()
	byKey := func(key, says string) []browser.Action {
		return []browser.Action{browser.See(".desk-detail h2", "Another one"), browser.Press(key), browser.See("dialog h2", says)}
	}
	c.checkScreens(
		look{"queue", olga, "queue", []browser.Action{browser.See(".task", "Another one")}},
		look{"queue, a report", olga, "queue?status=all&report=" + report.ID.String(), []browser.Action{browser.See(".acts", "A crew is on its way."), browser.See(".chip", "Resolved")}},
		look{"queue, filters", olga, "queue?from=2026-01-01", []browser.Action{browser.See(".set-filter", "Filed from"), browser.Click("button", "Filters"), browser.See("label", "Filed until")}},
		look{"queue, map", olga, "queue?map=1&status=all", []browser.Action{browser.See(".task", "Another one"), browser.Until(`document.querySelector('.queue-map .dot')`)}},
		look{"queue, moving", olga, "queue", []browser.Action{browser.Click(".task-select input", "Another one"), browser.Click("button.primary", "Change status"), browser.See(".chip", "Resolved")}},
		look{"queue, assigning", olga, "queue", []browser.Action{browser.Click(".task-select input", "Another one"), browser.Click(".act-bar button", "Assign"), browser.See(".picker button", "Me (")}},
		look{"queue, keys", olga, "queue", []browser.Action{browser.See(".task", "Another one"), browser.Press("?"), browser.See("kbd", "Esc")}},
		look{"queue, views", olga, pane, byKey("v", "Views")},
		look{"queue, filing for somebody", olga, pane, byKey("f", "File for somebody")},
		look{"queue, correcting", olga, pane, byKey("e", "Correct")},
		look{"queue, asking", olga, pane, byKey("q", "Ask")},
		look{"queue, a duplicate", olga, pane, append([]browser.Action{browser.Click("summary", "Duplicates")}, dialog("Mark as duplicate")...)},
		look{"photos to review", olga, "queue/photos", []browser.Action{browser.See("[role=status]", "No photos")}},
		look{"abuse", olga, "queue/abuse", []browser.Action{browser.See(".empty", "Nothing is reported")}},
		look{"numbers", olga, "queue/numbers", []browser.Action{browser.See(".sums", "Filed")}},
		look{"templates", olga, "queue/templates", []browser.Action{browser.Click("button", "Add a template"), browser.See("label", "For the status")}},
		look{"bulk moves", olga, "queue/moves", []browser.Action{browser.See(".empty", "at once")}},
	)
}

// Where the system forces its colours, as on Windows with high contrast, a status still
// has its own, what is chosen differs from what is not, and the focus is seen.
func TestPageForcedColours(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	move(t, olga, file(t, ana, "Dark crossing"), "in_progress", "A crew is on its way.")
	file(t, ana, "Another one")
	page := c.reader(olga).open("queue?status=all", browser.Width(1366, 768), browser.Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}},
	}))
	page.do(browser.See(".task", "Another one"), browser.See(".task", "Dark crossing"), browser.Press(kb.Tab))
	for name, differs := range map[string]string{
		"a status":       `new Set([...document.querySelectorAll('.task .badge')].map((e) => getComputedStyle(e, '::before').backgroundColor)).size === 2`,
		"the tab":        `new Set([...document.querySelectorAll('.tabs a')].map((e) => getComputedStyle(e).backgroundColor)).size === 2`,
		"a view":         `new Set([...document.querySelectorAll('.views button')].map((e) => getComputedStyle(e).backgroundColor)).size === 2`,
		"what has focus": `getComputedStyle(document.activeElement).outlineStyle === 'solid'`,
	} {
		if !ask[bool](t, page.Tab, differs) {
			t.Errorf("with forced colours %s is not seen", name)
		}
	}
	page.checkFaults()
}

// A look is a screen as somebody sees it, after what they did there.
type look struct {
	name    string
	user    *client.Client
	address string
	act     []browser.Action
}

// checkScreens looks at each screen twice: as at a desk in the light and in English, and
// as on a phone in the dark and in Indonesian.
func (c *stack) checkScreens(screens ...look) {
	c.t.Helper()
	readers := make(map[*client.Client]reader) // who comes again has the page's files
	for _, s := range screens {
		if _, known := readers[s.user]; !known {
			readers[s.user] = c.reader(s.user)
		}
		page := readers[s.user].open(s.address, browser.Width(1200, 900), browser.Theme("light"))
		page.do(s.act...)
		page.checkAccessible(s.name + ", light")
		page.checkLargeText(s.name)
		page.do(inIndonesian, browser.Theme("dark"), browser.Width(360, 740))
		page.checkAccessible(s.name + ", dark, on a phone, in Indonesian")
		page.checkNarrow(s.name)
		page.checkFaults()
		page.speak("en")
		page.Close()
	}
}

// inIndonesian chooses the language in the menu, which is opened above any other dialog.
var inIndonesian = browser.Until(`(globalThis.hadMenu = !!document.querySelector('dialog [lang=id]'),
	globalThis.hadMenu || document.querySelector('.tools [aria-haspopup=dialog]:not(.bell)').click(), true)`).
	Then(browser.Until(`((list) => {
		if (!list) return false;
		list.value = 'id';
		list.dispatchEvent(new Event('change', { bubbles: true }));
		if (!globalThis.hadMenu) list.closest('dialog').close();
		return true;
	})(document.querySelector('dialog option[lang=id]')?.parentElement)`)).
	Then(browser.Until(`document.documentElement.lang === 'id'`))

// fillConsole gives the console something to show: an endpoint of another
// system, to which an event was sent, an address, and mails that failed. It
// returns the endpoint's address in the page.
func (c *stack) fillConsole(operator, mailed *client.Client) (webhook string) {
	c.t.Helper()
	other := openOtherSystem(c.t)
	other.register(c, operator)
	for _, action := range []string{"/rotate", "/test"} {
		if err := operator.Do(c.t.Context(), http.MethodPost, other.path+action, nil, nil); err != nil {
			c.t.Fatal(err)
		}
	}
	other.await(1)
	contact := map[string]string{"address": "ben@example.org", "language": "en", "zone": "Asia/Jakarta"}
	if err := mailed.Do(c.t.Context(), http.MethodPut, "/me/contact", contact, nil); err != nil {
		c.t.Fatal(err)
	}
	execute(c.t, c.notificationDB, `update contacts set state = 'active'`)
	execute(c.t, c.notificationDB, `insert into lanes (channel, lane, rate, failures, open_until, last_success_at, last_failure_at)
		values ('email', 'gmail.com', 2.5, 6, now() + interval '1 hour', now(), now())`)
	execute(c.t, c.notificationDB, `insert into reconciliation_manifests (consumer_group, epoch, number, starts_at, ends_at, state, checks, expected, missing)
		values ('notifications', 0, 1000000, now() - interval '2 minutes', now() - interval '1 minute', 'missing', 3, 1, array[gen_random_uuid()])`)
	// Enough people, and before today, or the console shows none of them.
	execute(c.t, c.notificationDB, `insert into mail_bounces (delivery_id, lane, code, hard, at)
		select n, 'gmail.com', '5.1.1', true, now() - interval '2 days' from generate_series(1, 60) as n`)
	return "ops" + strings.TrimPrefix(other.path, "/admin")
}

// dialog opens the one behind a button.
func dialog(button string) []browser.Action {
	return []browser.Action{browser.Click("button", button), browser.Until(`document.querySelector('dialog[open]')`)}
}

var (
	mapShown = browser.Until(`document.querySelector('.map-canvas[data-rests]')`)
	dotShown = browser.Until(`document.querySelector('.dot')`)
)

// checkAccessible fails the test with what axe finds.
func (p tab) checkAccessible(name string) {
	p.t.Helper()
	if loaded, err := browser.Ask[bool](p.Tab, `'axe' in globalThis`); err != nil || !loaded {
		if _, err := browser.Ask[bool](p.Tab, axe+`; true`); err != nil {
			p.t.Fatalf("load axe on %s: %.300s", name, fmt.Sprint(err))
		}
	}
	// A thing that fades in has its colours at the end.
	found, err := browser.Ask[[]string](p.Tab, `Promise.allSettled(document.getAnimations()
		.filter((each) => each.effect.getComputedTiming().endTime < Infinity).map((each) => each.finished))
		.then(() => axe.run(document, { resultTypes: ['violations'] })).then(({ violations }) =>
			violations.map((v) => v.id + ': ' + v.help + '\n' + v.nodes.map((n) => '  ' + n.html + '\n  ' + n.failureSummary).join('\n')))`)
	if err != nil {
		p.t.Fatalf("axe on %s: %.300s", name, fmt.Sprint(err))
	}
	if len(found) > 0 {
		p.t.Errorf("%s:\n%s", name, strings.Join(found, "\n"))
	}
}

// wideText is JavaScript for what text of twice the size, as WCAG 1.4.4 asks for, makes
// wider than the window.
const wideText = `(() => {
	document.documentElement.style.fontSize = '200%'
	const beyond = (e) => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== 'fixed'
	const wide = document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
		.filter((e) => beyond(e) && !beyond(e.parentElement)).slice(0, 5).map((e) => e.outerHTML.slice(0, 200))
	document.documentElement.style.fontSize = ''
	return wide
})()`

// checkLargeText fails the test if text of twice the size makes the page wider than a
// phone.
func (p tab) checkLargeText(name string) {
	p.t.Helper()
	p.do(browser.Width(390, 844))
	wide, err := browser.Ask[[]string](p.Tab, wideText)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(wide) > 0 {
		p.t.Errorf("%s is wider than a phone with text of 200 %%:\n%s", name, strings.Join(wide, "\n"))
	}
}

// wide is JavaScript for what scrolls sideways.
const wide = `[...document.querySelectorAll('*')].filter((e) =>
	e === document.documentElement ? e.scrollWidth > innerWidth
		: e.scrollWidth > e.clientWidth && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).map((e) => e.outerHTML.slice(0, 200))`

// checkNarrow fails the test if anything is wider than the window.
func (p tab) checkNarrow(name string) {
	p.t.Helper()
	found, err := browser.Ask[[]string](p.Tab, wide)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(found) > 0 {
		p.t.Errorf("%s scrolls sideways at 360 px:\n%s", name, strings.Join(found, "\n"))
	}
}
