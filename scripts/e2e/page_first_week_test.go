package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// district is a border as a program of maps exports it, with properties of the city's own.
const district = `{"type": "FeatureCollection", "name": "batas", "features": [
	{"type": "Feature", "properties": {"OBJECTID": 1, "KODE_KEC": "3273.10", "NAMOBJ": "Coblong", "WADMKK": "Kota Bandung"},
	 "geometry": {"type": "Polygon", "coordinates": [[[107.60, -6.95], [107.65, -6.95], [107.65, -6.85], [107.60, -6.85], [107.60, -6.95]]]}},
	{"type": "Feature", "properties": {"OBJECTID": 2, "KODE_KEC": "3273.20", "NAMOBJ": "Cicendo", "WADMKK": "Kota Bandung"},
	 "geometry": {"type": "Polygon", "coordinates": [[[107.55, -6.95], [107.60, -6.95], [107.60, -6.85], [107.55, -6.85], [107.55, -6.95]]]}}]}`

// coblong waits until a department's areas can be chosen.
var coblong = browser.Until(`[...document.querySelectorAll('select option')].some(({ textContent }) => textContent === 'Coblong')`)

// steps waits until these of the first steps, and no others, are missing.
func steps(missing string) browser.Action {
	return browser.Until(fmt.Sprintf(`[...document.querySelectorAll('.setup [data-state=missing]')].map(({ dataset }) => dataset.step).join(' ') === %q`, missing))
}

// A newcomer makes the service a city's own by the console alone, along its list of first
// steps: categories, areas from a file as it comes, departments, a calendar, a colour that
// can be read, words around mails, a key for an application. An official writes a template
// and files at the counter. The console shows who works for the city, and erases a resident
// who asks for it.
func TestPageFirstWeek(t *testing.T) { //nolint:funlen // a week in order
	t.Parallel()
	c, _ := startWithGuests(t, "MAP_BOUNDS", "107.5,-7,107.7,-6.8", "PAGE_MAP_CENTER", "107.62,-6.9,14", "CITY_NAME", "Kota Bandung", "CITY_LANGUAGES", "en,id",
		"CITY_LOGO", filepath.Join(root(), "notification-service", "internal", "web", "app", "public", "icon.svg"))
	ana, oskar := c.signIn("Ana", "resident"), c.signIn("Oskar", "operator")
	page := c.reader(oskar).open("ops", browser.Width(1366, 768))
	page.do(steps("identity_provider mail categories departments areas calendar official backup alerts"), browser.See(".setup [role=status]", "3 of 12"))
	page.checkAccessible("first steps")
	for _, language := range []struct{ tag, title string }{{"en", "First steps"}, {"id", "Langkah pertama"}} {
		narrow := c.reader(oskar).open("ops", browser.Width(360, 740))
		narrow.speak(language.tag)
		narrow.do(browser.Reload(), browser.See(".setup h2", language.title))
		narrow.checkNarrow("first steps in " + language.tag)
		narrow.checkLargeText("first steps in " + language.tag)
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "first-steps-"+language.tag+".png"), must(narrow.Picture()), 0o600); err != nil {
			t.Error(err)
		}
		narrow.checkFaults()
		narrow.Close()
	}

	page.do(browser.Click(".setup a", "Categories"), browser.See(".ordered strong", "Graffiti"))
	addCategories(page)
	page.do(browser.Click("button.primary", "Save categories"), browser.See(".toast", "saved"), noToast)

	olga := c.signIn("Olga", "official")
	desk := keys{tab: c.reader(olga).open("queue", browser.Width(1366, 768))}
	page.do(browser.Click(".tabs a", "Settings"), browser.Click(".tabs a", "Areas"), browser.See(".empty", "Upload the first file"),
		browser.Until(fmt.Sprintf(`((input) => {
			if (!input) return false;
			const files = new DataTransfer();
			files.items.add(new File([%q], 'batas.geojson'));
			input.files = files.files;
			return input.dispatchEvent(new Event('change', { bubbles: true }));
		})(document.querySelector('input[type=file]'))`, district)),
		browser.See("fieldset li", "3273.10 Coblong"), // as it is guessed
		browser.Choose("Code", "OBJECTID"), browser.See("fieldset li", "2 Cicendo"),
		browser.Choose("Code", "KODE_KEC"), browser.Choose("Name (English)", "NAMOBJ"))
	page.checkAccessible("a file of areas")
	page.do(browser.Click("button.primary", "Replace the areas"), browser.See("tbody th", "3273.20"))

	page.do(browser.Click(".tabs a", "Departments"),
		browser.Click("button", "Add a department"), browser.Fill("Name", "Dinas Perhubungan"),
		browser.Click("label.chip", "Graffiti"), browser.Click("button.primary", "Save departments"), browser.See(".toast", "are saved"), noToast,
		browser.Click("fieldset button", "Add an area"), coblong,
		browser.Click("button.primary", "Save departments"), browser.See(".toast", "are saved"),
		browser.Click("button", "Add a department"), browser.Until(`((names) => {
			const name = names[names.length - 1];
			name.value = 'Dinas Lingkungan Hidup';
			return names.length === 2 && name.dispatchEvent(new Event('input', { bubbles: true }));
		})(document.querySelectorAll('.panel input[required]'))`),
		browser.Click("button.primary", "Save departments"), browser.See(".toast", "are saved"), noToast,
		browser.Click(".tabs a", "Calendar"), browser.Click("button.link", "Monday to Friday"),
		browser.Click("button.primary", "Save calendar"), browser.See(".toast", "The calendar is saved."), noToast,
		browser.Click(".tabs a", "Guests"), browser.See("strong", "Reporting without an account is on."),
		browser.Click(".tabs a", "Open311"), browser.Fill("Name of the application", "FixMyStreet"), browser.Click("button", "Make a key"),
		browser.See("dialog h2", "Key"), browser.Press(kb.Escape), browser.See(".rows strong", "FixMyStreet"),
		browser.Click(".tabs a", "Departments"), browser.Reload(), live, coblong)
	// Nobody gets street lights but by the area.
	file(t, ana, "Dark crossing")
	desk.do(browser.Reload(), live, browser.See(".task", "Dinas Perhubungan"), browser.Click(".task a", "Dark crossing"), browser.See(".desk-detail h2", "Dark crossing"))

	desk.do(browser.Go(c.gateway.URL+"/queue/templates"), browser.Click("button", "Add a template"), browser.Fill("Name", "Crew"),
		browser.Choose("For the status", "In progress"), browser.Fill("Text", "A crew is on its way."),
		browser.Click("button", "Save templates"), browser.See(".toast", "are saved"), noToast,
		browser.Go(c.gateway.URL+"/queue"), browser.See(".task", "Dark crossing"))
	desk.press("f")
	desk.do(browser.Until(`((list) => list?.matches('dialog select[required]') && ((list.value = '2'), list.dispatchEvent(new Event('change', { bubbles: true }))))(document.activeElement)`))
	desk.press(kb.Tab)
	desk.do(browser.Until(`document.activeElement.matches('dialog input[maxlength="200"]')`), browser.Insert("Broken lamp"), browser.Enter(),
		browser.See(".desk-detail h2", "Broken lamp"), browser.See(".desk-detail .meta span", "Entered by Olga"),
		browser.Click(".task a", "Dark crossing"), browser.See(".desk-detail h2", "Dark crossing"))

	page.do(browser.Click(".tabs a", "City"), browser.See("dd", "Kota Bandung"), browser.Until(`document.querySelector('dd img')?.naturalWidth > 0`), browser.See("label", "Colour"),
		browser.Until(`((input) => { input.value = '#ffd400'; return input.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector('input[type=color]'))`),
		browser.Fill("Greeting", "Dear resident,"), browser.Fill("Signature", "Your city, 8 to 16 h"),
		browser.See(".mail", "Dear resident,"), browser.See(".mail", "8 to 16 h"),
		browser.Click("button.primary", "Save colour and mails"), browser.See(".toast", "Saved"), browser.See(".tone", "#"),
		browser.Reload(), live, browser.See(".mail", "8 to 16 h"))
	if colour := ask[string](t, page.Tab, `getComputedStyle(document.querySelector('button.primary')).backgroundColor`); colour == "rgb(11, 107, 98)" {
		t.Error("the page has another colour than the city's")
	}
	page.checkAccessible("a colour of the city's own")

	page.do(browser.Click(".tabs a", "People"), browser.See(".rows .meta", "Official"), browser.See(".rows strong", "Olga"),
		browser.Click("button", "Erase a person"),
		browser.Fill("Id of the person", ana.ID), browser.Fill("The same id again", ana.ID),
		browser.Click("dialog button.danger", "Erase"), browser.See(".toast", "under way"),
		browser.Until(`document.querySelectorAll('section .badge[data-status=resolved]').length === 2`))
	page.checkAccessible("an erasure that is done")
	desk.do(browser.Until(`!document.querySelector('.desk-detail').textContent.includes('Ana')`))

	page.do(browser.Click(".tabs a", "Overview"), steps("identity_provider mail backup alerts"),
		browser.Click("button", "Tick: Backup"), steps("identity_provider mail alerts"),
		browser.Click("button", "I do not need this list"), browser.Until(`!document.querySelector('.setup')`),
		browser.Reload(), live, browser.See("h2", "problem"), browser.Until(`!document.querySelector('.setup')`))
	page.checkFaults()
	desk.checkFaults()
}
