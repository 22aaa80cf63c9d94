package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// Two languages that exist in a folder alone, made of the English words by letters that
// English does not have: the browser's dates and numbers have these, too. So each Latin
// word that is left on a screen or in a mail was not translated.
var pseudoLanguages = []struct{ tag, dir, letters string }{
	{"el", "ltr", "αβγδεφγηικκλμνοπκρστυβωχψζ"},
	{"ar", "rtl", "ابجدهوزحطيكلمنسعفصقرشتثخذض"},
}

var (
	gaps = regexp.MustCompile(`\{\{.*?\}\}|\{\w+\}`)
	// longer are letters that are written twice: words of other languages are longer.
	longer = strings.NewReplacer("e", "ee", "o", "oo")
)

// pseudo writes a text in other letters, and leaves its placeholders.
func pseudo(text, letters string) string {
	to := []rune(letters)
	translate := func(part string) string {
		return strings.Map(func(r rune) rune {
			if r < 'a' || r > 'z' {
				return r
			}
			return to[r-'a']
		}, longer.Replace(strings.ToLower(part)))
	}
	var b strings.Builder
	end := 0
	for _, gap := range gaps.FindAllStringIndex(text, -1) {
		b.WriteString(translate(text[end:gap[0]]) + text[gap[0]:gap[1]])
		end = gap[1]
	}
	return b.String() + translate(text[end:])
}

// translateFolder makes a folder of words in a pseudo-language, as a city does.
func (c *stack) translateFolder(tag, dir, letters string) (folder string) {
	c.t.Helper()
	folder = c.t.TempDir()
	c.command(c.notification, "words", tag, folder)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) < 10 {
		c.t.Fatalf("%d files to translate, error %v", len(files), err)
	}
	for _, file := range files {
		var words map[string]string
		if err := json.Unmarshal(must(os.ReadFile(file)), &words); err != nil {
			c.t.Fatal(err)
		}
		for key := range words {
			if english, ok := words["//"+key]; ok {
				words[key] = pseudo(english, letters)
			}
		}
		for key, text := range map[string]string{"dir": dir, "time": "2006-01-02 15:04", "day": "2006-01-02"} {
			if _, ok := words[key]; ok {
				words[key] = text
			}
		}
		if err := os.WriteFile(file, must(json.Marshal(words)), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	return folder
}

// latin is JavaScript for the Latin words that a reader sees or hears of, without names
// of programs, formats and queues, addresses and what people wrote.
const latin = `(() => {
	const shown = (e) => e.checkVisibility() && !e.closest('code, pre, kbd, .map-canvas, [translate=no], option[lang], script, style, noscript');
	const texts = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) if (shown(walker.currentNode.parentElement)) texts.push(walker.currentNode.data);
	for (const e of document.querySelectorAll('body *')) if (shown(e))
		for (const name of ['aria-label', 'placeholder', 'title', 'alt']) if (e.hasAttribute(name)) texts.push(e.getAttribute(name));
	return [...new Set(texts.filter((text) => known.reduce((left, word) => left.replaceAll(word, ''), text.replaceAll(/queue\.\w+/g, '')).match(/[A-Za-z]{2,}/)))];
})()`

// notTranslated are names and units that are the same in every language, and what the
// test's people wrote.
var notTranslated = []string{
	"CityConnect", "OpenStreetMap", "MapLibre", "OpenMapTiles", "photo-worker", "delivery-worker",
	"GiB", "ms", "UTC", "cityconnect@localhost", "Jl. Asia Afrika 8", "Since Monday.", "1@2.example",
}

// A language that a city has in a folder is on every screen and in every mail, from right
// to left where it says so, and nothing is wider than a phone.
func TestLanguageOfAFolder(t *testing.T) {
	t.Parallel()
	for _, language := range pseudoLanguages {
		t.Run(language.tag, func(t *testing.T) {
			t.Parallel()
			c := prepareStack(t)
			folder := c.translateFolder(language.tag, language.dir, language.letters)
			for _, p := range []*process{c.report, c.notification} {
				p.env["CITY_WORDS"] = folder
			}
			c.start()
			c.checkScreensIn(language.tag, language.dir)
			c.checkMailsIn(language.tag, language.dir, folder)
		})
	}
}

// checkScreensIn opens screens of every role in a language on a phone.
func (c *stack) checkScreensIn(tag, dir string) {
	c.t.Helper()
	ana, olga, oskar := c.signIn("Ана", "resident"), c.signIn("Ольга", "official"), c.signIn("Оскар", "operator")
	report := file(c.t, ana, "Темно")
	move(c.t, olga, report, "in_progress", "Едем")
	detail := "reports/" + report.ID.String()
	contact := map[string]string{"address": "1@2.example", "language": tag, "zone": "Etc/GMT-7"}
	if err := ana.Do(c.t.Context(), http.MethodPut, "/me/contact", contact, nil); err != nil {
		c.t.Errorf("an address in the language: %v", err)
	}
	contact["language"] = "xx"
	if err := ana.Do(c.t.Context(), http.MethodPut, "/me/contact", contact, nil); err == nil || !strings.Contains(err.Error(), "one of en, id, "+tag) {
		c.t.Errorf("an address in a language without words: %v", err)
	}
	known := append(slices.Clone(notTranslated), c.namesOfTheCity(oskar)...)
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // "ms" is a part of names
	prepare := browser.InEachDocument(fmt.Sprintf(`localStorage.setItem('cityconnect.language', %q); globalThis.known = %s`, tag, must(json.Marshal(known))))
	screens := 0
	for _, as := range []struct {
		reader    reader
		addresses []string
	}{
		{c.reader(nil), []string{"", detail, "sign-in"}},
		{c.reader(ana), []string{"", "?q=0", detail, "new", "new?step=2", "new?step=3", "new?step=4", "nowhere", "reports/" + uuid.NewString(), "queue", "mine", "settings"}},
		{c.reader(olga), []string{detail, "queue", "queue?report=" + report.ID.String() + "&status=all", "queue/photos", "queue/abuse", "queue/numbers", "queue/templates", "queue/moves"}},
		{c.reader(oskar), []string{
			"ops", "ops/queues", "ops/outbox", "ops/dead-letters", "ops/replays", "ops/webhooks", "ops/email", "ops/schedules", "ops/audit", "ops/reconciliation",
			"ops/categories", "ops/areas", "ops/assets", "ops/departments", "ops/calendar", "ops/open311", "ops/people", "ops/city",
		}},
	} {
		for _, address := range as.addresses {
			page := as.reader.open(address, browser.Width(390, 844), prepare)
			page.do(browser.Until(`document.documentElement.lang === '` + tag + `' && document.querySelector('main h1, main h2') && !document.querySelector('.skeleton')`))
			if got := ask[string](c.t, page.Tab, `getComputedStyle(document.body).direction`); got != dir {
				c.t.Errorf("/%s is written %s, want %s", address, got, dir)
			}
			if left := ask[[]string](c.t, page.Tab, latin); len(left) > 0 {
				c.t.Errorf("/%s has words that are not translated: %q", address, left)
			}
			if over := ask[int](c.t, page.Tab, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				c.t.Errorf("/%s is %d pixels wider than a phone", address, over)
			}
			if err := os.WriteFile(filepath.Join(c.t.ArtifactDir(), fmt.Sprintf("%s-%02d.png", tag, screens)), must(page.Picture()), 0o600); err != nil {
				c.t.Error(err)
			}
			page.checkFaults()
			page.Close()
			screens++
		}
	}
	c.t.Logf("%d screens in %s", screens, tag)
	if html := htmlAt(c.t, c.report.url()+"/"+detail+"/preview?lang="+tag, ""); regexp.MustCompile(`description" content="[A-Za-z]`).MatchString(html) {
		c.t.Errorf("the preview has a status in English:\n%s", html)
	}
}

// namesOfTheCity returns what the city calls its categories, with their hints, and the
// services their schedules.
func (c *stack) namesOfTheCity(oskar *client.Client) (names []string) {
	c.t.Helper()
	var list struct {
		Categories []struct{ Name, Hint string }
		Schedules  []struct{ Name string }
	}
	for _, path := range []string{"/categories", "/admin/reports/schedules", "/admin/notifications/schedules"} {
		if err := oskar.Do(c.t.Context(), http.MethodGet, path, nil, &list); err != nil {
			c.t.Fatal(err)
		}
		for _, schedule := range list.Schedules {
			names = append(names, schedule.Name)
		}
		list.Schedules = nil
	}
	for _, category := range list.Categories {
		names = append(names, category.Name, category.Hint)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// checkMailsIn writes every mail in a language, with the examples' titles and notes.
func (c *stack) checkMailsIn(tag, dir, folder string) {
	c.t.Helper()
	program := exec.CommandContext(c.t.Context(), "go", "run", "./notification-service/internal/email/examples")
	program.Dir, program.Env = root(), append(os.Environ(), "CITY_WORDS="+folder)
	var mails map[string]map[string]string // by language and kind
	if err := json.Unmarshal(must(program.Output()), &mails); err != nil {
		c.t.Fatal(err)
	}
	// The examples' words of the city and of people, as in English.
	pairs := make([]string, 0, 32)
	for _, text := range []string{
		"Lampu jalan padam di perempatan Jl. Kapten Muslihat", "Kabelnya putus. Petugas sedang dalam perjalanan.", "Sampah menumpuk di belakang Pasar Bogor",
		"Lampunya ada di perempatan sebelah.", "Pipa air bocor", "Pipanya sudah diganti.", "Lampu jalan dan lampu lalu lintas",
		"Street lights and signals", "Waste and illegal dumping", "Kota Bogor", "tickets.city.example.org",
		"ABCD-EFGH", "Jl. Kapten Muslihat 51", "Tiang ketiga dari perempatan.", "Works department",
	} {
		pairs = append(pairs, text, "")
	}
	data := strings.NewReplacer(pairs...)
	tags := regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>|&#?\w+;`)
	words := regexp.MustCompile(`[A-Za-z]{2,}`)
	for kind, mail := range mails[tag] {
		if left := words.FindAllString(data.Replace(tags.ReplaceAllString(mail, " ")), -1); len(left) > 0 {
			c.t.Errorf("the mail %s has words that are not translated: %q", kind, left)
		}
		if !strings.Contains(mail, `<html lang="`+tag+`" dir="`+dir+`">`) {
			c.t.Errorf("the mail %s has another language or direction", kind)
		}
	}
	c.t.Logf("%d mails in %s", len(mails[tag]), tag)
	if len(mails[tag]) < 12 {
		c.t.Errorf("%d mails, want at least 12", len(mails[tag]))
	}
}
