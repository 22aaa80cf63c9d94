package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// bogor are the categories of a city, in English and Indonesian.
var bogor = [14][2]string{
	{"Potholes", "Jalan berlubang"},
	{"Street lighting", "Penerangan jalan umum"},
	{"Household waste", "Sampah rumah tangga"},
	{"Illegal dumping", "Pembuangan sampah liar"},
	{"Flooding", "Banjir dan genangan"},
	{"Fallen trees", "Pohon tumbang"},
	{"Landslides", "Tanah longsor"},
	{"Angkot and buses", "Angkot dan bus"},
	{"Street vendors", "Pedagang kaki lima"},
	{"Illegal parking", "Parkir liar"},
	{"Broken pavement", "Trotoar rusak"},
	{"City parks", "Taman kota"},
	{"Clean water", "Air bersih"},
	{"Population registry", "Layanan kependudukan"},
}

// addCategories writes those of bogor into the console's form.
func addCategories(console tab) {
	for i, names := range bogor {
		english, indonesian := names[0], names[1]
		console.do(browser.Click("button", "Add a category"),
			browser.Until(`document.activeElement.matches('.category-fields input')`),
			browser.Insert(english), browser.Press(kb.Tab), browser.Press(kb.Tab), browser.Press(kb.Tab), browser.Insert(indonesian))
		if i == 0 {
			console.do(browser.See(".ordered strong", english))
		}
	}
}

// An operator gives a city its own fourteen categories in two languages, renames one,
// retires one and puts one first by keyboard; residents see that in their language on a
// phone, also of what was filed before, without a restart.
func TestPageOwnCategories(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, oskar := c.signIn("Ana", "resident"), c.signIn("Oskar", "operator")
	file(t, ana, "Dark crossing") // about street lights

	console := c.reader(oskar).open("ops/categories", browser.Width(1200, 900))
	console.do(browser.See(".ordered strong", "Graffiti"))
	addCategories(console)
	// The one whose report was filed is renamed, in both languages.
	console.do(browser.Click("button", "Edit: Street lights and signals"),
		browser.Fill("Name (English)", "Lamps and signals"), browser.Fill("Name (Indonesian)", "Lampu"),
		browser.Click("button", "Edit: Graffiti"), browser.Click("button", "Retire"))
	// From behind to the front, by nothing but a key.
	focused := `document.activeElement.ariaLabel`
	console.do(browser.Until(`(() => { const up = document.querySelector('[aria-label="Move up: Population registry"]'); up.focus(); return ` + focused + ` === up.ariaLabel })()`))
	for range 23 {
		console.do(browser.Enter(), browser.Until(focused+` === 'Move up: Population registry'`))
	}
	console.do(browser.Until(`document.querySelector('.ordered strong').textContent === 'Population registry'`),
		browser.Click("button.primary", "Save categories"), browser.See(".toast", "saved"),
		browser.See(".rows .meta", "added 14"))
	console.checkAccessible("categories")

	resident := c.reader(ana)
	for _, language := range []struct{ tag, first, added, renamed, gone, search string }{
		{"en", "Population registry", "Angkot and buses", "Lamps and signals", "Graffiti", "flood"},
		{"id", "Layanan kependudukan", "Angkot dan bus", "Lampu", "Grafiti", "banjir"},
	} {
		page := resident.open("", browser.Width(390, 844))
		page.speak(language.tag)
		page.do(browser.Reload(), browser.See(".card .where", language.renamed), browser.Go(c.gateway.URL+"/new?step=2"))
		page.do(browser.See(".categories label", language.added), browser.See(".categories label:first-of-type", language.first))
		shown, err := browser.Ask[[]string](page.Tab, `[...document.querySelectorAll('.categories .option > span')].map((e) => e.firstChild.textContent)`)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown) != 24 || shown[0] != language.first || strings.Contains(strings.Join(shown, "|"), language.gone) {
			t.Errorf("in %s a resident chooses among %q, want 24 with %s first and without %s", language.tag, shown, language.first, language.gone)
		}
		page.checkNarrow("categories in " + language.tag)
		page.checkLargeText("categories in " + language.tag)
		page.checkFaults()
		page.Close()
	}
	console.checkFaults()
}
