package e2e

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// choosePicture chooses a picture in the field, as the browser's own dialog does.
func choosePicture(field string) browser.Action {
	return browser.Until(fmt.Sprintf(`((input) => {
		if (!input) return false;
		const canvas = Object.assign(document.createElement('canvas'), { width: 800, height: 600 });
		canvas.getContext('2d').fillRect(0, 0, 400, 600);
		const text = atob(canvas.toDataURL('image/jpeg').split(',')[1]);
		const files = new DataTransfer();
		files.items.add(new File([Uint8Array.from(text, (c) => c.charCodeAt(0))], 'photo.jpg', { type: 'image/jpeg' }));
		input.files = files.files;
		return input.dispatchEvent(new Event('change', { bubbles: true }));
	})(document.querySelector(%q))`, field))
}

// tapping is somebody with a phone, whose taps are counted.
type tapping struct {
	tab
	taps int
}

func (p *tapping) tap(selector, name string) {
	p.t.Helper()
	p.taps++
	p.do(browser.Click(selector, name))
}

func (p *tapping) check(most int) {
	p.t.Helper()
	if p.taps > most {
		p.t.Errorf("%d taps, want %d at most", p.taps, most)
	}
}

// A resident answers the city's question on a phone, with a photo, in six taps from any
// page, in both languages. The question stays under the bell until then. The official
// reads the answer without a reload, and nobody else reads anything of it.
func TestPageAnswersQuestion(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startPhotoWorker()
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	for language, words := range map[string][3]string{
		"en": {"The city asks you", "Only you and the city read", "The city has your answer"},
		"id": {"Pemerintah kota bertanya", "Hanya Anda dan pemerintah kota", "Jawaban Anda sudah diterima"},
	} {
		report := file(t, ana, "Dark crossing "+language)
		askReporter(t, olga, report, "Which lamp, "+language+"?")
		pane := c.reader(olga).open("queue?report="+report.ID.String(), browser.Width(1366, 768))
		pane.do(browser.See(".dialogue .said", "Which lamp"), browser.See(".task", "Waiting"))
		stranger := c.reader(c.signIn("Ben", "resident")).open("reports/"+report.ID.String(), phone)

		person := c.reader(ana)
		person.open("", phone).speak(language)
		page := tapping{tab: person.open("", phone)}
		page.tap(".bell", "")
		page.do(browser.See(".asked a", report.Title))
		page.checkAccessible("an open question under the bell, " + language)
		page.tap(".asked a", report.Title)
		page.do(browser.See(".asked h2", words[0]), browser.See(".asked .story", "Which lamp"), browser.See(".asked .quiet", words[1]))
		page.checkAccessible("a question, " + language)
		page.checkLargeText("a question, " + language)
		page.checkNarrow("a question, " + language)
		page.tap(".asked textarea", "")
		page.do(browser.Insert("The one at the bridge."))
		page.taps++ // on the button that the browser's own dialog follows
		page.do(choosePicture(".asked input[type=file]"), browser.Until(`document.querySelector('.asked .chosen img')`))
		page.tap(".asked button.primary", "")
		page.do(browser.See("[role=status]", words[2]), browser.Until(`!document.querySelector('.asked')`), shownPhotos("1"))
		page.check(6)
		page.do(browser.Click(".dialogue summary", ""), browser.See(".dialogue .said", "The one at the bridge."))
		page.checkAccessible("a dialogue, " + language)
		page.do(browser.Click(".bell", ""), browser.See("dialog h2", ""), browser.Until(`!document.querySelector('.asked')`))

		pane.do(browser.See(".dialogue .said", "The one at the bridge."), browser.Until(`!document.querySelector('.task')?.textContent.includes('Waiting')`))
		pane.checkAccessible("a dialogue in the pane, " + language)
		stranger.do(browser.See("h1", report.Title), browser.Until(`!document.body.textContent.includes('Which lamp') && !document.querySelector('.dialogue')`))
		for _, tab := range []tab{page.tab, pane, stranger} {
			tab.checkFaults()
			tab.Close()
		}
	}
}

// A resident says in three taps from any page whether a resolved report is fixed, in both
// languages, and sees the photos of before and after beside each other. What is disputed
// is on top of the official's queue, and one of them keeps it resolved.
func TestPageVerdict(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startPhotoWorker()
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	for language, words := range map[string][2]string{"en": {"Is it fixed?", "Not fixed, says the reporter"}, "id": {"Apakah sudah beres?", "Belum beres, kata pelapor"}} {
		report := file(t, ana, "Dark crossing "+language)
		if _, err := ana.AddPhoto(t.Context(), report.ID, uuid.New(), "Before", whitePicture(t)); err != nil {
			t.Fatal(err)
		}
		pane := c.reader(olga).open("queue?report="+report.ID.String(), browser.Width(1366, 768))
		pane.do(browser.See(".desk-detail h2", report.Title), browser.Press("p"), chooseFinished,
			browser.Until(`document.querySelector('.status-form .chosen img')`), browser.Enter(), browser.Until(`!document.querySelector('.task')`))

		person := c.reader(ana)
		person.open("", phone).speak(language)
		page := tapping{tab: person.open("", phone)}
		page.tap(".bell", "")
		page.do(browser.See(".group .what", words[0]))
		page.tap(".group a", report.Title)
		page.do(browser.See(".asked h2", words[0]), shownPhotos("2"), besideEachOther)
		page.checkAccessible("a question whether it is fixed, " + language)
		page.checkLargeText("a question whether it is fixed, " + language)
		page.tap(".asked button:last-child", "")
		page.do(browser.See(".timeline .badge", words[1]))
		page.check(3)
		page.do(browser.Click(".asked textarea", ""), browser.Insert("Dark again."), browser.Click(".asked form button", ""))

		pane.do(browser.Click(".views button", "Disputed"), browser.See(".task .disputed", "Disputed"),
			browser.Click(".task a", report.Title), browser.See(".desk-detail .said", "Dark again."))
		pane.checkAccessible("a disputed report, " + language)
		pane.do(browser.Click("button", "Keep it resolved"), browser.Until(`document.activeElement.matches('dialog textarea')`),
			browser.Insert("It was lit yesterday."), browser.Click("dialog button.primary", "Keep it resolved"),
			browser.See(".acts li", "kept it resolved"))
		page.do(browser.See(".timeline .said", "It was lit yesterday."), browser.Until(`!document.querySelector('.asked')`))
		for _, tab := range []tab{page.tab, pane} {
			tab.checkFaults()
			tab.Close()
		}
	}
	numbers := c.reader(olga).open("queue/numbers", phone)
	numbers.do(browser.See(".sums caption", "Is it fixed? By category"))
	numbers.checkAccessible("verdicts in numbers")
	numbers.checkFaults()
}

// besideEachOther waits until the photos of before and after stand in one line.
var besideEachOther = browser.Until(`(([before, after]) => after && before.top === after.top && before.right <= after.left)(
	[...document.querySelectorAll('.before-after > div')].map((e) => e.getBoundingClientRect()))`)
