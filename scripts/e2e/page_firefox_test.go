package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/firefox"
)

// A resident's whole way in Firefox, on a phone, in each language that the browser may
// prefer: they look at the list, sign in, report a lamp with its place and a photo, see
// its status change, vote for another report, read what they were notified of, look at
// the settings and sign out. There is no map, since this browser has no WebGL; the place
// is said in words. No screen has an error or scrolls sideways, also with text
// of twice the size.
func TestPageInFirefox(t *testing.T) {
	t.Parallel()
	c := startCity(t)
	c.startPhotoWorker()
	official := c.signIn("Olga", "official")
	photo := filepath.Join(t.TempDir(), "lamp.jpg")
	if err := os.WriteFile(photo, largePicture(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"en", "id"} {
		t.Run(language, func(t *testing.T) {
			other, err := c.signIn("Ben", "resident").CreateReport(t.Context(), inBogor("Hole at the school "+language, 1, 1), "Idempotency-Key", uuid.NewString())
			if err != nil {
				t.Fatal(err)
			}
			p := startFox(t, language)
			word := p.words

			p.do(firefox.Go(c.gateway.URL), firefox.See(".card", other.Title), firefox.Until(`document.documentElement.lang === '`+language+`'`))
			p.check("list")
			p.do(firefox.Click(".tools button", word["menu"]), firefox.See("dialog h2", word["menu"]))
			p.check("menu")
			p.do(firefox.Click("dialog a.button", word["sign-in"]), firefox.See("h1", word["sign-in"]))
			p.check("sign-in")
			p.fileReport(photo)
			p.seeReportMove(official)
			p.lookAround(other.Title)
		})
	}
}

// fileReport signs in, and reports a dark lamp with its place in words and a photo.
func (p fox) fileReport(photo string) {
	p.t.Helper()
	word := p.words
	p.do(
		firefox.Fill(word["sign-in.name"], "Ana"),
		firefox.Click("form button", word["sign-in"]),
		firefox.Until(`document.querySelector('.bell') && document.querySelector('.connection[data-state=live]')`),
		firefox.Click("nav a", word["new"]),
		firefox.See(".map p", word["map.failed"]),
	)
	p.check("place")
	p.do(
		firefox.Fill(word["place.address"], "Jalan Salak 12"),
		firefox.Click("button.primary", word["new.next"]),
		firefox.See("h2", word["new.ask.what"]),
	)
	p.check("category")
	p.do(
		firefox.Click(".categories label", ""),
		firefox.See("h2", word["new.ask.words"]),
		firefox.Fill(word["new.title"], p.lamp),
		firefox.Files("input[type=file]", photo),
		firefox.Until(`document.querySelector('.chosen img')?.naturalWidth > 0`),
	)
	p.check("words and photo")
	p.do(firefox.Click("button.primary", word["new.next"]), firefox.Click("label.option", word["privacy.public"]))
	p.check("privacy")
	p.do(firefox.Click("button.primary", word["new.file"]), firefox.See("h1", word["new.filed"]))
	p.check("filed")
}

// seeReportMove opens the report that was filed, whose status an official changes.
func (p fox) seeReportMove(official *client.Client) {
	p.t.Helper()
	word := p.words
	p.do(
		firefox.Click("a.button", word["filed.see"]),
		firefox.See("h1", p.lamp),
		firefox.See("main", "Jalan Salak 12"),
		firefox.See(".meta", word["status.pending"]),
		firefox.Until(`[...document.querySelectorAll('.photos img[src^="/photos/"]')].some((i) => i.complete && i.naturalWidth > 0)`),
		firefox.Until(`(globalThis.stays = true)`),
	)
	path, err := firefox.Ask[string](p.t.Context(), p.Tab, `location.pathname`)
	if err != nil {
		p.t.Fatal(err)
	}
	mine := client.Report{ID: uuid.MustParse(filepath.Base(path))}
	move(p.t, official, mine, "in_progress", "A team is on its way")
	p.do(
		firefox.See(".meta", word["status.in_progress"]),
		firefox.See("main", "A team is on its way"),
		firefox.Until(`globalThis.stays`), // not loaded again
	)
	p.check("report")
}

// lookAround votes for another report, and looks at notifications and settings before it
// signs out.
func (p fox) lookAround(other string) {
	p.t.Helper()
	word := p.words
	p.do(
		firefox.Click("nav a", word["reports"]),
		firefox.See(".card", p.lamp), // the list has moved
		firefox.Click(".card a", other),
		firefox.See("h1", other),
		firefox.Click(".votes button", word["vote.upvote"]),
		firefox.See("output", "1"),
		firefox.Until(`document.querySelector('.votes [aria-pressed=true]')`),
	)
	p.check("vote")
	p.do(firefox.Click("button.bell", ""), firefox.See("dialog .group", p.lamp))
	p.check("notifications")
	p.do(
		firefox.Click("dialog button", word["close"]),
		firefox.Click(".tools button", word["menu"]),
		firefox.Click("dialog a.button", word["settings"]),
		firefox.See("h1", word["settings"]),
		firefox.See("label", word["settings.address.yours"]),
	)
	p.check("settings")
	p.do(
		firefox.Click(".tools button", word["menu"]),
		firefox.Click("dialog button", word["sign-out"]),
		firefox.Until(`location.pathname === '/' && !document.querySelector('.bell') && document.querySelector('.connection[data-state=live]')`),
		firefox.See(".card", p.lamp),
	)
	p.check("list after signing out")
}

// A fox is a Firefox with the page.
type fox struct {
	t *testing.T
	*firefox.Tab
	words map[string]string // the page's, by their keys
	lamp  string            // the title of the report that is filed, which no other has
}

// startFox starts a Firefox as large as a phone, whose reader prefers a language.
func startFox(t *testing.T, language string) fox {
	t.Helper()
	tab, err := firefox.Start(t.Context(), language, 390, 844)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Close)
	page := fox{t, tab, make(map[string]string), "Lamp is dark " + language}
	for _, part := range []string{"page.", "receipt.", "settings."} {
		file, err := os.ReadFile(filepath.Join(root(), "notification-service/internal/web/app/src/lang", part+language+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(file, &page.words); err != nil {
			t.Fatal(err)
		}
	}
	return page
}

// do does actions one after the other.
func (p fox) do(actions ...firefox.Action) {
	p.t.Helper()
	if err := p.Do(p.t.Context(), actions...); err != nil {
		p.picture("failed")
		text, _ := firefox.Ask[string](p.t.Context(), p.Tab, `location.href + '\n' + document.body.innerText`)
		faults, _ := p.Faults(p.t.Context())
		p.t.Fatalf("in Firefox: %v\nthe page shows:\n%s\nits faults:\n%s", err, text, strings.Join(faults, "\n"))
	}
}

// check fails the test if a screen scrolls sideways, or if anything went wrong in the
// page so far, and takes its picture.
func (p fox) check(screen string) {
	p.t.Helper()
	p.do(firefox.Until(`!document.querySelector('[aria-busy=true]')`))
	p.picture(screen)
	for what, script := range map[string]string{"scrolls sideways": wide, "is wider than the window with text of 200 %": wideText} {
		found, err := firefox.Ask[[]string](p.t.Context(), p.Tab, script)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(found) > 0 {
			p.t.Errorf("%s %s:\n%s", screen, what, strings.Join(found, "\n"))
		}
	}
	faults, err := p.Faults(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if len(faults) > 0 {
		p.t.Errorf("faults until %s:\n%s", screen, strings.Join(faults, "\n"))
	}
}

// picture keeps what is to be seen among the test's artifacts: go test -artifacts.
func (p fox) picture(screen string) {
	p.t.Helper()
	picture, err := p.Picture(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.t.ArtifactDir(), screen+".png"), picture, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
