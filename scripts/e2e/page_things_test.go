package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// lamps are things in the city of the tests with a map.
const lamps = `{"type":"FeatureCollection","features":[
	{"type":"Feature","properties":{"code":"L-1","name":"Lamp 1"},"geometry":{"type":"Point","coordinates":[106.7995,-6.5950]}},
	{"type":"Feature","properties":{"code":"L-2","name":"Lamp 2"},"geometry":{"type":"Point","coordinates":[106.7995,-6.5980]}}]}`

// setLamps puts up two lamps.
func setLamps(t *testing.T, operator *client.Client) {
	t.Helper()
	if err := operator.Do(t.Context(), http.MethodPut, "/reports/assets/lamps?category=2", json.RawMessage(lamps), nil, "Content-Type", "application/geo+json"); err != nil {
		t.Fatalf("put up lamps: %v", err)
	}
}

// Somebody scans the code at a lamp, on a phone with slow 4G and without an account: six
// taps, or keys alone, lead to a report with a photo on that lamp. A code that is unknown
// explains itself, and costs no word that was typed. The next one who scans it is offered
// the first report.
func TestPageScannedCode(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	c.startPhotoWorker()
	setLamps(t, c.signIn("Pavel", "operator"))
	const words = "What is wrong?"
	send := func(page *tapping, tap func(selector, name string)) {
		page.do(browser.See("form .quiet", "Lamp 1"))
		page.checkAccessible("a form that a code has opened")
		page.checkNarrow("a form that a code has opened")
		tap("label", words)
		page.do(browser.Insert("Lamp is dark"))
		page.taps++ // on the button that the browser's own dialog follows
		page.do(choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`))
		tap("button.primary", "Next")
		tap("button.primary", "Report without an account")
		page.do(browser.See("h1", "Your report is filed"), browser.Click("a.button", "See my report"), browser.See("#where ~ p", "Lamp 1"), shownPhotos("1"))
		page.checkFaults()
	}
	page := &tapping{tab: c.readerOf(shell, gateway, nil).open("new?asset=lamps/L-1", phone, slow4G)}
	send(page, page.tap)
	page.check(6)

	// Photos of guests are held until an official shows them.
	var filedFirst client.Report
	var photo uuid.UUID
	if err := c.reportDB.QueryRow(t.Context(), `select report_id, id from photos`).Scan(&filedFirst.ID, &photo); err != nil {
		t.Fatal(err)
	}
	c.showPhoto(c.signIn("Olga", "official"), filedFirst, photo)
	other := c.readerOf(shell, gateway, nil).open("new?asset=lamps/L-1", phone)
	other.do(browser.See("h2", "Already reported nearby?"), browser.See(".card strong", "On the same thing: Lamp 1"),
		browser.See(".card button", "Support it instead"), browser.Until(`document.querySelector('.card img.thumbnail')`))
	other.checkAccessible("a report on the same thing")
	other.checkNarrow("a report on the same thing")

	keys := &tapping{tab: c.readerOf(shell, gateway, nil).open("new?asset=lamps/L-2", phone)}
	press := func(selector, name string) {
		keys.tabTo(selector, name)
		keys.do(browser.Enter())
	}
	keys.do(browser.See("form .quiet", "Lamp 2"))
	keys.tabTo("input[required]", "")
	keys.do(browser.Insert("Lamp flickers"), browser.Go(gateway+"/new?asset=lamps/L-9"), live,
		browser.See("[role=alert]", "does not know the code lamps/L-9"), browser.Go(gateway+"/new?asset=lamps/L-2"), live,
		browser.Until(`document.querySelector('input[required]')?.value === 'Lamp flickers'`))
	keys.tabTo("input[type=file]", "")
	keys.do(choosePicture("input[type=file]"), browser.Until(`document.querySelector('.chosen img')`))
	press("button.primary", "Next")
	press("button.primary", "Report without an account")
	keys.do(browser.See("h1", "Your report is filed"))

	var filed int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports r join assets a on a.id = r.asset_id where a.code in ('L-1', 'L-2') and r.latitude < -6.5949`).Scan(&filed); err != nil || filed != 2 {
		t.Errorf("%d reports are on the lamps (error: %v), want 2", filed, err)
	}
}

// One key merges a report that is marked as a duplicate, and the focus is on the next one then:
// twenty take 22.
func TestPageMergesDuplicates(t *testing.T) {
	t.Parallel()
	const reports, most = 20, 61
	c, gateway := startWithGuests(t)
	setLamps(t, c.signIn("Pavel", "operator"))
	ana := c.signIn("Ana", "resident")
	for i := range reports + 1 {
		in := inBogor(fmt.Sprintf("Lamp is dark %02d", i), 0, 0)
		in.Asset = "lamps/L-1"
		if _, err := ana.CreateReport(t.Context(), in, "Idempotency-Key", uuid.NewString()); err != nil {
			t.Fatal(err)
		}
	}
	page := keys{tab: c.readerOf(shell, gateway, c.signIn("Olga", "official")).open("queue", browser.Width(1366, 768))}
	page.do(browser.See(".task", "Lamp is dark 20"), browser.See(".task .mark", "Perhaps of: Lamp is dark 00"))
	page.checkAccessible("reports that are perhaps duplicates")
	page.press("?")
	page.do(browser.See("dialog dd", "Merge with the report"), browser.Click("dialog button", "Close"), browser.Until(`!document.querySelector('dialog')`))
	page.press("j", "j")
	for i := range reports {
		page.do(focusOn(fmt.Sprintf("Lamp is dark %02d", i+1)))
		page.press("d")
		page.do(browser.Until(fmt.Sprintf(`document.querySelectorAll('.task .where.mark').length === %d`, i+1)))
	}
	var merged int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports where duplicate_of is not null`).Scan(&merged); err != nil || merged != reports {
		t.Errorf("%d reports are duplicates (error: %v), want %d", merged, err, reports)
	}
	if page.pressed > most {
		t.Errorf("%d keys for %d reports, want %d at most", page.pressed, reports, most)
	}
	t.Logf("%d reports merged with %d keys", reports, page.pressed)
	page.checkFaults()
}

// Things are on every map that is near enough: of the report, where they say what is open on
// them; of the desk; of a correction, which puts the report on one; and of the form for
// somebody who calls.
func TestPageThingsOnMaps(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	setLamps(t, c.signIn("Pavel", "operator"))
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	const thing = ".dot.asset"
	report, err := ana.CreateReport(t.Context(), inBogor("Dark crossing", 0, 0.1), "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}

	// An official puts the report on the lamp beside it.
	desk := keys{tab: c.readerOf(shell, gateway, olga).open("queue?report="+report.ID.String(), browser.Width(1366, 768), browser.Theme("light"))}
	desk.do(browser.See(".desk-detail h2", "Dark crossing"), browser.See(".desk-detail button", "Correct category or place"))
	desk.press("e")
	desk.do(browser.Click("dialog summary", "Another place"), browser.See("dialog "+thing, "Lamp 1"), browser.Click("dialog "+thing, "Lamp 1"),
		browser.See("dialog [role=status]", "About: Lamp 1"))
	desk.checkAccessible("a correction that chooses a thing")
	desk.do(browser.Click("dialog button.primary", "Correct"), browser.See(".desk-detail p", "Lamp 1 (lamps/L-1)"))

	// Its map shows the lamp with the report, and so does the one of the desk, nearer than at first.
	desk.do(browser.Click(".desk-detail "+thing, "Lamp 1"), browser.See(".popup a", "Dark crossing"),
		browser.Go(gateway+"/queue?map=1&status=all"), live, browser.See(".queue-map .dot", "Dark crossing"))
	for range 2 {
		desk.do(browser.Click(".queue-map .maplibregl-ctrl-zoom-in", ""))
	}
	desk.do(browser.See(".queue-map "+thing, "Lamp 1"))
	desk.checkAccessible("things on the map of the desk")

	// Somebody calls about the same lamp.
	desk.press("f")
	desk.do(browser.Until(`((list) => {
		list.value = '2';
		return list.dispatchEvent(new Event('change', { bubbles: true }));
	})(document.querySelector('dialog select[required]'))`), browser.Fill("What is wrong?", "Lamp flickers"), browser.Click("dialog button", "Choose on the map"))
	for range 2 {
		desk.do(browser.Click("dialog .maplibregl-ctrl-zoom-in", ""))
	}
	desk.do(browser.Click("dialog "+thing, "Lamp 1"), browser.See("dialog [role=status]", "About: Lamp 1"), browser.Click("dialog button.primary", "File"),
		browser.See(".desk-detail p", "Lamp 1 (lamps/L-1)"))
	desk.checkFaults()

	// A resident reads on the report's map what is open on it, and may report something else.
	page := c.readerOf(shell, gateway, ana).open("reports/"+report.ID.String(), phone, browser.Theme("dark"))
	page.do(browser.See("#where ~ p", "Lamp 1 (lamps/L-1)"), browser.Click(thing, "Lamp 1"), browser.See(".popup a", "Dark crossing"))
	page.checkAccessible("a thing on the map of a report")
	page.do(browser.Click(".popup a", "Report a problem with it"), browser.See(".card strong", "On the same thing: Lamp 1"))
	page.checkFaults()

	var on int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports r join assets a on a.id = r.asset_id where a.code = 'L-1'`).Scan(&on); err != nil || on != 2 {
		t.Errorf("%d reports are on the lamp (error: %v), want 2", on, err)
	}
}
