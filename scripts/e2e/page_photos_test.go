package e2e

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// errCut is what a body ends with whose line was cut.
var errCut = errors.New("the line was cut")

// cutUploads replaces the gateway by one that lets 60 % of an upload pass, then
// cuts the line in both directions, so often for each photo. It returns how often
// that was done.
func (c *stack) cutUploads(times int) (done func() int) {
	var mu sync.Mutex
	cuts, all := make(map[string]int), 0
	next := c.proxy()
	c.gateway = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		cut := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/photos/") && cuts[r.URL.Path] < times
		if cut {
			cuts[r.URL.Path]++
			all++
		}
		mu.Unlock()
		if !cut {
			next.ServeHTTP(w, r)
			return
		}
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, r.ContentLength*6/10), cutReader{}))
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	c.t.Cleanup(c.gateway.Close)
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, errCut }

// choosePhotos chooses two pictures, as large as a telephone takes them, as the
// browser's own dialogue does.
var choosePhotos = browser.Until(`((input) => {
	if (!input) return false;
	const files = new DataTransfer();
	for (const hue of [40, 220]) {
		const canvas = Object.assign(document.createElement('canvas'), { width: 4000, height: 3000 });
		const context = canvas.getContext('2d');
		for (let x = 0; x < 4000; x += 8) {
			context.fillStyle = 'hsl(' + hue + ' 60% ' + (x * 7919 % 100) + '%)';
			context.fillRect(x, 0, 8, 3000);
		}
		const text = atob(canvas.toDataURL('image/jpeg').split(',')[1]);
		files.items.add(new File([Uint8Array.from(text, (c) => c.charCodeAt(0))], hue + '.jpg', { type: 'image/jpeg' }));
	}
	input.files = files.files;
	return input.dispatchEvent(new Event('change', { bubbles: true }));
})(document.querySelector('input[type=file]'))`)

// shownPhotos waits until so many pictures of the service are on the screen.
func shownPhotos(count string) browser.Action {
	return browser.Until(`[...document.querySelectorAll('.photos img[src^="/photos/"]')].filter((i) => i.complete && i.naturalWidth > 0).length === ` + count)
}

// A resident files a report with two photos from a telephone on a line that is
// cut twice for each. They survive a reload before they are sent, arrive whole and
// once, and everybody who looks at the report sees them without a reload.
func TestPagePhotos(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.awaitConsumers()
	cuts := c.cutUploads(2)
	ana := c.reader(c.signIn("Ana", "resident")).open("new", browser.Width(360, 740))
	ana.do(
		placeless,
		chosen("Street lights"),
		browser.Fill("What is wrong?", "Dark crossing"),
		choosePhotos,
		browser.Until(`document.querySelectorAll('.chosen img').length === 2`),
		browser.Fill("Describe the photo", "A lamp without light"),
		browser.Click("button", "Rotate: Photo 2"),
		browser.Until(`document.querySelector('.chosen [data-quarters="1"]')`),
	)
	ana.checkAccessible("photos that were chosen")
	ana.checkNarrow("photos that were chosen")
	ana.do(
		browser.Reload(), live,
		browser.Until(`document.querySelectorAll('.chosen img').length === 2`),
		next,
		browser.Click("label.option", "Anonymous"),
		browser.Click("button", "Send report"),
		filed,
		browser.See("h1", "Dark crossing"),
		browser.Until(`document.querySelectorAll('.thumbnails [role=status]').length === 2`), // both are being looked at
	)
	if got := cuts(); got != 4 {
		t.Errorf("the line was cut %d times, want twice for each photo", got)
	}
	path, err := browser.Ask[string](ana.Tab, `location.pathname`)
	if err != nil {
		t.Fatal(err)
	}
	report := uuid.MustParse(filepath.Base(path))
	ben := c.reader(c.signIn("Ben", "resident")).open("reports/"+report.String(), browser.Width(360, 740))
	ben.do(browser.See("h1", "Dark crossing"), browser.Until(`!document.querySelector('.photos')`))

	c.startPhotoWorker() // what was uploaded before waits for it
	ana.do(shownPhotos("2"))
	ben.do(shownPhotos("2"))
	ben.do(
		browser.Click(".photos button", "A lamp without light"),
		browser.See("dialog h2", "Photo 1 of 2"),
		browser.Click("dialog button", "Next"),
		browser.See("dialog h2", "Photo 2 of 2"),
		browser.Until(`(([photo]) => photo?.complete && photo.naturalHeight > photo.naturalWidth)(document.querySelectorAll('.large-photo img'))`), // turned
	)
	ben.checkAccessible("a large photo")
	ben.do(browser.Click("dialog button", "Close"))
	ana.checkAccessible("the photos of a report")
	ana.checkNarrow("the photos of a report")
	ana.checkFaults()
	ben.checkFaults()

	var photos, ready int
	err = c.reportDB.QueryRow(t.Context(), `
		select count(*), count(*) filter (where state = 'ready') from photos where report_id = $1`, report).Scan(&photos, &ready)
	if err != nil || photos != 2 || ready != 2 {
		t.Errorf("%d photos, %d of them ready (error: %v), want 2", photos, ready, err)
	}
}

// The photos of a report by keyboard: opened, turned through, closed, and the
// focus is where it was. By a finger: turned through in both directions.
func TestPageGalleryByKeyboardAndFinger(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startPhotoWorker()
	ana := c.signIn("Ana", "resident")
	report := file(t, ana, "Dark crossing")
	for range 3 {
		c.verdictOn(ana, report, c.upload(ana, report, whitePicture(t)))
	}
	page := c.reader(c.signIn("Ben", "resident")).open("reports/" + report.ID.String())
	page.do(shownPhotos("3"))
	page.tabTo(".photos button", "Enlarge: A lamp")
	at := func(n string) browser.Action { return browser.See("dialog h2", "Photo "+n+" of 3") }
	page.do(
		browser.Enter(), at("1"), browser.Until(`document.querySelector('dialog[open]').contains(document.activeElement)`),
		browser.Press(kb.ArrowRight), at("2"), browser.Press(kb.ArrowRight), at("3"), browser.Press(kb.ArrowRight), at("3"),
		browser.Press(kb.ArrowLeft), at("2"),
		browser.Press(kb.Escape), browser.Until(`!document.querySelector('dialog')`),
		browser.Until(`document.activeElement.matches('.photos .thumbnails button')`),
		browser.Enter(), at("1"),
	)
	for _, swipe := range []struct {
		from, to float64
		want     string
	}{{0.8, 0.2, "2"}, {0.8, 0.2, "3"}, {0.2, 0.8, "2"}, {0.5, 0.52, "2"}} { // the last is hardly one
		page.swipe(".large-photo img", swipe.from, swipe.to)
		page.do(at(swipe.want))
	}
	page.checkFaults()
}

// Wherever reports are listed, the first photo tells which is which: in the city's
// list, in the map's popup, where somebody is about to report the same again, in
// the officials' queue, and where they look for the original of a duplicate.
func TestPageThumbnails(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.startPhotoWorker()
	ana, olga := c.signIn("Ana", "resident"), c.signIn("Olga", "official")
	original, lamp := file(t, ana, "Dark crossing"), draft("Lamp is out")
	*lamp.Latitude += 0.0045 // half a kilometre away: another dot
	other, err := ana.CreateReport(t.Context(), lamp, "Idempotency-Key", uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range []client.Report{original, other} {
		c.verdictOn(ana, report, c.upload(ana, report, whitePicture(t)))
	}
	in := func(where string) browser.Action {
		return browser.Until(`(([i]) => i && (i.scrollIntoView(), i.complete) && i.naturalWidth > 0)(document.querySelectorAll('` + where + ` img.thumbnail'))`)
	}
	resident := c.reader(ana).open("", browser.Width(360, 740))
	resident.do(in(".card"), browser.Click("button", "Map"), mapShown, dotShown, browser.Click(".map-canvas .dot", ""), in(".popup"))
	resident.do(
		browser.Width(1280, 800), browser.Go(c.gateway.URL+"/new"), mapShown, pinned,
		browser.Click(".categories label", "Street lights"), in("section li"),
	)
	resident.checkFaults()
	official := c.reader(olga).open("queue", browser.Width(1280, 800))
	official.do(in(".task"), browser.Click(".task a", "Lamp is out"), browser.Click("summary", "Duplicates and moderation"),
		browser.Click("button", "Mark as duplicate"), in(".picker button"))
	official.checkAccessible("thumbnails of a queue")
	official.do(browser.Click(".picker button", "Dark crossing"), browser.Until(`!document.querySelector('dialog')`),
		browser.Go(c.gateway.URL+"/queue?status=all&report="+original.ID.String()), in(".desk-detail li"))
	official.checkFaults()
}

// An uploader sees live at which stage the photo is, and nobody else does.
func TestPagePhotoStages(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	ana, ben := c.signIn("Ana", "resident"), c.signIn("Ben", "resident")
	report := file(t, ana, "Dark crossing")
	stages := browser.InEachDocument(`globalThis.stages = [];
		new MutationObserver(() => {
			const stage = document.querySelector('.photos .note progress')?.value;
			if (stage && stage !== stages.at(-1)) stages.push(stage);
		}).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });`)
	anas := c.reader(ana).open("reports/"+report.ID.String(), stages)
	bens := c.reader(ben).open("reports/"+report.ID.String(), stages)
	photo := c.upload(ana, report, largePicture(t)) // the worker is not there yet
	anas.do(browser.Reload(), live, browser.See(".photos [role=status]", "being checked"))
	c.startPhotoWorker()
	if v := c.verdictOn(ana, report, photo); v.State != "ready" {
		t.Fatalf("the photo is %s, %s", v.State, v.Reason)
	}
	anas.do(shownPhotos("1"))
	bens.do(shownPhotos("1"))
	for name, p := range map[string]struct {
		tab  tab
		want string
	}{"uploader": {anas, "75"}, "another": {bens, ""}} {
		got, err := browser.Ask[string](p.tab.Tab, `String(stages.at(-1) ?? '')`)
		if err != nil || got != p.want {
			t.Errorf("%s: the last stage was %q, want %q (error: %v)", name, got, p.want, err)
		}
		p.tab.checkFaults()
	}
}

// whitePicture returns a file that becomes a white photo.
func whitePicture(t *testing.T) []byte {
	t.Helper()
	return encoded(t, image.NewUniform(color.White), image.Rect(0, 0, 1200, 900))
}

// largePicture returns one on which the worker works for a while.
func largePicture(t *testing.T) []byte {
	t.Helper()
	return encoded(t, image.NewUniform(color.RGBA{200, 120, 40, 255}), image.Rect(0, 0, 6000, 4000))
}

func encoded(t *testing.T, colour image.Image, size image.Rectangle) []byte {
	t.Helper()
	m := image.NewRGBA(size)
	draw.Draw(m, size, colour, image.Point{}, draw.Src)
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, nil); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
