package e2e

import (
	"bytes"
	"fmt"
	"image/color"
	"image/jpeg"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/platform/testing/eventually"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An official decides about photos before anybody sees them: covers what nobody
// should see, and shows the rest. Nothing of the covered picture is served or
// kept after that, and the resident sees at the end what everybody does.
func TestPageHeldPhotos(t *testing.T) {
	t.Parallel()
	c := startStack(t)
	c.photo.env = with(c.photo.env, "PHOTO_MODERATION", "before")
	c.startPhotoWorker()
	ana, ben, olga := c.signIn("Ana", "resident"), c.signIn("Ben", "resident"), c.signIn("Olga", "official")
	report := file(t, ana, "Dark crossing")
	covered, refused := c.upload(ana, report, whitePicture(t)), c.upload(ana, report, whitePicture(t))
	for _, photo := range []uuid.UUID{covered, refused} {
		if v := c.verdictOn(ana, report, photo); v.State != "held" {
			t.Fatalf("the photo is %s, want it held", v.State)
		}
		if _, err := ben.Picture(t.Context(), photo, 320); client.StatusOf(err) != http.StatusNotFound {
			t.Errorf("another resident asks for a held picture: %v, want 404", err)
		}
	}
	before := must(olga.Picture(t.Context(), covered, 1024))
	checkDark(t, "before", before, 0, 0)

	page := c.reader(olga).open("queue/photos", browser.Width(1280, 800))
	images := func(count string) browser.Action {
		return browser.Until(`[...document.querySelectorAll('.held img')].filter((i) => i.complete && i.naturalWidth > 0 && i.alt === 'A lamp').length === ` + count)
	}
	page.do(browser.See("[role=status]", "2 photos to review"), images("2"))
	page.checkAccessible("photos that wait")
	page.do(
		browser.Click(".held button", "Black out"),
		browser.Until(`((i) => i?.complete && i.naturalWidth > 0)(document.querySelector('.redact img'))`),
	)
	// One part by the mouse, nearly the left upper quarter, another one by keys.
	page.drag(".redact img", 0.02, 0.02, 0.5, 0.5)
	page.do(
		browser.Until(`document.querySelectorAll('.redact button').length === 1`),
		browser.Click("dialog button", "Add a part"),
		browser.Until(`document.querySelectorAll('.redact button').length === 2`),
	)
	page.tabTo(".redact button", "Blacked-out part 2")
	for range 10 { // from the middle to the right
		page.do(browser.Press(kb.ArrowRight))
	}
	page.checkAccessible("parts of a photo")
	page.do(
		browser.Click("dialog button.primary", "Black out"),
		browser.Until(`!document.querySelector('dialog')`),
		browser.Until(`[...document.querySelectorAll('.held img')].every((i) => !i.src.includes('`+covered.String()+`'))`),
		images("2"),
		browser.Click(".held button", "Show"), // the oldest, which is the covered one
		browser.See("[role=status]", "1 photo to review"),
		browser.Click(".held button", "Do not show"),
		browser.See("[role=status]", "No photos wait for a review"),
	)
	page.checkFaults()

	var shown struct{ Photos []uuid.UUID }
	if err := ben.Do(t.Context(), http.MethodGet, "/reports/"+report.ID.String(), nil, &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Photos) != 1 || shown.Photos[0] == covered || shown.Photos[0] == refused {
		t.Fatalf("everybody sees %v, want the one that was drawn over, under an id of its own", shown.Photos)
	}
	for _, size := range []int{2048, 1024, 320} {
		checkDark(t, "after", must(ben.Picture(t.Context(), shown.Photos[0], size)), 0.48*0.48, 0.2*0.2)
		for _, photo := range []uuid.UUID{covered, refused} {
			for who, user := range map[string]*client.Client{"resident": ben, "official": olga, "reporter": ana} {
				if _, err := user.Picture(t.Context(), photo, size); client.StatusOf(err) != http.StatusNotFound {
					t.Errorf("%s asks for what is not shown: %v, want 404", who, err)
				}
			}
		}
	}
	// Its files go with the worker's next look.
	folder := strings.TrimPrefix(c.photo.env["PHOTO_STORE"], "file://")
	eventually.True(t, "only what is shown is kept", func() bool {
		kept := must(filepath.Glob(filepath.Join(folder, "*", "*")))
		return len(kept) == 1 && filepath.Base(kept[0]) == shown.Photos[0].String()
	})
	anas := c.reader(ana).open("reports/"+report.ID.String(), browser.Width(360, 740))
	anas.do(shownPhotos("1"), browser.See(".photos .note", "the city decided not to show it"))
	anas.checkAccessible("a photo that was refused")
}

// drag moves the mouse over an element with its button held, between two points
// in fractions of the element's size.
func (p tab) drag(selector string, fromX, fromY, toX, toY float64) {
	p.t.Helper()
	box := p.boxOf(selector)
	event := func(kind input.DispatchMouseEventType, x, y float64, buttons int64) browser.Action {
		return browser.Command(input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: kind, X: box[0] + x*box[2], Y: box[1] + y*box[3], Button: input.MouseButtonLeft, Buttons: buttons, ClickCount: 1,
		})
	}
	p.do(
		event(input.DispatchMouseEventTypeMousePressed, fromX, fromY, 1),
		event(input.DispatchMouseEventTypeMouseMoved, (fromX+toX)/2, (fromY+toY)/2, 1),
		event(input.DispatchMouseEventTypeMouseMoved, toX, toY, 1),
		event(input.DispatchMouseEventTypeMouseReleased, toX, toY, 0),
	)
}

// swipe moves a finger over an element, from one side to the other.
func (p tab) swipe(selector string, from, to float64) {
	p.t.Helper()
	box := p.boxOf(selector)
	event := func(kind input.DispatchTouchEventType, at ...float64) browser.Action {
		points := []*input.TouchPoint{} // none when the finger is gone
		for _, x := range at {
			points = append(points, &input.TouchPoint{X: box[0] + x*box[2], Y: box[1] + box[3]/2})
		}
		return browser.Command(input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	}
	p.do(
		event(input.DispatchTouchEventTypeTouchStart, from),
		event(input.DispatchTouchEventTypeTouchMove, (from+to)/2),
		event(input.DispatchTouchEventTypeTouchMove, to),
		event(input.DispatchTouchEventTypeTouchEnd),
	)
}

// boxOf returns where an element is, left, top, width and height, once it is
// shown and nothing moves.
func (p tab) boxOf(selector string) []float64 {
	p.t.Helper()
	p.do(browser.Until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility()`, selector)))
	box, err := browser.Ask[[]float64](p.Tab, fmt.Sprintf(`(async (e) => {
		await Promise.all([document.fonts.ready, ...document.getAnimations().map((a) => a.finished)]);
		e.scrollIntoView({ block: 'center', behavior: 'instant' });
		const { x, y, width, height } = e.getBoundingClientRect();
		return [x, y, width, height];
	})(document.querySelector(%q))`, selector))
	if err != nil {
		p.t.Fatal(err)
	}
	return box
}

// checkDark fails the test unless so much of a picture is black in its left upper
// quarter, and so much more elsewhere; in fractions of its area.
func checkDark(t *testing.T, name string, file []byte, quarter, more float64) {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	b := m.Bounds()
	inQuarter, all := 0, 0
	for y := range b.Dy() {
		for x := range b.Dx() {
			if gray := color.GrayModel.Convert(m.At(b.Min.X+x, b.Min.Y+y)).(color.Gray); gray.Y < 64 {
				all++
				if x < b.Dx()/2 && y < b.Dy()/2 {
					inQuarter++
				}
			}
		}
	}
	area := float64(b.Dx() * b.Dy())
	near := func(pixels int, want float64) bool { return math.Abs(float64(pixels)/area-want) < 0.02 }
	if !near(inQuarter, quarter) || !near(all, quarter+more) {
		t.Errorf("%s: %.3f of the picture is black in its left upper quarter and %.3f in all, want %.2f and %.2f",
			name, float64(inQuarter)/area, float64(all)/area, quarter, quarter+more)
	}
}
