package e2e

import (
	"testing"

	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// cameraPicture chooses a picture that says where it was taken, as a telephone's camera
// does: 6° 35' 42" south, 106° 47' 58.2" east, which is in the city.
const cameraPicture = `((input) => {
	if (!input) return false;
	const canvas = Object.assign(document.createElement('canvas'), { width: 800, height: 600 });
	canvas.getContext('2d').fillRect(0, 0, 400, 600);
	const jpeg = Uint8Array.from(atob(canvas.toDataURL('image/jpeg').split(',')[1]), (c) => c.charCodeAt(0));
	const entry = (tag, type, count, value) => [tag >> 8, tag & 255, 0, type, 0, 0, 0, count, ...value];
	const fractions = (...values) => values.flatMap((value) => [0, 0, value >> 8, value & 255, 0, 0, 0, 10]);
	const exif = [0x45, 0x78, 0x69, 0x66, 0, 0, 0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1, ...entry(0x8825, 4, 1, [0, 0, 0, 26]), 0, 0, 0, 0,
		0, 4, ...entry(1, 2, 2, [83, 0, 0, 0]), ...entry(2, 5, 3, [0, 0, 0, 80]), ...entry(3, 2, 2, [69, 0, 0, 0]), ...entry(4, 5, 3, [0, 0, 0, 104]),
		0, 0, 0, 0, ...fractions(60, 350, 420), ...fractions(1060, 470, 582)];
	const part = [0xff, 0xe1, (exif.length + 2) >> 8, (exif.length + 2) & 255, ...exif];
	const files = new DataTransfer();
	files.items.add(new File([jpeg.slice(0, 2), Uint8Array.from(part), jpeg.slice(2)], 'IMG_1.jpg', { type: 'image/jpeg' }));
	input.files = files.files;
	return input.dispatchEvent(new Event('change', { bubbles: true }));
})(document.querySelector('input[type=file]'))`

// An address with a place and a category opens the form behind them; a fault of it is
// explained, and costs no word that was typed. A report may begin with its photo, whose
// place is offered, and is not sent.
func TestPageLinkAndCamera(t *testing.T) {
	t.Parallel()
	c, gateway := startWithGuests(t)
	const link = "new?lat=-6.595&lng=106.7995&category="
	page := c.readerOf(shell, gateway, nil).open(link+"2", phone, slow4G)
	page.do(browser.See("form .quiet", "From the link"), browser.Fill("What is wrong?", "Lamp is dark"),
		browser.Go(gateway+"/"+link+"x"), live, browser.See("[role=alert]", "The category of the link is not one of the city"),
		browser.See("h2", "What is it about?"))
	page.checkAccessible("an address with a fault")
	page.checkNarrow("an address with a fault")
	page.do(chosen("Graffiti"), browser.Until(`document.querySelector('input[required]')?.value === 'Lamp is dark' && !document.querySelector('[role=alert]')`),
		// The way to an account and back keeps what the address said.
		browser.Go(gateway+"/"+link+"3"), live, browser.See("form .quiet", "From the link"),
		browser.Click(".tools button", "Menu"), browser.Click("dialog a", "Sign in"))
	page.signIn("Maria", "Resident")
	page.do(browser.See("form .quiet", "From the link"), browser.Fill("What is wrong?", "Paint on the wall"), next,
		browser.Click("label.option", "Anonymous"), browser.Click("button.primary", "Send report"), filed, browser.See("h1", "Paint on the wall"))
	page.checkFaults()

	camera := c.readerOf(shell, gateway, nil).open("new", phone)
	camera.do(mapShown)
	camera.tabTo("input[type=file]", "")
	camera.do(browser.Until(cameraPicture), browser.See("[role=status]", "Only this device reads that"))
	camera.checkAccessible("a photo to begin with")
	camera.checkNarrow("a photo to begin with")
	camera.tabTo("button", "Use the photo")
	camera.do(browser.Enter(), browser.See("[role=status]", "✓"), next, chosen("Graffiti"), browser.Until(`document.querySelector('.chosen img')`))
	camera.checkFaults()

	var placed int
	if err := c.reportDB.QueryRow(t.Context(), `select count(*) from reports where latitude = -6.595 and longitude = 106.7995 and category_id = 3`).Scan(&placed); err != nil || placed != 1 {
		t.Errorf("%d reports are where the address said (error: %v), want 1", placed, err)
	}
}
