package wording_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

// write puts a file of words into a folder.
func write(t *testing.T, folder, name string, words map[string]string) {
	t.Helper()
	body, err := json.Marshal(words)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file of words.
func read(t *testing.T, folder, name string) (words map[string]string) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(folder, name))
	if err == nil {
		err = json.Unmarshal(body, &words)
	}
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// A fault of a translation is named with its file and key, and a word without fault not.
func TestFaultsOfWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, key, text, want string }{
		{"page.nl.json", "report.by", "door {name}", ""},
		{"page.nl.json", "report.by", "door {nmae}", `page.nl.json: "report.by" must not have {nmae}`},
		{"page.nl.json", "report.by", "door iemand", `page.nl.json: "report.by" must have {name}`},
		{"page.nl.json", "report.by", "door {name} {", `page.nl.json: "report.by" must have no brace`},
		{"page.nl.json", "report.from", "van {name}", `page.nl.json: "report.from" must be a key`},
		{"page.nl.json", "reports.fresh.few", "een nieuwe", ""}, // a form that English does not have, without its number
		{"page.nl.json", "reports.fresh.other", "nieuwe", `"reports.fresh.other" must have {count}`},
		{"page.nl.json", "reports.all.few", "alle", `"reports.all.few" must be a key`},
		{"page.nl.json", "dir", "left", `"dir" must be ltr or rtl`},
		{"queue.nl.json", "report.by", "door {name}", `queue.nl.json: "report.by" must be a key`},
		{"queu.nl.json", "report.by", "door {name}", "queu.nl.json: must have the name of a file"},
		{"page.id.json", "report.by", "oleh {name}", "page.id.json: must be in a language"},
		{"mail.nl.json", "ask", "Is het klaar? Zeg het voor {{.Until}}.", ""},
		{"mail.nl.json", "ask", "Is het klaar?", `mail.nl.json: "ask" must have {{.Until}}`},
		{"mail.nl.json", "anonymous.subject", "Nieuws over {{.Item.Title}}", `"anonymous.subject" must not have {{.Item.Title}}`},
		{"mail.nl.json", "item.report.status.updated", "{{if .Reply}}Antwoord{{else}}Nu {{.Status}}", `"item.report.status.updated" must be a template`},
		{"mail.nl.json", "item.report.vote.received", "Stemmen: {{.Score}}", ""},
		{"mail.nl.json", "time", "2-1-2006 15:04", ""},
		{"mail.nl.json", "time", "2-1-2006", `"time" must be a layout of Go`},
		{"mail.nl.json", "day", "dag", `"day" must be a layout of Go`},
	} {
		folder := t.TempDir()
		write(t, folder, tt.file, map[string]string{tt.key: tt.text, "//" + tt.key: "not a word {", "language.name": ""})
		if strings.Contains(tt.file, ".id.") {
			write(t, folder, tt.file, map[string]string{tt.key: tt.text})
		}
		_, err := wording.ReadFolder(folder, nil)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %q: error %v, want %q", tt.file, tt.key, tt.text, err, tt.want)
		}
	}
	if _, err := wording.ReadFolder(t.TempDir(), nil); err == nil {
		t.Error("an empty folder is read")
	}
}

// Gaps of a translation are those of the city's first language, and counted.
func TestGapsOfWords(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "page.nl.json", map[string]string{
		"close": "Sluiten", "//close": "Shut", "reports.fresh.one": "{count} nieuwe", "reports.fresh.other": "{count} nieuwe meldingen", "dir": "rtl"})
	for first, want := range map[string]string{"id": "Lompat", "en": "Skip"} {
		all, err := wording.ReadFolder(folder, []string{"nl", first})
		if err != nil || len(all) != 1 {
			t.Fatalf("%d translations, error %v", len(all), err)
		}
		nl := all[0]
		page := nl.Parts["page"]
		if !strings.HasPrefix(page["skip"], want) || nl.Parts["queue"] == nil || nl.Parts["mail"]["unsubscribe"] == "" {
			t.Errorf("%q is not %s…, or parts are missing", page["skip"], want)
		}
		for key, want := range map[string]string{
			"close": "Sluiten", "reports.fresh.one": "{count} nieuwe", "reports.fresh.few": "{count} nieuwe meldingen", "language.name": "nl", "dir": "rtl",
		} {
			if page[key] != want {
				t.Errorf("%s is %q, want %q", key, page[key], want)
			}
		}
		if nl.Stale != 1 || nl.Missing < 1000 {
			t.Errorf("%d stale and %d missing, want 1 and more than 1000", nl.Stale, nl.Missing)
		}
	}
}

// The files to translate are read as they are, and once they are written again, keep what
// was translated and have the forms of the language.
func TestFilesToTranslate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 2 {
		if err := wording.WriteFolder(folder, "ar"); err != nil {
			t.Fatal(err)
		}
		page := read(t, folder, "page.ar.json")
		for _, form := range []string{"zero", "one", "two", "few", "many", "other"} {
			if _, ok := page["reports.fresh."+form]; !ok {
				t.Errorf("no form %s", form)
			}
		}
		if page["//close"] != "Close" || page["gone"] != "" {
			t.Errorf("the English beside close is %q, and a key that is gone %q", page["//close"], page["gone"])
		}
		if _, err := wording.ReadFolder(folder, nil); err != nil {
			t.Error(err)
		}
		page["close"], page["gone"] = "إغلاق", "x"
		write(t, folder, "page.ar.json", page)
	}
	if page := read(t, folder, "page.ar.json"); page["close"] != "إغلاق" {
		t.Errorf("close is %q", page["close"])
	}
	for _, language := range []wording.Language{"en", "id", "x", "../xx"} {
		if err := wording.WriteFolder(t.TempDir(), language); err == nil {
			t.Errorf("%q is taken", language)
		}
	}
}
